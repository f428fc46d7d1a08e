"""The table of regions: where two sets differ, in the user's units."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from cobpm.arrays import BoolArray, FloatArray, IntArray
from cobpm.model import PaperModel
from cobpm.samples import InputError, Seen, bad
from cobpm.units import in_words

if TYPE_CHECKING:
    import pandas as pd

    from cobpm.domain import Domain
    from cobpm.frames import Frame
    from cobpm.partitions import Partitions
    from cobpm.posterior import Posterior

ENOUGH_DRAWS = 0.01  # of all draws in one frame, to tell regions by them


@dataclass(frozen=True)
class Ends:
    """What each region spans in one column.

    Attributes:
        name: The column.
        kind: What it holds; see `cobpm.units`.
        low: Lower ends.
        high: Upper ends.
        has_low: Whether the lower end lies in the region itself.
        has_high: Whether the upper end lies in the region itself.
        cut_low: Whether the region ends there because of a cut, and not where the column does.
        cut_high: The same for the upper end.
    """

    name: str
    kind: str
    low: FloatArray
    high: FloatArray
    has_low: BoolArray
    has_high: BoolArray
    cut_low: BoolArray
    cut_high: BoolArray

    def at(self, rows: IntArray) -> Ends:
        """Some of the regions."""
        chosen = (getattr(self, entry.name)[rows] for entry in fields(self)[2:])
        return Ends(self.name, self.kind, *chosen)

    def sentences(self) -> list[str]:
        """Each region's part in words; empty where the column is not cut."""
        parts = (getattr(self, entry.name).tolist() for entry in fields(self)[2:])
        return [
            in_words(
                self.name,
                self.kind,
                low,
                high,
                has_low=has_low,
                has_high=has_high,
                cut_low=cut_low,
                cut_high=cut_high,
            )
            for low, high, has_low, has_high, cut_low, cut_high in zip(*parts, strict=True)
        ]


def region_table(post: Posterior, level: float, pair: tuple[int, int] | None) -> pd.DataFrame:
    """The regions of the most probable partition drawn; see `Posterior.regions`."""
    import pandas as pd

    return pd.DataFrame(region_columns(post, level, pair))


def region_columns(
    post: Posterior, level: float, pair: tuple[int, int] | None
) -> dict[str, IntArray | FloatArray | NDArray[np.object_]]:
    """The columns of that table, for those who do without pandas."""
    post = along_columns(post)
    frame, partitions, leaves = straightest(post)
    shown = partitions.one(int(np.argmax(post.model.log_weights(partitions))))
    levels, indices = shown.boxes()
    ends = all_ends(frame.domain, levels, indices)
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
        if points is not None:  # a leaf or box without points may have no mass at all
            np.maximum(found, np.finfo(float).tiny, out=found)
        return _summed(found, groups, axis=1) if merged else found

    # One set at a time: all draws of all regions of many sets would be a lot to hold.
    kept = {k: masses(k) for k in (pair or (0,))}
    table: dict[str, Any] = {"where": np.array(where(ends, len(first)), dtype=object)}
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
    return {name: column[order] for name, column in table.items()}


def straightest(post: Posterior) -> tuple[Frame, Partitions, slice]:
    """The frame with the user's own columns that has most draws, and these."""
    views = [view for view in post._by_frame() if view[0].straight]
    if views:
        return max(views, key=lambda view: len(view[1]))
    if any(frame.straight for frame in post.frames):
        raise InputError(
            "Turned frames have all draws of this posterior, and a posterior from a file has no "
            "points to look along the columns with. Call regions() before save()."
        )
    rule, seen = "include one with the columns as they are", Seen("turned frames only")
    raise bad("frames", "regions", rule, seen, "Add 'ranks' to the frames.")


# By posterior, which none of the values refers to: they go with it.
_along_columns: WeakKeyDictionary[Posterior, Posterior] = WeakKeyDictionary()


def along_columns(post: Posterior) -> Posterior:
    """A posterior with enough draws in a frame that keeps the user's columns.

    Where the sets differ across the columns, turned frames may have nearly all draws. Then the
    other frames are looked through once more, by themselves.
    """
    frames = [frame for frame in post.frames if frame.straight]
    own = max((len(drawn) for frame, drawn, _ in post._by_frame() if frame.straight), default=0)
    enough = own >= max(1, ENOUGH_DRAWS * len(post.partitions))
    if enough or not frames or post.samples is None:
        return post
    if post not in _along_columns:
        from cobpm.api import posterior_in

        _along_columns[post] = posterior_in(post, frames)
    return _along_columns[post]


def all_ends(domain: Domain, levels: IntArray, indices: IntArray) -> list[Ends]:
    """What boxes span in every column that varies; they are given as by `Partitions.boxes`."""
    found = []
    for active, column in enumerate(domain.active):
        width = np.ldexp(1.0, -levels[:, active].astype(int))
        start = indices[:, active] * width
        stop = start + width
        low, high = domain.interval(active, start, stop)
        has_low, has_high = domain.has_ends(active, start, stop)
        name, kind = domain.columns[column], domain.kind(column)
        found.append(Ends(name, kind, low, high, has_low, has_high, start > 0.0, stop < 1.0))
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


def _free(name: str, table: dict[str, Any]) -> str:
    """The name, made longer if a column of the user's is called like one of the table's own."""
    while name in table:
        name = f"column_{name}"
    return name
