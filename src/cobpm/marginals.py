"""Comparisons of two sets in one or two columns alone.

What a picture shows of one or two columns is a matter of their marginal distributions. A posterior
of many columns is the wrong place to ask for these: it spends its cuts on all columns, so it sees
each of them coarsely. The chosen columns are therefore compared on their own, with the ratio model,
a fixed seed and at most `MOST_ROWS` rows of each set, chosen by a fixed rule. Where the posterior
is about these columns and sets alone, it answers itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from cobpm.arrays import FloatArray, IntArray
from cobpm.bins import Bins
from cobpm.provenance import fingerprint
from cobpm.regions import Ends, all_ends, along_columns, straightest
from cobpm.samples import InputError, Samples, Seen, as_points, bad

if TYPE_CHECKING:
    from cobpm.posterior import Posterior

MOST_ROWS = 20_000  # of each set that take part in a fit for a picture
DRAWS = 1000  # of such a fit
POINTS_PER_BIN = 40  # at which the ratio is looked up


def points_of(post: Posterior, samples: Any = None, owner: str = "points_of") -> Samples:
    """The points that a posterior was fitted to.

    Args:
        post: The posterior.
        samples: The points, as `cobpm.fit` takes them, for a posterior that was loaded from a file:
            a list in the order of its sets, or a mapping from their names.
        owner: The function that the user called, for messages.
    """
    if samples is None:
        if post.samples is not None:
            return post.samples
        seen = Seen("none, and a posterior without its points")
        way_out = (
            "Files do not hold the points. Give them again: samples=[x, y], the same rows in the "
            "same order."
        )
        raise bad("samples", owner, "hold the points of this posterior", seen, way_out)
    if isinstance(samples, Samples):
        return samples
    if isinstance(samples, list | tuple) and len(samples) == len(post.names):
        samples = dict(zip(post.names, samples, strict=True))
    if not isinstance(samples, Mapping) or {*map(str, samples)} != {*post.names}:
        seen = Seen(f"{_kind(samples)}")
        rule = f"be the {len(post.names)} sets of this posterior, in its order or by name"
        raise bad("samples", owner, rule, seen, f"The sets are {post._known_names()}.")
    given = {str(name): rows for name, rows in samples.items()}
    values = tuple(
        as_points(given[name], post.columns, parameter=f"samples[{name!r}]", owner=owner)
        for name in post.names
    )
    found = Samples(post.names, post.columns, values)
    if post.provenance["data_sha256"] != fingerprint(found):
        seen, way_out = Seen("other points"), "It takes the same rows in the same order."
        raise bad("samples", owner, "hold the points of this posterior", seen, way_out)
    return found


@dataclass(frozen=True, eq=False)
class Marginal:
    """Two sets compared in one or two columns alone.

    Attributes:
        post: The posterior of that.
        names: Of the two sets in it.
        points: Of the two sets in these columns, those that take part in pictures.
    """

    post: Posterior
    names: tuple[str, str]
    points: Samples

    def log_ratios(self, bins: Bins, level: float) -> FloatArray:
        """Log ratio of the masses in each bin of a column with its interval, (3, bins).

        A drawn partition spreads the mass of a leaf as the pooled points are, so what it puts into
        a bin is a sum over the points inside: of the mass of their leaf, over its points.
        """
        post = self.post
        pair = [post.names.index(name) for name in self.names]
        values = np.concatenate(self.points.values)[:, 0]
        rows, which = _some_of_each(values, bins)
        # Only leaves with points are looked up.
        leaf_points = np.maximum(post.partitions.counts.sum(axis=1), 1)
        per_point = post.masses[:, pair] / leaf_points[:, np.newaxis]
        starts = np.flatnonzero(np.diff(which, prepend=-1))
        found = np.full((3, len(bins)), np.nan)
        draws = []
        for frame, partitions, leaves in post._by_frame():
            codes = np.ascontiguousarray(frame.encode(self.points).codes[:, rows])
            at = partitions.locate(codes)
            p, q = (np.add.reduceat(per_point[leaves, s][at], starts, axis=1) for s in (0, 1))
            draws.append(np.log(p) - np.log(q))
        log_ratio = np.concatenate(draws)
        tails = [(1 - level) / 2, (1 + level) / 2]
        found[0, which[starts]] = log_ratio.mean(axis=0)
        found[1:, which[starts]] = np.quantile(log_ratio, tails, axis=0)
        return found

    def leaves(self) -> tuple[list[Ends], FloatArray]:
        """The most probable partition drawn in the user's columns: its leaves and log ratios.

        Leaves are told by their ends in each column that varies. There are none if no frame keeps
        the columns.
        """
        try:
            frame, partitions, _ = straightest(along_columns(self.post))
        except InputError:
            return [], np.empty(0)
        shown = partitions.one(int(np.argmax(self.post.model.log_weights(partitions))))
        pair = [self.post.names.index(name) for name in self.names]
        p, q = np.log(self.post.model.mean_masses(shown.counts, shown.starts)[:, pair]).T
        return all_ends(frame.domain, *shown.boxes()), p - q


# By posterior, which none of the values refers to: they go with it.
_fitted: WeakKeyDictionary[Posterior, dict[Any, Marginal]] = WeakKeyDictionary()


def marginal(
    post: Posterior, points: Samples, columns: tuple[int, ...], pair: tuple[int, int]
) -> Marginal:
    """The comparison of two sets in some columns alone, worked out once."""
    if columns == tuple(range(len(post.columns))) and len(post.names) == 2:
        values = tuple(thinned(rows, s) for s, rows in enumerate(points.values))
        names = (post.names[pair[0]], post.names[pair[1]])
        return Marginal(post, names, replace(points, values=values))
    known = _fitted.setdefault(post, {})
    if (columns, pair) not in known:
        from cobpm.api import compare

        x, y = (thinned(points.values[s], s)[:, columns] for s in pair)
        fitted = compare(x, y, draws=DRAWS, rng=0)
        assert fitted.samples is not None
        known[columns, pair] = Marginal(fitted, ("x", "y"), fitted.samples)
    return known[columns, pair]


def thinned(values: FloatArray, index: int, most: int = MOST_ROWS) -> FloatArray:
    """Rows of a set, at most so many. Which ones depends on its number and size alone."""
    return values if len(values) <= most else values[_rows(index, len(values), most)]


@lru_cache(maxsize=64)
def _rows(index: int, size: int, most: int) -> IntArray:
    # At random, since evenly spaced rows of a series may all be Mondays.
    rng = np.random.default_rng([index, size])
    return np.sort(rng.choice(size, most, replace=False))


def _some_of_each(values: FloatArray, bins: Bins) -> tuple[IntArray, IntArray]:
    """Some values of each bin, evenly out of all in it by rank, and their bins, both in order."""
    order = np.argsort(values, kind="stable")
    which = bins.of(values)
    ends = np.searchsorted(which[order], np.arange(len(bins) + 1))
    rows = [
        order[np.linspace(first, last - 1, min(last - first, POINTS_PER_BIN)).round().astype(int)]
        for first, last in pairwise(ends.tolist())
        if first < last
    ]
    chosen = np.concatenate(rows)
    return chosen, which[chosen]


def _kind(samples: Any) -> str:
    if isinstance(samples, Mapping):
        return f"sets named {', '.join(map(repr, list(samples)[:8]))}"
    if isinstance(samples, list | tuple):
        return f"{len(samples)} of them"
    return f"one object of type {type(samples).__name__}"
