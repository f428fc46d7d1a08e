"""Bins for pictures of one column, in the user's units.

Bins are of one width. They cover what most points of each set span. Values farther out, if there
are any, go to the first and the last bin, which are open then: one value of 1e12 does not flatten
the rest. Values that lie on a lattice, such as integers, dates or prices in cents, get bins of
whole steps, so that all bins hold as many lattice values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cobpm.arrays import FloatArray, IntArray

CENTRAL = 0.99  # of each set that bins have to cover closely
FENCE = 10.0  # quartile ranges beyond the quartiles: farther out is an outlier, in a few points too
ROOM = 0.5  # of the covered range: the ends of the column get in if they are no farther away
FEWEST, USUAL = 8, 40  # bins, for a few values and for many
MOST_DISTINCT = 20_000  # values to look for a lattice in


@dataclass(frozen=True, eq=False)
class Bins:
    """Intervals side by side: bin k holds the values from edge k up to edge k + 1.

    Attributes:
        edges: Ascending and evenly spaced, one more than bins.
        open_low: Whether the first bin holds all that is lower, too.
        open_high: Whether the last bin holds all that is higher, too.
        step: Distance of the lattice that the values lie on, or None.
    """

    edges: FloatArray
    open_low: bool = False
    open_high: bool = False
    step: float | None = None

    def __len__(self) -> int:
        return len(self.edges) - 1

    def of(self, values: FloatArray) -> IntArray:
        """The bin that each value falls into."""
        return np.clip(np.searchsorted(self.edges, values, side="right") - 1, 0, len(self) - 1)

    def counts(self, values: FloatArray) -> IntArray:
        """How many of some values fall into each bin."""
        return np.bincount(self.of(values), minlength=len(self))

    def middles(self, values: FloatArray) -> FloatArray:
        """A typical value for each bin: the median of those inside, else its centre."""
        middles = self.edges[:-1] / 2 + self.edges[1:] / 2
        order = np.sort(values)
        which = self.of(order)
        first, last = (np.searchsorted(which, range(len(self)), side) for side in ("left", "right"))
        inside = first < last
        middles[inside] = order[(first[inside] + last[inside] - 1) // 2]
        return middles


def choose_bins(sets: list[FloatArray], most: int | None, ends: tuple[float, float]) -> Bins:
    """Bins for one column of some sets.

    Args:
        sets: The values of each set, or some of them, in any order.
        most: Bins at the most, but for open ends. None for a number that goes with that of values:
            up to `USUAL`, or `USUAL` where values lie on a lattice.
        ends: Smallest and largest of all values.
    """
    lowest, highest = ends
    if lowest == highest:
        half = 0.5 if abs(lowest) < 1e6 else abs(lowest) * 1e-6
        return Bins(np.array([lowest - half, lowest + half]))
    low, high = _covered(sets, lowest, highest)
    pooled = np.concatenate(sets)
    step = _lattice(pooled[(low <= pooled) & (pooled <= high)])
    open_low, open_high = lowest < low, highest > high
    if most is None:
        most = USUAL if step else int(np.clip(2 * np.cbrt(len(pooled)), FEWEST, USUAL))
    if step is None:
        shares = np.arange(-int(open_low), most + int(open_high) + 1) / most
        edges = low * (1 - shares) + high * shares  # not from a width, which may overflow
    else:
        width = step * np.ceil(((high - low) / step + 1 - 1e-9) / most)
        count = int(np.ceil((high - low + step) / width - 1e-9))
        edges = low - step / 2 + width * np.arange(-int(open_low), count + int(open_high) + 1)
    edges = np.unique(np.nan_to_num(edges))  # a range of a few floats has no room for more
    return Bins(edges, bool(open_low), bool(open_high), step)


def _covered(sets: list[FloatArray], lowest: float, highest: float) -> tuple[float, float]:
    """The range that bins cover closely: all of it, unless some points are far out."""
    outside = (1 - CENTRAL) / 2
    lows, highs = [], []
    for values in sets:
        # Halved, so that no difference overflows. "nearest" keeps to values that occur.
        low, lower, upper, high = (
            np.quantile(values, [outside, 0.25, 0.75, 1 - outside], method="nearest") / 2
        )
        fence = FENCE * min(upper - lower, 1e300)
        if fence > 0:
            inside = values[(values / 2 >= lower - fence) & (values / 2 <= upper + fence)]
            low, high = max(low, inside.min() / 2), min(high, inside.max() / 2)
        lows.append(low)
        highs.append(high)
    half_low, half_high = min(lows), max(highs)
    if half_low == half_high:  # all but a few points share one value
        return lowest, highest
    room = ROOM * (half_high - half_low)
    low = lowest if lowest / 2 >= half_low - room else 2 * half_low
    high = highest if highest / 2 <= half_high + room else 2 * half_high
    return float(low), float(high)


def _lattice(values: FloatArray) -> float | None:
    """The distance that divides all gaps between the values, if there is a sensible one."""
    distinct = np.unique(values)
    if not 2 <= len(distinct) <= MOST_DISTINCT or np.abs(distinct).max() > 1e300:
        return None
    gaps = np.diff(distinct)
    with np.errstate(over="ignore", invalid="ignore"):
        steps = gaps / gaps.min()
    # Far more steps than values would be a coincidence, or a lattice too fine to be seen.
    rounded = np.abs(steps - np.round(steps)) <= 1e-6 * steps
    if rounded.all() and steps.sum() <= 100 * len(distinct) and len(distinct) < len(values):
        return float((distinct[-1] - distinct[0]) / np.round(steps).sum())
    whole = np.abs(distinct).max() < 2**53 and bool((distinct == np.round(distinct)).all())
    return 1.0 if whole else None
