"""The report on all pairs of many sets: a heat map, the pairs, and how far each set is away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

import cobpm
from cobpm.arrays import FloatArray, IntArray
from cobpm.divergences import parse
from cobpm.report.axes import up
from cobpm.report.bars import interval_bar, weight_bar
from cobpm.report.maps import cell_paths
from cobpm.report.names import clean, cut, shown_names
from cobpm.report.numbers import axis_end, interval, nice_ceiling, number, plain_level
from cobpm.report.page import fill, full_names, listed
from cobpm.report.svg import BOX, drawing, element, share, stretched
from cobpm.report.trust import Check

if TYPE_CHECKING:
    from cobpm.pairs import Pairwise

SHADES = 5  # of the heat map, beside none
MOST_NUMBERS = 12  # sets, beyond which numbers do not fit into the cells
MOST_LABELS = 40  # sets, beyond which names do not fit beside the map
MOST_SETS = 200  # of a heat map
FARTHEST, CLOSEST = 20, 10  # pairs in the table, of many
MOST_ROWS = 60  # sets in their table


@dataclass(frozen=True)
class PairRow:
    """One pair, ready to show."""

    number: int
    pair: tuple[int, int]
    names: tuple[str, str]
    estimate: float
    words: str
    interval: str
    bar: Markup


@dataclass(frozen=True)
class SetRow:
    """One set and how far it is from the others."""

    name: str
    mean: float
    words: str
    bar: Markup
    nearest: str


def render_pairs(pairs: Pairwise, title: str | None) -> str:
    """The whole page; see `cobpm.report.write_pairs`."""
    names = shown_names(pairs.names)
    rows = _pair_rows(pairs, names)
    far, total = (rows[0], rows[-1].number) if rows else (None, 0)
    drawn = len(names) <= MOST_SETS
    return fill(
        "pairs.html.jinja",
        clean(title or "") or f"{len(names):,} sets, compared in pairs",
        headline=_headline(far, len(names)),
        label=_label(pairs),
        level=plain_level(pairs.level),
        far=far,
        near=rows[-1] if total > 1 else None,
        heat_map=_heat_map(pairs, names, rows) if drawn else None,
        numbered=len(names) <= MOST_LABELS,
        key=_key(_largest(pairs)) if drawn else None,
        from_to=not pairs.symmetric,
        rows=rows,
        total=total,
        end=axis_end(_axis(pairs)),
        sets=_set_rows(pairs, names),
        checks=_checks(pairs, total),
        computed=_computed(pairs, total),
        full_names=full_names(names, pairs.names),
    )


# --- numbers -----------------------------------------------------------------------------------


def _label(pairs: Pairwise) -> str:
    """The divergence in words."""
    if pairs.divergence.startswith("phi"):
        return f"divergence with {pairs.divergence}"
    return parse(pairs.divergence, "report").label


def _mean(matrix: FloatArray) -> FloatArray:
    """Both directions together; NaN where neither is known."""
    return np.asarray((matrix + matrix.T) / 2)


def _order(matrix: FloatArray) -> IntArray:
    """Similar sets next to each other, by average linkage."""
    from scipy.cluster import hierarchy
    from scipy.spatial.distance import squareform

    if len(matrix) < 3:
        return np.arange(len(matrix))
    mean = _mean(matrix)
    # What is infinite or unknown is farther than all others.
    largest = np.max(mean, where=np.isfinite(mean), initial=0.0)
    distances = squareform(np.where(np.isfinite(mean), mean, 2 * largest + 1), checks=False)
    tree = hierarchy.linkage(distances, "average", optimal_ordering=len(matrix) <= MOST_SETS)
    return np.asarray(hierarchy.leaves_list(tree))


def _ranked(pairs: Pairwise) -> list[tuple[int, int]]:
    """Pairs that have a number, from the farthest to the closest; each once if symmetric."""
    sets = len(pairs.names)
    i, j = np.nonzero(~np.eye(sets, dtype=bool))
    if pairs.symmetric:
        i, j = np.triu_indices(sets, 1)
    known = pairs.done[i, j]
    i, j = i[known], j[known]
    # The upper end breaks ties of many zeros; then the order of the sets.
    order = np.lexsort((-pairs.high[i, j], -pairs.matrix[i, j]))
    return [(int(i[k]), int(j[k])) for k in order]


def _axis(pairs: Pairwise) -> float:
    """Where the axis of the bars ends."""
    largest = np.inf
    if not pairs.divergence.startswith("phi"):
        largest = parse(pairs.divergence, "report").largest
    finite = pairs.high[np.isfinite(pairs.high)]
    return min(float(largest), nice_ceiling(float(finite.max(initial=0.0))))


def _pair_rows(pairs: Pairwise, names: tuple[str, ...]) -> list[PairRow]:
    ranked = _ranked(pairs)
    chosen = list(enumerate(ranked, start=1))
    if len(ranked) > FARTHEST + CLOSEST:
        chosen = chosen[:FARTHEST] + chosen[-CLOSEST:]
    end = _axis(pairs)
    return [
        PairRow(
            number=place,
            pair=(i, j),
            names=(names[i], names[j]),
            estimate=float(pairs.matrix[i, j]),
            words=number(float(pairs.matrix[i, j])),
            interval=interval(float(pairs.low[i, j]), float(pairs.high[i, j])),
            bar=interval_bar(
                float(pairs.low[i, j]), float(pairs.matrix[i, j]), float(pairs.high[i, j]), end
            ),
        )
        for place, (i, j) in chosen
    ]


def _set_rows(pairs: Pairwise, names: tuple[str, ...]) -> list[SetRow]:
    """Each set with its mean distance to all others, the odd ones first."""
    mean = _mean(pairs.matrix)
    np.fill_diagonal(mean, np.nan)
    found = []
    for k, name in enumerate(names):
        known = np.flatnonzero(~np.isnan(mean[k]))
        if len(known):
            near = int(known[np.argmin(mean[k, known])])
            found.append((float(mean[k, known].mean()), name, names[near], float(mean[k, near])))
    finite = [value for value, *_ in found if np.isfinite(value)]
    end = max(finite, default=0.0)
    return [
        SetRow(name, value, number(value), weight_bar(value, end), f"{near} ({number(distance)})")
        for value, name, near, distance in sorted(found, key=lambda row: -row[0])[:MOST_ROWS]
    ]


# --- words -------------------------------------------------------------------------------------


def _headline(far: PairRow | None, sets: int) -> str:
    if far is None:
        return "No pair was reached"
    if far.estimate == 0.0:
        return f"No differences found among {sets:,} sets"
    if sets == 2:
        return f"{far.names[0]} and {far.names[1]}, compared"
    return f"Of {sets:,} sets, {far.names[0]} and {far.names[1]} differ most"


def _checks(pairs: Pairwise, total: int) -> list[Check]:
    found = [Check("warning", "From the engine", (clean(text),)) for text in pairs.warnings]
    sets = len(pairs.names)
    if missing := int((~pairs.done).sum()) // 2:
        text = f"{missing:,} of {sets * (sets - 1) // 2:,} pairs were not reached."
        found.append(Check("warning", "Interrupted", (text,)))
    if total > 1:
        text = f"Each of the {total:,} intervals holds its value with a probability of "
        text += f"{plain_level(pairs.level)}, so some will not: expect about "
        text += f"{number(total * (1 - pairs.level), 2)}."
        found.append(Check("note", "Many intervals", (text,)))
    if pairs.notices:
        found.append(Check("note", "Your data", tuple(map(clean, pairs.notices))))
    text = "Each pair has a posterior of its own."
    if pairs.partition == "joint":
        text = "All sets share one posterior over partitions, so the numbers can be compared."
    found.append(Check("good", "Partitions", (text,)))
    return found


def _computed(pairs: Pairwise, total: int) -> list[tuple[str, str]]:
    rows = [
        ("Divergence", _label(pairs)),
        ("Direction", "the mean of both" if pairs.symmetric else "from the first to the second"),
        ("Estimate", {"plug": "plug-in"}.get(pairs.read_out, f"posterior {pairs.read_out}")),
        ("Interval", plain_level(pairs.level)),
        ("Partitions", "shared by all sets" if pairs.partition == "joint" else "for each pair"),
        ("Sets", f"{len(pairs.names):,}"),
        ("Pairs", f"{total:,}"),
        ("cobpm", cobpm.__version__),
    ]
    if pairs.partition == "joint" and pairs._posterior_of is not None and len(pairs.names) > 1:
        about = pairs.posterior(0, 1).provenance  # at hand already
        rows[6:6] = [("Columns", listed(map(str, about.get("columns", []))))]
        rows += [
            ("Seed", str(about.get("settings", {}).get("seed", "unknown"))),
            ("Data (SHA-256)", str(about.get("data_sha256", "unknown"))),
            ("Computed", str(about.get("created", "unknown")).replace("T", " ")),
        ]
    return [(name, clean(value)) for name, value in rows]


# --- the heat map ------------------------------------------------------------------------------


def _largest(pairs: Pairwise) -> float:
    finite = pairs.matrix[np.isfinite(pairs.matrix)]
    return float(finite.max(initial=0.0))


def _shades(values: FloatArray, largest: float) -> list[str]:
    """A class for each cell, row by row; "" where there is no number."""
    with np.errstate(invalid="ignore"):
        part = np.where(np.isfinite(values), values / (largest or 1.0), 1.0)
    level = np.ceil(np.clip(part, 0.0, 1.0) * SHADES).astype(int)
    return [
        "" if np.isnan(value) else f"q{shade}"
        for value, shade in zip(values.ravel(), level.ravel(), strict=True)
    ]


def _heat_map(pairs: Pairwise, names: tuple[str, ...], rows: list[PairRow]) -> Markup:
    sets, order = len(names), _order(pairs.matrix)
    values = pairs.matrix[np.ix_(order, order)].copy()
    np.fill_diagonal(values, np.nan)
    edges = np.arange(sets + 1) / sets
    cells = cell_paths(_shades(values, _largest(pairs)), edges * BOX[0], edges * BOX[1])
    middles = ((edges[:-1] + edges[1:]) / 2).tolist()
    parts: list[str] = [stretched(*cells)]
    if sets <= MOST_NUMBERS:
        for (i, j), value in np.ndenumerate(values):
            if not np.isnan(value):
                at = {"x": share(middles[j]), "y": share(middles[i])}
                parts.append(
                    element(
                        "text", number(float(value), 2), class_="cell-number", dy="0.33em", **at
                    )
                )
    place = np.argsort(order)
    for row in rows:
        i, j = (int(place[k]) for k in row.pair)
        for a, b in {(i, j), (j, i)} if pairs.symmetric else {(i, j)}:
            size = share(1 / sets)
            at = {"x": share(b / sets), "y": share(a / sets)}
            parts.append(
                element(
                    "rect", class_="region", data_region=row.number, width=size, height=size, **at
                )
            )
    label = f"Heat map of {_label(pairs)} between {sets} sets. The table of pairs has the numbers."
    marks = [
        (middle, f"{cut(names[k], 18)} {number_}")
        for number_, (middle, k) in enumerate(zip(middles, order, strict=True), start=1)
    ]
    top = [
        element("text", str(k), x=share(middle), y=14, text_anchor="middle")
        for k, middle in enumerate(middles, start=1)
    ]
    if sets > MOST_LABELS:
        marks, top = [], []
    return element(
        "figure",
        drawing(None, *top, class_="across", height=20),
        up(marks),
        element("div", drawing(label, *parts, class_="plot"), class_="frame"),
        class_="map heat" if marks else "map heat bare",
    )


def _key(largest: float) -> Markup:
    """What the shades mean."""
    ends = [largest * k / SHADES for k in range(SHADES + 1)]
    items = [("q0", "0")] + [
        (f"q{k}", f"to {number(ends[k], 2)}") for k in range(1, SHADES + 1) if largest > 0
    ]
    icons = (
        element(
            "li",
            element(
                "svg",
                element("rect", class_=f"cell {name}", width=18, height=14),
                width=18,
                height=14,
                aria_hidden="true",
            ),
            text,
        )
        for name, text in items
    )
    return element("ul", element("li", element("ul", *icons)), class_="legend")
