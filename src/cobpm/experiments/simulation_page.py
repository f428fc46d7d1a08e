"""The pages of the simulations, written from their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from cobpm.experiments.fits import ENGINES
from cobpm.experiments.framework import table, upper_bound
from cobpm.experiments.laws import FOUR, LABELS

Numbers = Mapping[str, Any]
MIXED = 1.05  # R-hat up to which chains agree


def sections(numbers: Numbers, densities: str) -> list[str]:
    """The text of the page."""
    draws, burn_in = numbers["draws"], numbers["burn_in"]
    return [
        f"{densities}. The model is the paper's, with δ = ½ and σ = d + 1, for two samples of 50, "
        "250 and 1,250 points. In orange the paper's chain: it starts from a single cell, "
        f"{burn_in:,} iterations are discarded and the next {draws:,} shown. In blue "
        f"{draws:,} independent draws of the same posterior by the exact engine. Red lines are the "
        "true values.",
        "## True values",
        *_truths(numbers),
        "## The posteriors in the picture",
        _boxes(numbers),
        "## Number of sub-regions",
        _leaves(numbers),
        *_mixing(numbers),
        "## What the paper says of its picture",
        *_claims(numbers),
    ]


def verdict(numbers: Numbers) -> str:
    """One sentence for the index."""
    far = max(abs(numbers["truth"][name] - numbers["paper"]["truth"][name]) for name in FOUR)
    better = len(set(_changes(numbers, "error")["falls"]) & set(_changes(numbers, "std")["falls"]))
    return (
        f"True values within {upper_bound(far)} of the paper's; errors and spreads fall with the "
        f"sample size for {better} of 4 divergences, and partitions "
        f"{'get' if _rises(_mean_leaves(numbers)) else 'do not always get'} finer "
        f"({_series(_mean_leaves(numbers))} sub-regions). "
        + (
            f"The paper's chain has not mixed at n = {_listed(_unmixed(numbers, 'guided'))}."
            if _unmixed(numbers, "guided")
            else "The paper's chain agrees with itself."
        )
    )


def _truths(numbers: Numbers) -> list[str]:
    rows = []
    far, endless = [], []
    for name in FOUR:
        ours, paper = numbers["truth"][name], numbers["paper"]["truth"][name]
        error = numbers["paper_monte_carlo_error"][name]
        told = "infinite" if error is None else f"{error:.5f}"
        endless += [_name(name)] * (error is None)
        rows.append([LABELS[name], f"{ours:.5f}", f"{paper:.4f}", told])
        if abs(ours - paper) > 3 * (error or 0) + 5e-5:  # the paper rounds to four decimals
            far.append(_name(name))
    largest = max(max(numbers["truth_error"].values()), 1e-12)
    said = (
        f"Beyond three such errors and the rounding: {', '.join(far)}."
        if far
        else "All four are within three such errors and the rounding to four decimals."
    )
    return [
        table(["divergence", "quadrature", "paper", "Monte Carlo error"], rows),
        f"The error of the quadrature is at most {upper_bound(largest)}. The paper takes its "
        "values from Monte Carlo with 10⁸ draws; the last column is the standard error of such an "
        "average, by quadrature. "
        + said
        + (f" The variance of that for {_listed(endless)} is infinite." if endless else ""),
    ]


def _boxes(numbers: Numbers) -> str:
    rows = []
    for name in FOUR:
        for n, by_engine in numbers["sizes"].items():
            cells = [LABELS[name], n, f"{numbers['truth'][name]:.3f}"]
            for engine in ("guided", "exact"):
                found = by_engine[engine][name]
                cells += [
                    f"{found['median']:.3f} ({found['quartile_1']:.3f} to "
                    f"{found['quartile_3']:.3f})",
                    f"{found['std']:.3f}",
                    f"{found['outliers']}",
                ]
            rows.append(cells)
    head = ["divergence", "n", "truth"]
    for engine in ("guided", "exact"):
        head += [f"{ENGINES[engine]}: median (quartiles)", "std", "outliers"]
    return table(head, rows)


def _leaves(numbers: Numbers) -> str:
    rows = []
    for n, by_engine in numbers["sizes"].items():
        cells = [n, f"{by_engine['exact']['expected_leaves']:.2f}"]
        for kernel in ("guided", "uniform"):
            found = by_engine[kernel]
            each = found["mean_leaves_of_chains"]
            cells += [
                f"{found['mean_leaves']:.2f} ({min(each):.2f} to {max(each):.2f})",
                f"{found['rhat']['number of leaves']:.2f}",
                f"{found['rhat']['plug-in KL divergence']:.2f}",
            ]
        rows.append(cells)
    head = ["n", "exact mean"]
    for kernel in ("guided", "uniform"):
        head += [f"{ENGINES[kernel]} (eight chains)", "R-hat of l", "R-hat of plug-in KL"]
    return table(head, rows)


def _unmixed(numbers: Numbers, kernel: str) -> list[int]:
    return [
        n
        for n, by_engine in numbers["sizes"].items()
        if max(by_engine[kernel]["rhat"].values()) > MIXED
    ]


def _mixing(numbers: Numbers) -> list[str]:
    """Whether the chains agree with each other and with the exact posterior."""
    parts = [
        "The mean is that of the chain in the picture, with the smallest and the largest of eight "
        "chains that differ in nothing but the seed. R-hat compares the eight: 1 if they agree, "
        f"and above {MIXED} they do not."
    ]
    for kernel in ("guided", "uniform"):
        sizes = _unmixed(numbers, kernel)
        name = ENGINES[kernel][0].upper() + ENGINES[kernel][1:]
        parts.append(
            f"{name} has not mixed at n = {_listed(sizes)}."
            if sizes
            else f"{name} agrees with "
            "itself at all sizes; the first column tells whether it agrees with the posterior."
        )
    parts.append(
        "The paper's kernels can only undo their last cut. To change the first cut, a chain must "
        "take its whole partition apart, and with many cells it does not get there: what it shows "
        "is the posterior around one way to begin. Where the orange and the blue boxes differ by "
        "more than chance, this is why."
    )
    return [" ".join(parts)]


def _claims(numbers: Numbers) -> list[str]:
    repeats = numbers["data_sets"]
    rows = []
    for name in FOUR:
        for n, found in numbers["over_data_sets"].items():
            one = found[name]
            rows.append(
                [
                    LABELS[name],
                    n,
                    f"{numbers['truth'][name]:.3f}",
                    f"{one['mean_of_medians']:.3f}",
                    _with_error(one["error"], 3),
                    _with_error(one["std"], 3),
                    _with_error(one["outliers"], 0),
                    f"{one['intervals_of_90_that_hold_the_truth']:.0%}",
                ]
            )
    head = ["divergence", "n", "truth", "median", "error of the median", "std", "outliers"]
    return [
        f"One data set proves little. These are averages over {repeats} further ones, all with "
        "the exact engine; the error is the mean absolute one, and the last column is the share "
        "of central 90% intervals that hold the true value.",
        table([*head, "90% intervals that hold the truth"], rows),
        f"From {_first_and_last(numbers)} points, by more than two standard errors:",
        "\n".join(
            [
                "- *Estimation errors decrease*: the error " + _said(_changes(numbers, "error")),
                "- *Variances decrease*: the standard deviation " + _said(_changes(numbers, "std")),
                "- *Outliers become fewer*: their number " + _said(_changes(numbers, "outliers")),
                "- *The number of sub-regions increases*: "
                + ("yes" if _rises(_mean_leaves(numbers)) else "no")
                + f", {_series(_mean_leaves(numbers))} on average.",
                "- *KL and the α-divergence have the largest range and variance*: standard "
                f"deviations over true values {_relative(numbers)}",
            ]
        ),
        *_why_not(numbers),
        _coverage(numbers),
    ]


def _changes(numbers: Numbers, what: str) -> dict[str, list[str]]:
    """Which divergences have an average that falls, rises or stays from the first size to the last.

    Two standard errors of the difference decide.
    """
    found: dict[str, list[str]] = {"falls": [], "rises": [], "does not clearly change": []}
    first, *_, last = numbers["over_data_sets"].values()
    for name in FOUR:
        a, b = first[name][what], last[name][what]
        unsure = 2 * (a["standard_error"] ** 2 + b["standard_error"] ** 2) ** 0.5
        change = b["mean"] - a["mean"]
        word = "falls" if change < -unsure else "rises" if change > unsure else None
        found[word or "does not clearly change"].append(name)
    return found


def _said(changes: Mapping[str, Sequence[str]]) -> str:
    if len(changes["falls"]) == len(FOUR):
        return "falls for all four."
    parts = [f"{word} for {_names(names)}" for word, names in changes.items() if names]
    return "; ".join(parts) + "."


def _why_not(numbers: Numbers) -> list[str]:
    """Why the divergence of order 2 does not settle, where it does not."""
    if "renyi:2" in _changes(numbers, "std")["falls"]:
        return []
    return [
        "The divergence of order 2 does not settle, whatever the engine. With δ = ½ a cell without "
        "points of the second sample has a mass m there whose 1/m has no finite mean, and finer "
        "partitions keep making such cells where the densities vanish. The draws are then ruled "
        "by the emptiest cell. The paper sees the same cause and answers it with a larger δ: that "
        "is its Table 2."
    ]


def _coverage(numbers: Numbers) -> str:
    n, found = list(numbers["over_data_sets"].items())[-1]
    shares = [found[name]["intervals_of_90_that_hold_the_truth"] for name in FOUR]
    above = sum(found[name]["mean_of_medians"] > numbers["truth"][name] for name in FOUR)
    return (
        f"Read the intervals with care: at n = {n:,} those of 90% hold the true value in "
        f"{min(shares):.0%} to {max(shares):.0%} of the data sets, and the medians are above it on "
        f"average for {above} of the 4 divergences. The draws are exact, so where an interval "
        "misses too often, it is the model that is biased, not the engine."
    )


def _with_error(average: Mapping[str, float], digits: int) -> str:
    return f"{average['mean']:.{digits}f} ± {average['standard_error']:.{digits}f}"


def _first_and_last(numbers: Numbers) -> str:
    first, *_, last = numbers["over_data_sets"]
    return f"{first:,} to {last:,}"


def _rises(values: Sequence[float]) -> bool:
    return all(a < b for a, b in pairwise(values))


def _mean_leaves(numbers: Numbers) -> list[float]:
    return [found["mean_leaves"] for found in numbers["over_data_sets"].values()]


def _relative(numbers: Numbers) -> str:
    n, found = next(iter(numbers["over_data_sets"].items()))
    shares = [
        f"{found[name]['std']['mean'] / numbers['truth'][name]:.2f} ({_name(name)})"
        for name in FOUR
    ]
    return f"at n = {n} are {_listed(shares)}."


def _name(name: str) -> str:
    """The name of a divergence inside a sentence."""
    return "total variation" if name == "tv" else LABELS[name]


def _names(names: Sequence[str]) -> str:
    return _listed([_name(name) for name in names])


def _series(values: Sequence[float]) -> str:
    return _listed([f"{value:.1f}" for value in values])


def _listed(items: Sequence[object]) -> str:
    *most, last = map(str, items)
    return f"{', '.join(most)} and {last}" if most else last
