"""The table of regions: where two sets differ, in the user's units."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, fields, replace
from math import ceil, log10
from typing import TYPE_CHECKING, Any

import numpy as np

from cobpm.arrays import BoolArray, FloatArray, IntArray
from cobpm.model import PaperModel
from cobpm.samples import Seen, bad, dated_columns

if TYPE_CHECKING:
    import pandas as pd

    from cobpm.domain import Domain
    from cobpm.frames import Frame
    from cobpm.partitions import Partitions
    from cobpm.posterior import Posterior

UNITS = {"D": 86400, "m": 60, "s": 1}  # of dates, in seconds
FARTHEST_DATE = 2.5e11  # seconds: the years 5952 BC to 9892, which all can be written


@dataclass(frozen=True)
class Ends:
    """What each region spans in one column.

    Attributes:
        name: The column.
        low: Lower ends.
        high: Upper ends.
        has_low: Whether the lower end lies in the region itself.
        has_high: Whether the upper end lies in the region itself.
        cut_low: Whether the region ends there because of a cut, and not where the column does.
        cut_high: The same for the upper end.
        dated: Whether values are dates, in seconds since the start of 1970 (UTC).
    """

    name: str
    low: FloatArray
    high: FloatArray
    has_low: BoolArray
    has_high: BoolArray
    cut_low: BoolArray
    cut_high: BoolArray
    dated: bool = False

    def at(self, rows: IntArray) -> Ends:
        """Some of the regions."""
        arrays = {entry.name: getattr(self, entry.name)[rows] for entry in fields(self)[1:-1]}
        return replace(self, **arrays)

    def sentences(self) -> list[str]:
        """Each region's part in words; empty where the column is not cut."""
        parts = []
        for row, (a, b) in enumerate(zip(self.low.tolist(), self.high.tolist(), strict=True)):
            half = b / 2 - a / 2  # halved first: the difference may overflow
            low, high = (_in_words(end, half, self.dated) for end in (a, b))
            above, below = ("≤" if has[row] else "<" for has in (self.has_low, self.has_high))
            if not (self.cut_low[row] or self.cut_high[row]):
                parts.append("")
            elif a == b:
                parts.append(f"{self.name} = {low}")
            elif not self.cut_high[row]:
                parts.append(f"{self.name} {'≥' if above == '≤' else '>'} {low}")
            elif not self.cut_low[row]:
                parts.append(f"{self.name} {below} {high}")
            else:
                parts.append(f"{low} {above} {self.name} {below} {high}")
        return parts


def region_table(post: Posterior, level: float, pair: tuple[int, int] | None) -> pd.DataFrame:
    """The regions of the most probable partition drawn; see `Posterior.regions`."""
    import pandas as pd

    frame, partitions, leaves = _straightest(post)
    shown = partitions.one(int(np.argmax(post.model.log_weights(partitions))))
    levels, indices = shown.boxes()
    dated = dated_columns(post.notices, post.columns)
    ends = all_ends(frame.domain, levels, indices, dated)
    counts = shown.counts.astype(np.int64)
    # The ratio model says nothing of how the pooled points lie inside a leaf, so ask the points.
    points = None if isinstance(post.model, PaperModel) else counts.sum(axis=1)
    # Cuts through a repeated value's own interval cannot be seen in the user's units.
    first, groups = _same_in_words(ends, len(levels))
    merged = len(first) < len(levels)
    if merged:
        ends = [end.at(first) for end in ends]
        counts = _summed(counts, groups, axis=0)

    def masses(k: int) -> FloatArray:
        """What every drawn partition puts on these regions of one set, (draws, regions)."""
        own = post.masses[leaves, k : k + 1]
        found = partitions.box_masses(own, levels, indices, points)[:, :, 0]
        if points is not None:  # where boxes and leaves cross, points and volumes do not add up
            found /= found.sum(axis=1, keepdims=True)
            np.maximum(found, np.finfo(float).tiny, out=found)
        return _summed(found, groups, axis=1) if merged else found

    # One set at a time: all draws of all regions of many sets would be a lot to hold.
    kept = {k: masses(k) for k in (pair or (0,))}
    table: dict[str, Any] = {"where": where(ends, len(first))}
    for k, name in enumerate(post.names):
        table[f"points_{name}"] = counts[:, k]
    for k, name in enumerate(post.names):
        table[f"mass_{name}"] = (kept[k] if k in kept else masses(k)).mean(axis=0)
    if pair is None:
        order = np.argsort(-kept[0].mean(axis=0), kind="stable")
    else:
        p, q = (kept[k] for k in pair)
        log_ratio = np.log(p) - np.log(q)
        table["log_ratio"] = log_ratio.mean(axis=0)
        table["log_ratio_low"], table["log_ratio_high"] = np.quantile(
            log_ratio, [(1 - level) / 2, (1 + level) / 2], axis=0
        )
        table[f"p_{post.names[pair[0]]}_denser"] = (p > q).mean(axis=0)
        order = np.argsort(-np.abs((p - q).mean(axis=0)), kind="stable")
    # Last, since there may be many columns.
    for end in ends:
        table[_free(f"{end.name}_low", table)] = end.low
        table[_free(f"{end.name}_high", table)] = end.high
    return pd.DataFrame(table).iloc[order].reset_index(drop=True)


def _straightest(post: Posterior) -> tuple[Frame, Partitions, slice]:
    """The frame with the user's own columns that has most draws, and these."""
    views = [view for view in post._by_frame() if view[0].straight]
    if not views:
        rule, seen = "include one with the columns as they are", Seen("turned frames only")
        raise bad("frames", "regions", rule, seen, "Add 'ranks' to the frames.")
    return max(views, key=lambda view: len(view[1]))


def all_ends(
    domain: Domain, levels: IntArray, indices: IntArray, dated: Container[int] = ()
) -> list[Ends]:
    """What boxes span in every column that varies; they are given as by `Partitions.boxes`."""
    found = []
    for active, column in enumerate(domain.active):
        width = np.ldexp(1.0, -levels[:, active].astype(int))
        start = indices[:, active] * width
        stop = start + width
        low, high = domain.interval(active, start, stop)
        has_low, has_high = domain.has_ends(active, start, stop)
        name = domain.columns[column]
        cuts = start > 0.0, stop < 1.0
        found.append(Ends(name, low, high, has_low, has_high, *cuts, column in dated))
    return found


def where(ends: list[Ends], rows: int) -> list[str]:
    """Each region in words, naming the columns that were cut."""
    parts = zip(*(end.sentences() for end in ends), strict=True) if ends else [()] * rows
    return [" and ".join(filter(None, row)) or "everywhere" for row in parts]


def _same_in_words(ends: list[Ends], rows: int) -> tuple[IntArray, list[IntArray]]:
    """The first of the regions that span the same in the user's units, and all that do."""
    spans = [(end.low, end.high, end.has_low, end.has_high) for end in ends]
    table = np.array(spans, dtype=np.float64).reshape(-1, rows).T
    found: dict[bytes, list[int]] = {}
    for row in range(rows):
        found.setdefault(table[row].tobytes(), []).append(row)
    groups = [np.array(group) for group in found.values()]
    return np.array([group[0] for group in groups]), groups


def _summed(values: Any, groups: list[IntArray], axis: int) -> Any:
    return np.stack([values.take(group, axis=axis).sum(axis=axis) for group in groups], axis=axis)


def _in_words(end: float, half: float, dated: bool = False) -> str:
    """The end of an interval: exact if that is short, else as many digits as its width needs."""
    if dated and abs(end) < FARTHEST_DATE:
        time = np.datetime64(round(end * 1e6), "us")
        units = [
            unit for unit, seconds in UNITS.items() if seconds <= half / 2 or not end % seconds
        ]
        return str(time.astype(f"datetime64[{units[0] if units else 'us'}]")).replace("T", " ")
    exact = f"{end + 0.0:.15g}"  # minus zero becomes zero
    if len(exact) <= 8 or half == 0.0:
        return exact
    orders = log10(abs(end)) - log10(half)
    return f"{end:.{min(17, max(5, ceil(orders) + 2))}g}"


def _free(name: str, table: dict[str, Any]) -> str:
    """The name, made longer if a column of the user's is called like one of the table's own."""
    while name in table:
        name = f"column_{name}"
    return name
