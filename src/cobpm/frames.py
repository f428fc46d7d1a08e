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

Two rotations are not random: in "means ranks" and "means arctan" the first axis goes where the
means of the sets differ most, in "spreads ranks" and "spreads arctan" the axes go where their
covariances do. They see a difference in few cuts that is oblique to all columns. They also look at
which point belongs to which set before the model does, so they are left out of Bayes factors and
tests, where that would not be fair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobpm.arrays import FloatArray, IntArray
from cobpm.cells import Cells
from cobpm.column_map import BITS, Knots, by_arctan, by_ranks, warped
from cobpm.domain import Domain, Shape
from cobpm.samples import Samples, Seen, bad, check_choice

SHAPES = ("ranks", "warped", "range", "arctan")
BLIND = (*SHAPES, *(f"turned {shape}" for shape in SHAPES))  # to which point is of which set
SEEING = ("means ranks", "means arctan", "spreads ranks", "spreads arctan")
NAMES = (*BLIND, *SEEING)
GRID = "grid"  # the frame of a sketch's own cells; see `cobpm.sketched`
MOST_KNOTS = 2**13  # of ranks: finer than any cell, quick to search, and little to save
LARGEST_WARP = 0.5  # of the logarithm of a power
SMALLEST = 5e-324  # float above zero
FAR = 1e9  # ranges from the middle: points of the user's beyond are brought back
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
        # Not by a matrix product, whose rounding depends on how many rows there are: points that
        # are equal have to stay so, in sets of any sizes.
        found = np.zeros((len(rows), self.turn.shape[1]))
        for first in range(0, len(rows), ROWS_AT_A_TIME):
            part = slice(first, first + ROWS_AT_A_TIME)
            with np.errstate(over="ignore"):
                standard = np.clip(rows[part] / self.scale - self.centre, -FAR, FAR)
            for j, weights in enumerate(self.turn):
                found[part] += standard[:, j, np.newaxis] * weights
        return found

    def turned_samples(self, samples: Samples) -> Samples:
        """All sample sets after the map."""
        columns = tuple(f"direction {k + 1}" for k in range(self.turn.shape[1]))
        values = tuple(self.turned(rows) for rows in samples.values)
        return replace(samples, columns=columns, values=values, kinds=())


@dataclass(frozen=True, eq=False)
class Frame:
    """A bijection of the user's space onto the unit cube: a turn, if any, and a domain after it.

    Attributes:
        name: One of `NAMES`, or `GRID`.
        domain: The map of each column onto [0, 1].
        linear: What comes before it in a turned frame, else None.
    """

    name: str
    domain: Domain
    linear: Linear | None = None

    @property
    def straight(self) -> bool:
        """Whether the domain's columns are the user's."""
        return self.linear is None

    @property
    def blind(self) -> bool:
        """Whether the frame would be the same had the points been of other sets."""
        return self.name in BLIND or self.name == GRID

    def turned(self, rows: FloatArray) -> FloatArray:
        """Points of the user in the columns of the domain."""
        return rows if self.linear is None else self.linear.turned(rows)

    def codes(self, rows: FloatArray) -> IntArray:
        """Cells of points, as in `Cells`; those outside the domain are put at its edge."""
        unit = self.domain.unit(self.turned(rows))
        codes = np.minimum(np.floor(unit * 2.0**BITS), 2.0**BITS - 1)
        return np.ascontiguousarray(codes.astype(np.uint64).T)

    def encode(self, samples: Samples) -> Cells:
        """Put the samples that the frame was fitted to on its grid."""
        if self.linear is None:
            return self.domain.encode(samples)
        return self.domain.encode(self.linear.turned_samples(samples))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Plain arrays that hold the whole frame but for its name, for saving."""
        return self.domain.to_arrays() | ({} if self.linear is None else vars(self.linear))

    @classmethod
    def from_arrays(cls, name: str, arrays: Mapping[str, NDArray[Any]]) -> Frame:
        """Rebuild a frame from what `to_arrays` returned."""
        linear = None
        if "turn" in arrays:
            linear = Linear(arrays["scale"], arrays["centre"], arrays["turn"])
        return cls(name, Domain.from_arrays(arrays), linear)


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
    if len(straight) < len(names):
        whitening = _Whitening.of(samples)
        frames += [_turned_frame(samples, name, whitening) for name in names if name not in domains]
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
        # Columns of one spread first: what a unit is must not decide what counts as no spread.
        deviation = np.sqrt(np.diag(spread))
        deviation[deviation == 0.0] = 1.0
        variances, axes = np.linalg.eigh(spread / np.outer(deviation, deviation))
        kept = variances > 1e-10 * variances[-1]
        matrix = (_settled(axes[:, kept]) / np.sqrt(variances[kept])) / deviation[:, np.newaxis]
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


def _settled(axes: FloatArray) -> FloatArray:
    """Axes, in columns, with signs that rounding does not choose: not along the mirrored ones."""
    weights = 1 / np.arange(1, len(axes) + 1)
    return np.asarray(np.where(weights @ axes < 0, -axes, axes))


def _turned_frame(samples: Samples, name: str, whitening: _Whitening) -> Frame:
    shape = name.partition(" ")[2]
    shares = np.array(samples.sizes) / sum(samples.sizes)
    turn = whitening.matrix @ whitening.rotation(name, shares)
    linear = Linear(whitening.scale, whitening.centre, turn)
    (domain,) = Domain.fit_each(linear.turned_samples(samples), None, [_knots(shape)])
    return Frame(name, replace(domain, notices=()), linear)
