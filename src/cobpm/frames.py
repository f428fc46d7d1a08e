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
their own: a frame depends on the pooled points and its name, and on no seed of the user's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cobpm.arrays import FloatArray, IntArray
from cobpm.cells import Cells
from cobpm.column_map import BITS, Knots, by_arctan, by_ranks, warped
from cobpm.domain import Domain, Shape
from cobpm.samples import Samples, Seen, bad, check_choice

SHAPES = ("ranks", "warped", "range", "arctan")
NAMES = (*SHAPES, *(f"turned {shape}" for shape in SHAPES))
LARGEST_WARP = 0.5  # of the logarithm of a power


@dataclass(frozen=True, eq=False)
class Frame:
    """A bijection of the user's space onto the unit cube: a turn, if any, and a domain after it.

    Attributes:
        name: One of `NAMES`.
        domain: The map of each column onto [0, 1].
        centre: What is subtracted before a turn, one number per column; None if there is no turn.
        turn: The columns of the user, in rows, to those of the domain.
    """

    name: str
    domain: Domain
    centre: FloatArray | None = None
    turn: FloatArray | None = None

    @property
    def straight(self) -> bool:
        """Whether the domain's columns are the user's."""
        return self.turn is None

    def turned(self, rows: FloatArray) -> FloatArray:
        """Points of the user in the columns of the domain."""
        if self.turn is None or self.centre is None:
            return rows
        return _turn([rows], self.centre, self.turn)[0]

    def codes(self, rows: FloatArray) -> IntArray:
        """Cells of points, as in `Cells`; those outside the domain are put at its edge."""
        unit = self.domain.unit(self.turned(rows))
        codes = np.minimum(np.floor(unit * 2.0**BITS), 2.0**BITS - 1)
        return np.ascontiguousarray(codes.astype(np.uint64).T)

    def encode(self, samples: Samples) -> Cells:
        """Put the samples that the frame was fitted to on its grid."""
        if self.turn is None or self.centre is None:
            return self.domain.encode(samples)
        values = _turn(samples.values, self.centre, self.turn)
        return self.domain.encode(replace(samples, columns=self.domain.columns, values=values))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Plain arrays that hold the whole frame but for its name, for saving."""
        arrays = self.domain.to_arrays()
        if self.centre is not None and self.turn is not None:
            arrays |= {"centre": self.centre, "turn": self.turn}
        return arrays

    @classmethod
    def from_arrays(cls, name: str, arrays: Mapping[str, NDArray[Any]]) -> Frame:
        """Rebuild a frame from what `to_arrays` returned."""
        return cls(name, Domain.from_arrays(arrays), arrays.get("centre"), arrays.get("turn"))


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
    return [
        Frame(name, domains[name]) if name in domains else _turned_frame(samples, name)
        for name in names
    ]


def check_frames(frames: Any, *, owner: str, d: int) -> tuple[str, ...]:
    """The names of the frames that a user asks for.

    Args:
        frames: "auto" for all; a number for so many of them, straight and turned ones in turns;
            or a list of names.
        owner: The function that the user called, for messages.
        d: Number of columns that vary. A turned frame of a single column is no other frame.
    """
    known = NAMES if d > 1 else SHAPES
    in_turns = [name for pair in zip(SHAPES, NAMES[len(SHAPES) :], strict=True) for name in pair]
    if isinstance(frames, str) and frames == "auto":
        return known
    if isinstance(frames, int | np.integer) and not isinstance(frames, bool):
        if not 1 <= frames <= len(NAMES):
            rule = f"be a number from 1 to {len(NAMES)}, 'auto', or a list of names"
            raise bad("frames", owner, rule, frames)
        return tuple(name for name in in_turns if name in known)[:frames]
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


def _knots(shape: str) -> Shape:
    """How the maps of a shape run between atoms, by column."""
    if shape == "warped":
        return _warp
    chosen = {"range": None, "arctan": by_arctan, "ranks": by_ranks}[shape]
    return lambda column: chosen


def _warp(column: int) -> Knots:
    rng = np.random.default_rng(column)
    power = float(np.exp(rng.uniform(-LARGEST_WARP, LARGEST_WARP)))
    return warped(by_ranks, power, mirrored=bool(rng.integers(2)))


def _turned_frame(samples: Samples, name: str) -> Frame:
    values = samples.values
    centre = np.average(
        [rows.mean(axis=0) for rows in values], axis=0, weights=[len(rows) for rows in values]
    )
    spread = sum((rows - centre).T @ (rows - centre) for rows in values) / sum(samples.sizes)
    # Columns of one spread first: what a unit is must not decide what counts as no spread.
    scale = np.sqrt(np.diag(spread))
    scale[scale == 0.0] = 1.0
    variances, axes = np.linalg.eigh(spread / np.outer(scale, scale))
    kept = variances > 1e-10 * variances[-1]
    whitened = (axes[:, kept] / np.sqrt(variances[kept])) / scale[:, None]
    rng = np.random.default_rng(NAMES.index(name))
    rotation, upper = np.linalg.qr(rng.normal(size=(whitened.shape[1],) * 2))
    turn = whitened @ (rotation * np.sign(np.diag(upper)))
    columns = tuple(f"direction {k + 1}" for k in range(turn.shape[1]))
    turned = replace(samples, columns=columns, values=_turn(values, centre, turn))
    (domain,) = Domain.fit_each(turned, None, [_knots(name.removeprefix("turned "))])
    return Frame(name, replace(domain, notices=()), centre, turn)


def _turn(
    values: Sequence[FloatArray], centre: FloatArray, turn: FloatArray
) -> tuple[FloatArray, ...]:
    return tuple((rows - centre) @ turn for rows in values)
