"""Divergences between all pairs of many sets: the result, and the way there from one posterior."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cobpm.arrays import BoolArray, FloatArray, IntArray
from cobpm.divergence_matrix import divergence_matrix
from cobpm.divergences import Divergence
from cobpm.ratio_model import RatioModel
from cobpm.samples import (
    Samples,
    Seen,
    bad,
    check_choice,
    check_positive,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from cobpm.partitions import Partitions
    from cobpm.posterior import Posterior

PARTITIONS = ("joint", "pair")
FEW_SETS = 10  # up to here each pair's exact mean is affordable
BLOCK_BYTES = 1 << 26  # of draws of divergences held at a time
DISTANCES = ("tv", "hellinger")  # all other divergences grow like a squared distance
SYMMETRIC = (
    *("tv", "hellinger", "squared_hellinger", "js", "jeffreys"),
    *("renyi:0.5", "tsallis:0.5", "alpha:0.5"),
)
NEIGHBOUR = 7  # whose distance is a set's own scale, as in Zelnik-Manor and Perona (2004)


@dataclass(frozen=True)
class Question:
    """What is asked of every pair: a divergence, an interval's level, and how to read it out."""

    divergence: Divergence
    level: float
    read_out: str  # "mean", "median" or "plug"; see `Posterior.estimate`
    mean_of_both: bool  # directions, because the user asked for it

    @property
    def symmetric(self) -> bool:
        """Whether both directions of a pair have the same answer."""
        return self.mean_of_both or self.divergence.name in SYMMETRIC

    @property
    def both_ways(self) -> bool:
        """Whether it takes both directions to work one out."""
        return self.mean_of_both and self.divergence.name not in SYMMETRIC

    def check_mean(self, post: Posterior) -> None:
        """Refuse to report a mean that does not exist."""
        least = post.model.least_pseudo_count
        if self.read_out == "mean" and not self.divergence.mean_exists(least):
            raise bad(
                "read_out",
                "pairwise",
                "name a number that exists",
                self.read_out,
                f"{self.divergence.why_no_mean(least)} Use read_out='median'.",
            )


@dataclass(frozen=True, eq=False)
class Pairwise:
    """Divergences between all pairs of sets, with credible intervals.

    Rows are the sets that a divergence goes from, columns those it goes to: `matrix[i, j]` is
    D(set i ‖ set j). The diagonal is zero and no entry is negative. After an interrupt, pairs that
    were not reached are NaN.

    Attributes:
        names: Names of the sets.
        divergence: Name of the divergence.
        matrix: Estimates, (S, S).
        low: Lower ends of the credible intervals, (S, S).
        high: Upper ends, (S, S).
        level: Probability that an interval is to hold.
        partition: "joint" if all sets share one posterior over partitions, "pair" if each pair has
            its own.
        symmetric: Whether the entries are means of both directions.
        read_out: What `matrix` holds: "mean", "median" or "plug"; see `Posterior.estimate`.
        warnings: Sentences about how far to trust the numbers.
        notices: What happened to the data on the way.
    """

    names: tuple[str, ...]
    divergence: str
    matrix: FloatArray
    low: FloatArray
    high: FloatArray
    level: float
    partition: str
    symmetric: bool
    read_out: str
    warnings: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    _question: Question | None = field(default=None, repr=False)
    _posterior_of: Callable[[int, int], Posterior] | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        question: Question,
        partition: str,
        names: tuple[str, ...],
        tables: FloatArray,
        posterior_of: Callable[[int, int], Posterior],
        warnings: tuple[str, ...],
        notices: tuple[str, ...],
    ) -> Pairwise:
        """Put the answers to a question, (3, S, S) tables, together with where they come from."""
        return cls(
            names=names,
            divergence=question.divergence.name,
            matrix=tables[0],
            low=tables[1],
            high=tables[2],
            level=question.level,
            partition=partition,
            symmetric=question.symmetric,
            read_out=question.read_out,
            warnings=warnings,
            notices=notices,
            _question=question,
            _posterior_of=posterior_of,
        )

    def posterior(self, first: str | int, second: str | int) -> Posterior:
        """The posterior that two sets were compared with, for regions, log ratios and the rest.

        With partition="joint" it is the one of all sets. With "pair" it is worked out again, and
        comes out as it did the first time.

        Args:
            first: Name of a set, or its number from 0 on.
            second: Likewise.
        """
        i, j = self._pair(first, second, "posterior")
        assert self._posterior_of is not None
        return self._posterior_of(i, j)

    def draws(self, first: str | int, second: str | int) -> FloatArray:
        """Posterior draws of the divergence between two sets.

        Args:
            first: Name of the set that the divergence goes from, or its number from 0 on.
            second: The set that it goes to.
        """
        i, j = self._pair(first, second, "draws")
        assert self._question is not None
        return pair_draws(self.posterior(i, j), self._question, self.names[i], self.names[j])

    def affinity(self, scale: float | str = "median") -> FloatArray:
        """Similarities between 0 and 1, with ones on the diagonal: exp(−D / scale), symmetrised.

        Most divergences grow like a squared distance between neighbouring distributions, and
        exp(−D / scale) is a Gaussian kernel of that distance. Total variation and Hellinger are
        distances themselves and are squared first. With "renyi:0.5" and scale=2 the affinity is
        the Bhattacharyya coefficient ∫√(pq).

        Args:
            scale: A positive number; "median" for the median over all pairs; or "local", where
                each set has a scale of its own, the distance to its 7th neighbour, and a pair the
                product of two.
        """
        matrix = (self._complete("affinity") + self.matrix.T) / 2
        if self.divergence in DISTANCES:
            matrix = matrix**2
        return affinity(matrix, scale)

    def to_frame(self, *, tidy: bool = False) -> pd.DataFrame:
        """The estimates as a square table with the sets' names on both sides.

        Args:
            tidy: Ask for a row per pair instead, with estimate, low and high. If the numbers are
                symmetric, each pair comes once.
        """
        import pandas as pd

        if not tidy:
            return pd.DataFrame(self.matrix, index=list(self.names), columns=list(self.names))
        i, j = np.nonzero(~np.eye(len(self.names), dtype=bool))
        if self.symmetric:
            i, j = np.triu_indices(len(self.names), 1)
        names = np.array(self.names, dtype=object)
        return pd.DataFrame(
            {
                "first": names[i],
                "second": names[j],
                "estimate": self.matrix[i, j],
                "low": self.low[i, j],
                "high": self.high[i, j],
            }
        )

    def plot(self, *, ax: Axes | None = None, dendrogram: bool = True) -> Axes:
        """A heat map of the matrix with similar sets next to each other.

        Args:
            ax: Where to draw; a new figure by default.
            dendrogram: Whether to draw the tree that the order comes from (average linkage of the
                symmetrised matrix) above the map.

        Returns:
            The axes of the heat map.
        """
        from cobpm.plots import heat_map

        self._complete("plot")
        return heat_map(self, ax=ax, dendrogram=dendrogram)

    def write_report(self, path: Any, *, title: str | None = None) -> None:
        """Write a report to an HTML file; see `cobpm.report.write_pairs`."""
        from cobpm.report import write_pairs

        write_pairs(self, path, title=title)

    @property
    def done(self) -> BoolArray:
        """Which pairs have a number: all, unless the work was interrupted."""
        return ~np.isnan(self.matrix)

    def __repr__(self) -> str:
        sets = len(self.names)
        shared = "one shared partition" if self.partition == "joint" else "a partition per pair"
        about = f"Pairwise {self.divergence} of {sets} sets over {shared}"
        if not self.done.all():
            missing = int((~self.done).sum()) // 2
            about += f", {missing:,} of {sets * (sets - 1) // 2:,} pairs missing"
        else:
            upper = self.matrix[~np.eye(sets, dtype=bool)]
            about += f": {upper.min():.4g} to {upper.max():.4g}"
        warnings = [f"Warning: {sentence}" for sentence in self.warnings]
        return "\n".join([about, *warnings, *(f"Notice: {notice}" for notice in self.notices)])

    def _complete(self, owner: str) -> FloatArray:
        if not self.done.all():
            rule = "hold every pair"
            seen = Seen(f"{int((~self.done).sum())} entries without a number")
            raise bad("matrix", owner, rule, seen, "Run pairwise() again with its checkpoint.")
        return self.matrix

    def _pair(self, first: Any, second: Any, owner: str) -> tuple[int, int]:
        i, j = (
            self._index(one, parameter, owner)
            for one, parameter in ((first, "first"), (second, "second"))
        )
        if i == j:
            raise bad("second", owner, "name another set than the first", second)
        return i, j

    def _index(self, name: Any, parameter: str, owner: str) -> int:
        # Names win: a set that a user called "3" is not the fourth.
        if isinstance(name, str) and name in self.names:
            return self.names.index(name)
        whole = isinstance(name, int | np.integer) and not isinstance(name, bool)
        if whole and 0 <= name < len(self.names):
            return int(name)
        known = ", ".join(map(repr, self.names[:8])) + " …" * (len(self.names) > 8)
        way_out = f"The sets are {known}; numbers go from 0 to {len(self.names) - 1}."
        raise bad(parameter, owner, "be the name of a set, or its number", name, way_out)


class PairwiseInterrupted(KeyboardInterrupt):
    """An interrupt during pairwise(…, partition="pair"), with what was done by then.

    Attributes:
        partial: The pairs that are done; the others are NaN.
    """

    def __init__(self, partial: Pairwise, checkpoint: Any) -> None:
        self.partial = partial
        sets = len(partial.names)
        done = (int(partial.done.sum()) - sets) // 2
        kept = "in the attribute 'partial' of this exception"
        if checkpoint is not None:
            kept = f"in '{checkpoint}', and the same call goes on from there"
        super().__init__(f"{done:,} of {sets * (sets - 1) // 2:,} pairs are done: {kept}")


def affinity(matrix: FloatArray, scale: float | str) -> FloatArray:
    """exp(−matrix / scale) of a symmetric matrix of squared distances; see `Pairwise.affinity`."""
    others = ~np.eye(len(matrix), dtype=bool)
    if isinstance(scale, str):
        check_choice(scale, ("median", "local"), parameter="scale", owner="affinity")
    by: Any
    if scale == "local":
        nearest = np.sort(np.where(others, matrix, np.inf), axis=1)
        own = np.sqrt(nearest[:, min(NEIGHBOUR, len(matrix) - 1) - 1])
        by = np.outer(own, own)
    elif scale == "median":
        by = np.median(matrix[others])
    else:
        by = check_positive(
            scale, parameter="scale", owner="affinity", way_out="Or 'median', or 'local'."
        )
    # Where all neighbours coincide the scale is zero: they are alike, and nothing else is.
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.exp(-matrix / by)
    found = np.where(matrix == 0.0, 1.0, found)
    np.fill_diagonal(found, 1.0)
    return np.asarray(found)


# --- from one posterior to all pairs -------------------------------------------------------------


def joint(post: Posterior, question: Question) -> FloatArray:
    """Estimate, lower and upper ends for every pair of sets of one posterior, (3, S, S)."""
    question.check_mean(post)
    sets = len(post.names)
    means = post.mean_masses() if question.read_out == "plug" else None
    found = _read_off(post, question, post.masses, means, post.model.sizes)
    if question.read_out == "mean" and sets <= FEW_SETS:
        for i, j in np.argwhere(~np.eye(sets, dtype=bool)):
            found[0, i, j] = pair_estimate(post, question, post.names[i], post.names[j])
    if question.symmetric:  # to the last digit
        found = (found + found.transpose(0, 2, 1)) / 2
    found[:, range(sets), range(sets)] = 0.0
    return found


def against(post: Posterior, question: Question, samples: Samples, seed: int) -> FloatArray:
    """The same from new sets to those of the posterior, (3, new sets, S).

    The new sets take no part in the choice of partitions. Points outside the domain count in the
    nearest cell.
    """
    if isinstance(post.model, RatioModel):
        return np.concatenate(
            [_against_ratio(post, question, values, seed) for values in samples.values], axis=1
        )
    counts = np.stack([post.counts_of(values) for values in samples.values], axis=1)
    drawn = post.draw_masses(counts, seed)
    means = post.mean_masses(counts) if question.read_out == "plug" else None
    return _read_off(post, question, drawn, means, samples.sizes)


def _against_ratio(
    post: Posterior, question: Question, values: FloatArray, seed: int
) -> FloatArray:
    """The same for one set. Its ratio is to the pooled points, so all masses are drawn with it."""
    wider = post.with_set("new", values, seed)
    means = wider.mean_masses()[:, -1:] if question.read_out == "plug" else None
    found = _read_off(wider, question, wider.masses[:, -1:], means, (len(values),))
    return found[:, :, :-1]


def pair_draws(post: Posterior, question: Question, first: str, second: str) -> FloatArray:
    """Draws of the divergence between two sets, of the mean of both directions if asked for."""
    drawn = post.draws(question.divergence, first, second)
    if question.both_ways:
        drawn = (drawn + post.draws(question.divergence, second, first)) / 2
    return drawn


def pair_estimate(post: Posterior, question: Question, first: str, second: str) -> float:
    """The same for the estimate."""
    if question.read_out == "median":  # of the mean of both, not the mean of two medians
        return float(np.median(pair_draws(post, question, first, second)))
    if question.read_out == "plug":
        i, j = (post.names.index(name) for name in (first, second))
        plugged = post.plugged(question.divergence, i, j)
        if question.both_ways:
            plugged = (plugged + post.plugged(question.divergence, j, i)) / 2
        return float(np.median(plugged))
    found = post.estimate(question.divergence, first, second, read_out=question.read_out)
    if question.both_ways:
        back = post.estimate(question.divergence, second, first, read_out=question.read_out)
        found = (found + back) / 2
    return found


def _read_off(
    post: Posterior,
    question: Question,
    masses: FloatArray,
    mean_masses: FloatArray | None,
    sizes: tuple[int, ...],
) -> FloatArray:
    """Estimates and intervals from some sets to those of the posterior, (3, these sets, S)."""
    found = np.empty((3, masses.shape[1], len(post.names)))
    middle = np.median if question.read_out == "median" else np.mean
    for rows, drawn in _blocks_of_draws(post.partitions, question, masses, post.masses):
        points = np.add.outer(np.asarray(sizes[rows]), np.asarray(post.model.sizes))
        drawn.sort(axis=0)
        found[0, rows] = middle(drawn, axis=0)
        found[1:, rows] = _ends(drawn, post, question.level, points)
    if mean_masses is not None:
        theirs = post.mean_masses()
        for rows, plugged in _blocks_of_draws(post.partitions, question, mean_masses, theirs):
            found[0, rows] = np.median(plugged, axis=0)
    return found


def _ends(drawn: FloatArray, post: Posterior, level: float, points: IntArray) -> FloatArray:
    """Ends of intervals from sorted draws: quantiles whose probabilities depend on the pair."""
    found = np.empty((2, *points.shape))
    for size in np.unique(points):  # sets are often alike in size
        here = points == size
        found[:, here] = np.quantile(drawn[:, here], post.model.tails(level, int(size)), axis=0)
    return found


def _blocks_of_draws(
    partitions: Partitions, question: Question, p: FloatArray, q: FloatArray
) -> Iterator[tuple[slice, FloatArray]]:
    """Divergences from a few sets of `p` at a time to all of `q`, (draws, these sets, all sets)."""
    draws, sets = len(partitions), p.shape[1]
    step = max(1, BLOCK_BYTES // (8 * draws * q.shape[1]))
    starts = partitions.leaf_starts
    for first in range(0, sets, step):
        rows = slice(first, min(sets, first + step))
        found = np.empty((draws, rows.stop - first, q.shape[1]))
        for draw in range(draws):
            leaves = slice(starts[draw], starts[draw + 1])
            ours, theirs = p[leaves, rows], q[leaves]
            found[draw] = divergence_matrix(question.divergence, ours, theirs)
            if question.both_ways:
                back = divergence_matrix(question.divergence, theirs, ours)
                found[draw] = (found[draw] + back.T) / 2
        yield rows, found
