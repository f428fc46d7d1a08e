"""Errors and coverage where the truth is known, beside what people use today.

    python -m benchmarks.accuracy --records FILE   # an hour or so, and can be resumed
    python -m benchmarks.accuracy --quick          # a few small problems: does it still run?

Every method sees the same data: ten pairs of sets for each problem of `benchmarks.problems` and
each size. Prints Markdown, writes it to benchmarks/results/accuracy.md, or to the file that --out
names, and draws a picture beside it.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import cobpm
from benchmarks import peers
from benchmarks.errors import Answer, Method, Record, by_problem, markdown, overall, run
from benchmarks.problems import TUNING
from benchmarks.seen_problems import SEEN
from benchmarks.speed import HERE, machine
from benchmarks.untouched_problems import UNTOUCHED
from cobpm.arrays import FloatArray
from cobpm.diagnostics import CobpmWarning
from cobpm.experiments.laws import DIVERGENCES, Problem

if TYPE_CHECKING:
    import pandas as pd

OURS = "cobpm"
PAPER = "cobpm, paper's model"
SIZES = (100, 500, 2000, 5000)
REPLICATES = 10
LEVEL = 0.9
# Slow methods stop at these sizes.
LARGEST = {"uLSIF": 500, "KLIEP": 2000, PAPER: 500}
GOALS = {"kl": 0.75, "hellinger": 0.75, "tv": 1.0, "renyi:2": 0.85}
# Of the peers, the one that knows the answer's form: the log ratio of most tuning problems is
# quadratic, which no user could count on.
INFORMED = "quadratic logistic"

ABOUT = """# Accuracy

`{command}` on {machine}.

{replicates} pairs of sets for each problem and size, the same for every method. Errors are
absolute; the mean over the pairs of a problem enters a geometric mean over problems, where it is at
least 0.001. `cobpm` is `compare(x, y)` with its default read-outs, and its 90% intervals. `{paper}`
is the posterior mean of `compare(x, y, model="paper")`.

"Tuning" problems are those that settings were chosen on. "Seen" ones were untouched for an earlier
version; since then, they were looked at in choices, too. "Untouched" ones were written before the
settings of version 0.4 were chosen. They were run twice: the first time masses were read with
another law, which was given up because its intervals held the truth less often on tuning problems.

Answers may come from several runs that were resumed beside other work, so seconds are rough.
"""


def ours(x: FloatArray, y: FloatArray, model: str = "ratio") -> Answer:
    """All divergences with their intervals."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CobpmWarning)
        budget = {} if model == "ratio" else {"engine": "exact", "max_regions": 400_000}
        post = cobpm.compare(x, y, model=model, rng=0, **budget)  # type: ignore[arg-type]
    return {name: (post.estimate(name), *post.interval(name, LEVEL)) for name in DIVERGENCES}


def up_to(largest: int, method: Method) -> Method:
    """The method, without an answer for larger sets."""
    return lambda x, y: method(x, y) if len(x) <= largest else {}


def methods() -> dict[str, Method]:
    """Ours, and all peers that are installed."""
    found: dict[str, Method] = {
        OURS: ours,
        PAPER: partial(ours, model="paper"),
        **peers.available(),
    }
    return {
        name: up_to(LARGEST[name], method) if name in LARGEST else method
        for name, method in found.items()
    }


def head(first: str, sizes: Sequence[int], *last: str) -> list[str]:
    """The head of a table with a column for each size."""
    line = " | ".join([first, *(f"n = {n:,}" for n in sizes), *last])
    return [f"| {line} |", "|---" * (line.count("|") + 1) + "|"]


def against_peers(records: Sequence[Record], goals: bool) -> list[str]:
    """Our error over that of the best single peer, for each divergence and size."""
    errors = overall(records)["error"].sort_index()
    sizes = sorted({record.n for record in records})
    rest = sorted({record.method for record in records} - {OURS, PAPER})
    lines = head("divergence", sizes, "goal at n = 500")
    for name in DIVERGENCES:
        cells = []
        for n in sizes:
            known = {m: errors[m, name, n] for m in rest if (m, name, n) in errors.index}
            if not known or (OURS, name, n) not in errors.index:
                cells.append("–")
                continue
            best, without = (
                min(known, key=known.__getitem__),
                min((m for m in known if m != INFORMED), key=known.__getitem__, default=None),
            )
            cell = f"{errors[OURS, name, n] / known[best]:.2f} ({best})"
            if without is not None and without != best:
                cell += f", {errors[OURS, name, n] / known[without]:.2f} ({without})"
            cells.append(cell)
        goal = GOALS.get(name, "") if goals else (1.0 if name in GOALS else "")
        lines.append(f"| {name} | {' | '.join(cells)} | {goal} |")
    return lines


def coverage(records: Sequence[Record]) -> list[str]:
    """How often our intervals hold the truth: by size over all problems, and by problem for KL."""
    mine = [record for record in records if record.method == OURS]
    table = overall(mine)["coverage"].sort_index()
    problems = by_problem(mine)["coverage"].sort_index()
    sizes = sorted({record.n for record in mine})
    lines = head("divergence", sizes)
    for name in DIVERGENCES:
        cells = []
        for n in sizes:
            each = problems[OURS, name, n]
            low = ", ".join(f"{problem} {share:.0%}" for problem, share in each[each < 0.6].items())
            cells.append(f"{table[OURS, name, n]:.0%}" + (f" ({low})" if low else ""))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def bias(records: Sequence[Record]) -> list[str]:
    """Our mean error with its sign, for KL, by problem and size."""
    mine = [record for record in records if record.method == OURS and record.divergence == "kl"]
    table = by_problem(mine).sort_index()
    sizes = sorted({record.n for record in mine})
    truths = {record.problem: record.truth for record in mine}
    lines = head("problem | true KL", sizes)
    for problem, truth in truths.items():
        cells = []
        for n in sizes:
            at = table.loc[(OURS, "kl", n, problem)]
            cells.append(f"{at['bias']:+.3f}, {at['coverage']:.0%}")
        lines.append(f"| {problem} | {truth:.4f} | {' | '.join(cells)} |")
    return lines


def seconds(records: Sequence[Record]) -> list[str]:
    """Mean seconds of a call, by method and size."""
    table = overall(records)["seconds"].sort_index()
    sizes = sorted({record.n for record in records})
    lines = head("method", sizes)
    for method in dict.fromkeys(record.method for record in records):
        found = (table.get((method, "kl", n), np.nan) for n in sizes)
        cells = ("–" if np.isnan(value) else f"{value:.3f}" for value in found)
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return lines


def picture(groups: dict[str, list[Record]], path: Path) -> None:
    """Error against size, a panel for each divergence and group of problems."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    names = tuple(GOALS)
    figure, axes = plt.subplots(
        len(groups), len(names), figsize=(12, 3 * len(groups)), layout="constrained", squeeze=False
    )
    for row, (title, records) in zip(axes, groups.items(), strict=True):
        errors: pd.Series[Any] = overall(records)["error"].sort_index()
        for ax, name in zip(row, names, strict=True):
            for method in dict.fromkeys(record.method for record in records):
                line = {
                    n: errors[method, name, n]
                    for n in sorted({record.n for record in records})
                    if (method, name, n) in errors.index
                }
                look: dict[str, Any] = {"color": "0.75", "linewidth": 1}
                if method in (OURS, PAPER):
                    look = {
                        "color": "C3" if method == OURS else "C1",
                        "linewidth": 2.5,
                        "zorder": 3,
                    }
                elif method == INFORMED:
                    look = {"color": "C0", "linewidth": 1, "linestyle": "--"}
                shown = method in (OURS, PAPER, INFORMED)
                ax.plot(line.keys(), line.values(), marker=".", label=method * shown, **look)
            ax.set(xscale="log", yscale="log", title=f"{name}, {title}", xlabel="points per set")
        row[0].set_ylabel("error")
    axes[0, 0].plot([], [], color="0.75", label="other peers")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--records", type=Path, help="keep answers here and start again from them")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "accuracy.md")
    options = parser.parse_args(arguments)
    sizes, replicates, asked = tuple(options.sizes), REPLICATES, methods()
    suites: dict[str, Sequence[Problem]] = {
        "tuning": TUNING,
        "seen": SEEN,
        "untouched": UNTOUCHED,
    }
    if options.quick:
        sizes, replicates = (40,), 2
        asked = {name: asked[name] for name in (OURS, PAPER, "k-NN, k=1")}
        suites = {"tuning": TUNING[:2], "seen": SEEN[:2], "untouched": UNTOUCHED[:2]}
    command = "python -m benchmarks.accuracy" + " --quick" * options.quick
    if not options.quick and sizes != SIZES:
        command += f" --sizes {' '.join(map(str, sizes))}"
    parts = [ABOUT.format(command=command, machine=machine(), replicates=replicates, paper=PAPER)]
    groups: dict[str, list[Record]] = {}
    for title, problems in suites.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the peers' own
            records = run(problems, asked, sizes, replicates, options.records)
        groups[title] = records
        sections: tuple[tuple[str, list[str]], ...] = (
            ("Errors", [markdown(records)]),
            (
                "Our error over the best single peer's (and over the best's without quadratic "
                "logistic regression, which knows the form of most tuning problems)",
                against_peers(records, title == "tuning"),
            ),
            ("Coverage of 90% intervals (problems below 60%)", coverage(records)),
            ("KL by problem: bias, coverage", bias(records)),
            ("Seconds per call", seconds(records)),
        )
        parts.append(f"## {title.capitalize()} problems\n")
        parts += [f"{heading}:\n\n" + "\n".join(lines) + "\n" for heading, lines in sections]
    text = "\n".join(parts)
    print(text)
    options.out.write_text(text, encoding="utf-8")
    picture(groups, options.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
