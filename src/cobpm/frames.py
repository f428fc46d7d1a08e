"""Coordinate frames: the same space seen through several maps onto the unit cube.

No f-divergence changes under a bijection that is applied to all sets, but what a partition by
halving can see does. The ratio model therefore looks through several frames and averages. Straight
frames map each column by itself, so their regions can be told in the user's units:

    ranks    the share of pooled points below a value
    warped   that share raised to a power, different for each column
    range    straight from the smallest to the largest value, or between given bounds
    arctan   the arctangent of the robust z-score: straight in the middle, short in the tails

A turned frame ("turned ranks", …) first takes the pooled points to uncorrelated columns of equal
spread and turns them by a random rotation. Powers and rotations are random numbers with seeds of
their own: a frame depends on the samples and its name, and on no seed of the user's.

Two kinds of frames look away from the middle, where turning does not matter or signs do not. They
take columns to normal scores, which no outlier can spoil, and these to uncorrelated ones of equal
spread:

    radius   one axis: how far a point is from the middle, in any direction
    folded   as many axes as columns: how far along each of the principal directions, either way

("radius ranks", "radius arctan", "folded ranks", "folded arctan"). Many points share a place there,
which is no bijection. A partition of what is left is one of the user's space all the same, with
regions like shells; differences that it cannot see count as none, so that divergences in such a
frame are bounded from above by the true ones. With it, heavier tails in all directions or large
values that come together take few cuts to see.

Two rotations are not random: in "means ranks" and "means arctan" the first axis goes where the
means of the sets differ most, in "spreads ranks" and "spreads arctan" the axes go where their
covariances do. They see a difference in few cuts that is oblique to all columns. They also look at
which point belongs to which set before the model does, so they are left out of Bayes factors and
tests, where that would not be fair.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from cobpm.arrays import FloatArray, IntArray
from cobpm.cells import Cells
from cobpm.column_map import BITS, Knots, by_arctan, by_ranks, warped
from cobpm.domain import Domain, Shape
from cobpm.samples import Samples, Seen, bad, check_choice

SHAPES = ("ranks", "warped", "range", "arctan")
TURNED = tuple(f"turned {shape}" for shape in SHAPES)
FOLDING = ("radius ranks", "radius arctan", "folded ranks", "folded arctan")
BLIND = (*SHAPES, *TURNED, *FOLDING)  # to which point is of which set
SEEING = ("means ranks", "means arctan", "spreads ranks", "spreads arctan")
NAMES = (*BLIND, *SEEING)
GRID = "grid"  # the frame of a sketch's own cells; see `cobpm.sketched`
MOST_KNOTS = 2**13  # of ranks: finer than any cell, quick to search, and little to save
LARGEST_WARP = 0.5  # of the logarithm of a power
SMALLEST = 5e-324  # float above zero
FAR = 1e9  # ranges from the middle: points of the user's beyond are brought back
DIGITS = 12  # of means over all points that are to be the same in any order
HAIR = 1e-6  # standard deviations
ROWS_AT_A_TIME = 4096  # to turn, so that they stay in the processor's cache


@dataclass(frozen=True, eq=False)
class Linear:
    """A linear map: (rows / scale − centre) · turn.

    Attributes:
        scale: A power of two per column, about its range: whatever the units, nothing overflows.
        centre: The pooled medians in these units. What is far out costs other points no digits.
        turn: The columns of the user, in rows, to those after the map.
    """

    scale: FloatArray
    centre: FloatArray
    turn: FloatArray

    def turned(self, rows: FloatArray) -> FloatArray:
        """Points after the map."""
        found = np.empty((len(rows), self.turn.shape[1]))
        for part in _parts(rows):
            with np.errstate(over="ignore"):
                standard = np.clip(rows[part] / self.scale - self.centre, -FAR, FAR)
            found[part] = _product(standard, self.turn)
        return found

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """What `from_arrays` needs."""
        return dict(vars(self))

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Linear:
        """Rebuild it."""
        return cls(arrays["scale"], arrays["centre"], arrays["turn"])


@dataclass(frozen=True, eq=False)
class Fold:
    """Distances from the middle, after normal scores have been made uncorrelated.

    Attributes:
        ranks: The map of the columns whose values are turned into scores.
        edge: What the outermost points have for a share, instead of 0 and 1.
        centre: The mean score of each column, or next to it.
        axes: The columns of `ranks`, in rows, to uncorrelated ones of unit spread.
        radius: Whether the distance is that from one point, or along each axis.
    """

    ranks: Domain
    edge: float
    centre: FloatArray
    axes: FloatArray
    radius: bool

    @classmethod
    def of(cls, samples: Samples, ranks: Domain) -> Fold:
        """The principal axes of the pooled scores; along each of them, at first."""
        edge, d = 0.5 / sum(samples.sizes), ranks.d
        raw = cls(ranks, edge, np.zeros(d), np.eye(d), radius=False)
        pooled = np.concatenate([raw.scores(rows) for rows in samples.values])
        # Ranks often mirror each other. With a middle that is off by a hair, no two points tie, and
        # without the last digits of means it is the same one in whatever order points come.
        centre = np.round(pooled.mean(axis=0), DIGITS) + HAIR / np.arange(1, d + 1)
        pooled -= centre
        spread = np.round(pooled.T @ pooled / len(pooled), DIGITS)
        return replace(raw, centre=centre, axes=_whitened(spread))

    def scores(self, rows: FloatArray) -> FloatArray:
        """Normal scores: the normal value below which as much lies as below a point's."""
        return np.asarray(ndtri(np.clip(self.ranks.unit(rows), self.edge, 1 - self.edge)))

    def turned(self, rows: FloatArray) -> FloatArray:
        """Points after the map."""
        found = np.empty((len(rows), 1 if self.radius else self.axes.shape[1]))
        for part in _parts(rows):
            along = _product(self.scores(rows[part]) - self.centre, self.axes)
            found[part] = _length(along) if self.radius else np.abs(along)
        return found

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """What `from_arrays` needs."""
        own = {"fold_edge": np.array(self.edge), "fold_centre": self.centre, "fold_axes": self.axes}
        radius = {"fold_radius": np.array(self.radius)}
        return own | radius | {f"fold_{k}": array for k, array in self.ranks.to_arrays().items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Fold:
        """Rebuild it."""
        own = {k.removeprefix("fold_"): v for k, v in arrays.items() if k.startswith("fold_")}
        ranks = Domain.from_arrays(own)
        return cls(ranks, float(own["edge"]), own["centre"], own["axes"], bool(own["radius"]))


def _parts(rows: FloatArray) -> Iterator[slice]:
    return (slice(at, at + ROWS_AT_A_TIME) for at in range(0, len(rows), ROWS_AT_A_TIME))


def _product(rows: FloatArray, matrix: FloatArray) -> FloatArray:
    """A matrix product whose rounding does not depend on how many rows there are.

    Points that are equal have to stay so, in sets of any sizes.
    """
    found = np.zeros((len(rows), matrix.shape[1]))
    for j, weights in enumerate(matrix):
        found += rows[:, j, np.newaxis] * weights
    return found


def _length(rows: FloatArray) -> FloatArray:
    """The length of each row, as a column."""
    squares = np.zeros((len(rows), 1))
    for j in range(rows.shape[1]):
        squares += rows[:, j : j + 1] ** 2
    return np.sqrt(squares)


@dataclass(frozen=True, eq=False)
class Frame:
    """A map of the user's space onto the unit cube: a turn or fold, if any, and a domain after it.

    Attributes:
        name: One of `NAMES`, or `GRID`.
        domain: The map of each column onto [0, 1].
        before: What comes before it in a frame that is turned or folded, else None.
    """

    name: str
    domain: Domain
    before: Linear | Fold | None = None

    @property
    def straight(self) -> bool:
        """Whether the domain's columns are the user's."""
        return self.before is None

    @property
    def blind(self) -> bool:
        """Whether the frame would be the same had the points been of other sets."""
        return is_blind(self.name)

    def turned(self, rows: FloatArray) -> FloatArray:
        """Points of the user in the columns of the domain."""
        return rows if self.before is None else self.before.turned(rows)

    def codes(self, rows: FloatArray) -> IntArray:
        """Cells of points, as in `Cells`; those outside the domain are put at its edge."""
        unit = self.domain.unit(self.turned(rows))
        codes = np.minimum(np.floor(unit * 2.0**BITS), 2.0**BITS - 1)
        return np.ascontiguousarray(codes.astype(np.uint64).T)

    def encode(self, samples: Samples) -> Cells:
        """Put the samples that the frame was fitted to on its grid."""
        return self.domain.encode(_turned_samples(samples, self.before))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Plain arrays that hold the whole frame but for its name, for saving."""
        return self.domain.to_arrays() | ({} if self.before is None else self.before.to_arrays())

    @classmethod
    def from_arrays(cls, name: str, arrays: Mapping[str, NDArray[Any]]) -> Frame:
        """Rebuild a frame from what `to_arrays` returned."""
        before: Linear | Fold | None = None
        if "turn" in arrays:
            before = Linear.from_arrays(arrays)
        elif "fold_axes" in arrays:
            before = Fold.from_arrays(arrays)
        return cls(name, Domain.from_arrays(arrays), before)


def is_blind(name: str) -> bool:
    """Whether a frame of that name does not look at which point is of which set."""
    return name in BLIND or name == GRID


def _turned_samples(samples: Samples, by: Linear | Fold | None) -> Samples:
    """All sample sets in the columns that a frame's domain has."""
    if by is None:
        return samples
    values = tuple(by.turned(rows) for rows in samples.values)
    columns = tuple(f"direction {k + 1}" for k in range(values[0].shape[1]))
    return replace(samples, columns=columns, values=values, kinds=())


def fit_frames(samples: Samples, names: Sequence[str], bounds: FloatArray | None) -> list[Frame]:
    """Fit frames to the pooled samples.

    Args:
        samples: All sample sets.
        names: Which frames, by their names.
        bounds: Limits of the columns for the frame "range": what `check_bounds` returns.
    """
    straight = [name for name in names if name in SHAPES]
    fitted = Domain.fit_each(samples, None, [_knots(name) for name in straight])
    domains = dict(zip(straight, fitted, strict=True))
    if bounds is not None and "range" in domains:
        domains["range"] = Domain.fit(samples, bounds)
    others = [name for name in straight if name != "range"]
    if "range" in domains and others:  # points that are too close for it are not for these
        domains["range"] = replace(domains["range"], notices=domains[others[0]].notices)
    frames = [Frame(name, domains[name]) for name in straight]
    turned = [name for name in names if name not in (*straight, *FOLDING)]
    if turned:
        whitening = _Whitening.of(samples)
        frames += [_turned_frame(samples, name, whitening) for name in turned]
    if len(frames) < len(names):
        ranks = domains.get("ranks") or Domain.fit_each(samples, None, [_knots("ranks")])[0]
        fold = Fold.of(samples, replace(ranks, notices=()))
        for kind in ("radius", "folded"):
            own = [name for name in names if name in FOLDING and name.startswith(kind)]
            frames += _folded_frames(samples, own, replace(fold, radius=kind == "radius"))
    frames.sort(key=lambda frame: names.index(frame.name))
    return frames


def check_frames(frames: Any, *, owner: str, d: int) -> tuple[str, ...]:
    """The names of the frames that a user asks for.

    Args:
        frames: "auto" for all; a number for so many of them, beginning with "ranks"; or a list of
            names.
        owner: The function that the user called, for messages.
        d: Number of columns that vary. A turned frame of a single column is no other frame.
    """
    known = NAMES if d > 1 else SHAPES
    if isinstance(frames, str) and frames == "auto":
        return known
    if isinstance(frames, int | np.integer) and not isinstance(frames, bool):
        if not 1 <= frames <= len(NAMES):
            rule = f"be a number from 1 to {len(NAMES)}, 'auto', or a list of names"
            raise bad("frames", owner, rule, frames)
        return known[:frames]
    if isinstance(frames, str) or not isinstance(frames, list | tuple) or not frames:
        way_out = f"The names are {', '.join(map(repr, NAMES))}."
        raise bad("frames", owner, "be 'auto', a number, or a list of names", frames, way_out)
    names = [check_choice(name, NAMES, parameter="frames", owner=owner) for name in frames]
    if len(set(names)) < len(names):
        raise bad("frames", owner, "name each frame once", frames)
    if missing := [name for name in names if name not in known]:
        seen, way_out = Seen(f"{missing[0]!r} for a single column"), "Leave it out."
        raise bad("frames", owner, "name frames that differ", seen, way_out)
    return tuple(names)


_by_ranks: Knots = partial(by_ranks, most=MOST_KNOTS)


def _knots(shape: str) -> Shape:
    """How the maps of a shape run between atoms, by column."""
    if shape == "warped":
        return _warp
    chosen = {"range": None, "arctan": by_arctan, "ranks": _by_ranks}[shape]
    return lambda column: chosen


def _warp(column: int) -> Knots:
    rng = np.random.default_rng(column)
    power = float(np.exp(rng.uniform(-LARGEST_WARP, LARGEST_WARP)))
    return warped(_by_ranks, power, mirrored=bool(rng.integers(2)))


@dataclass(frozen=True)
class _Whitening:
    """A linear map to uncorrelated columns of unit spread, of all sets together."""

    scale: FloatArray
    centre: FloatArray
    matrix: FloatArray
    means: FloatArray  # of each set, after it
    covariances: FloatArray

    @classmethod
    def of(cls, samples: Samples) -> _Whitening:
        pooled = np.concatenate(samples.values)
        low, high = pooled.min(axis=0), pooled.max(axis=0)
        half = np.where(low < high, np.maximum(high / 2 - low / 2, SMALLEST), 1.0)
        scale = np.ldexp(1.0, np.frexp(half)[1] - 1)
        centre = np.median(pooled / scale, axis=0)
        shares = np.array(samples.sizes) / len(pooled)
        standard = [rows / scale - centre for rows in samples.values]
        own = np.array([rows.mean(axis=0) for rows in standard])
        within = np.array(
            [
                (rows - mean).T @ (rows - mean) / len(rows)
                for rows, mean in zip(standard, own, strict=True)
            ]
        )
        away = own - shares @ own
        spread = np.einsum("s,sij->ij", shares, within) + np.einsum("s,si,sj", shares, away, away)
        matrix = _whitened(spread)
        return cls(scale, centre, matrix, away @ matrix, matrix.T @ within @ matrix)

    def rotation(self, name: str, shares: FloatArray) -> FloatArray:
        """How a frame of that name turns the columns after the map."""
        d = self.matrix.shape[1]
        if name in BLIND:
            drawn = np.random.default_rng(BLIND.index(name)).normal(size=(d, d))
            turn, upper = np.linalg.qr(drawn)
            return np.asarray(turn * np.sign(np.diag(upper)))
        away = self.covariances - np.einsum("s,sij->ij", shares, self.covariances)
        _, axes = np.linalg.eigh(np.einsum("s,sij,sjk->ik", shares, away, away))
        axes = axes[:, ::-1]  # where the covariances differ most comes first
        if name.startswith("spreads"):
            return _settled(axes)
        _, _, directions = np.linalg.svd(np.sqrt(shares)[:, np.newaxis] * self.means)
        few = min(len(shares) - 1, d)
        turn, _ = np.linalg.qr(np.column_stack([directions[:few].T, axes]))
        return _settled(turn[:, :d])


def _whitened(spread: FloatArray) -> FloatArray:
    """A matrix from columns of this covariance to uncorrelated ones of unit variance."""
    # Columns of one spread first: what a unit is must not decide what counts as no spread.
    deviation = np.sqrt(np.diag(spread))
    deviation[deviation == 0.0] = 1.0
    variances, axes = np.linalg.eigh(spread / np.outer(deviation, deviation))
    kept = variances > 1e-10 * variances[-1]
    return np.asarray(
        (_settled(axes[:, kept]) / np.sqrt(variances[kept])) / deviation[:, np.newaxis]
    )


def _settled(axes: FloatArray) -> FloatArray:
    """Axes, in columns, with signs that rounding does not choose: not along the mirrored ones."""
    weights = 1 / np.arange(1, len(axes) + 1)
    return np.asarray(np.where(weights @ axes < 0, -axes, axes))


def _turned_frame(samples: Samples, name: str, whitening: _Whitening) -> Frame:
    shape = name.partition(" ")[2]
    shares = np.array(samples.sizes) / sum(samples.sizes)
    turn = whitening.matrix @ whitening.rotation(name, shares)
    linear = Linear(whitening.scale, whitening.centre, turn)
    (domain,) = Domain.fit_each(_turned_samples(samples, linear), None, [_knots(shape)])
    return Frame(name, replace(domain, notices=()), linear)


def _folded_frames(samples: Samples, names: Sequence[str], fold: Fold) -> list[Frame]:
    """Frames of one kind of fold, which is made once for all of them."""
    if not names:
        return []
    shapes = [_knots(name.partition(" ")[2]) for name in names]
    domains = Domain.fit_each(_turned_samples(samples, fold), None, shapes)
    return [
        Frame(name, replace(domain, notices=()), fold)
        for name, domain in zip(names, domains, strict=True)
    ]
