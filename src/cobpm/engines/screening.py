"""Which frames are worth summing over all points, judged by a part of them.

Where the sets differ, one frame or a few carry nearly all of the weight once there are many points.
A sample of the rows shows which. Frames that fall far behind there are left out before the large
sums begin. Where the sets look alike no frame falls behind, and none is left out: whether they
differ is for all frames and all points to say.

The sample is the same for the same rows in whatever order they come. It holds as many rows of each
set, or all of a small one, so that it says no less of any pair of sets than of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cobpm.arrays import FloatArray
from cobpm.engines import ratio
from cobpm.engines.fit import Plan
from cobpm.frames import BLIND, SHAPES, fit_frames
from cobpm.samples import Samples

ROWS = 50_000  # of all sets together, that choose
FEWEST = 1000  # of each set
WORTH = 2  # times as many rows as choose, from which on choosing saves time
BEHIND = 10.0  # log of the weight by which a frame is to fall behind


def chosen(
    samples: Samples, names: Sequence[str], bounds: FloatArray | None, plan: Plan
) -> tuple[str, ...]:
    """The names of the frames that can matter.

    One frame that is blind to the sets and one with the user's columns are among them, as far as
    there are any: tests of equality need the one, tables of regions the other.

    Args:
        samples: All sample sets.
        names: Which frames there are.
        bounds: Limits of the columns for the frame "range".
        plan: Threads and the most regions to hold.
    """
    quotas = quotas_of(samples.sizes)
    if len(names) < 2 or sum(samples.sizes) < WORTH * sum(quotas):
        return tuple(names)
    few = sample(samples, quotas)
    views = ratio.look(few, fit_frames(few, names, bounds), plan)
    found = np.array([view.log_differs for view in views])
    grown = min(n / k for n, k in zip(samples.sizes, quotas, strict=True))
    # Gaps grow faster than the square root of the rows. Those of a sample are off by less than the
    # root of the evidence itself.
    gaps = found.max() - found - np.sqrt(max(found.max(), 0.0))
    behind = ratio.POWER * gaps * np.sqrt(grown)
    kept = {name for name, gap in zip(names, behind, strict=True) if gap < BEHIND}
    for group in (BLIND, SHAPES):
        members = [k for k, name in enumerate(names) if name in group]
        if members:
            kept.add(names[max(members, key=lambda k: found[k])])
    return tuple(name for name in names if name in kept)


def quotas_of(sizes: Sequence[int]) -> list[int]:
    """How many rows of each set to take: all of a small one, else as many of each."""
    quotas, left = [0] * len(sizes), max(ROWS, FEWEST * len(sizes))
    for number, k in enumerate(sorted(range(len(sizes)), key=lambda k: sizes[k])):
        quotas[k] = min(sizes[k], left // (len(sizes) - number))
        left -= quotas[k]
    return quotas


def sample(samples: Samples, quotas: Sequence[int]) -> Samples:
    """So many rows of each set, spread evenly over the order of their hashes.

    Rows that are the same lie next to each other there, and come as often as is due to them.
    """
    values = []
    for number, (rows, quota) in enumerate(zip(samples.values, quotas, strict=True)):
        if quota == len(rows):
            values.append(rows)
            continue
        order = np.argsort(hashes(rows, number), kind="stable")
        at = (np.arange(quota) * len(rows)) // quota
        values.append(np.ascontiguousarray(rows[order[at]]))
    return replace(samples, values=tuple(values))


def hashes(rows: FloatArray, salt: int) -> NDArray[np.uint64]:
    """A number for each row that looks random and depends on its values alone."""
    found = np.full(len(rows), _mixed(np.array([salt], dtype=np.uint64))[0])
    for column in rows.T:
        bits = (column + 0.0).view(np.uint64)  # one zero, not two
        found = _mixed(found ^ bits)
    return found


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(words ^ (words >> np.uint64(31)))
