"""The section of regions: where the two sets differ."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from cobpm.arrays import FloatArray
from cobpm.report.bars import pair_of_bars
from cobpm.report.numbers import number, short_percent
from cobpm.samples import InputError

if TYPE_CHECKING:
    from cobpm.posterior import Posterior

MOST_ROWS = 16  # regions in the table; more do not help anybody
LARGEST_TIMES = 1000.0


@dataclass(frozen=True, eq=False)
class Region:
    """One region, ready to show.

    Attributes:
        number: Its place in the table, from 1.
        where: The region in words.
        points: Points of both sets in it.
        masses: Posterior mean of the share of each set.
        shares: The same in words.
        bar: The same as bars.
        denser: Which set is the denser one, 0 or 1.
        log_ratio: Log of the first set's density over the second's.
        times: How many times denser, in words.
        times_interval: The interval of that.
        sure: Probability that this set is the denser one.
        sure_words: The same in words.
        low: Lower ends in all columns of the data; −inf for one that is not cut.
        high: Upper ends.
    """

    number: int
    where: str
    points: tuple[int, int]
    masses: tuple[float, float]
    shares: tuple[str, str]
    bar: Markup
    denser: int
    log_ratio: float
    times: str
    times_interval: str
    sure: float
    sure_words: str
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True)
class Regions:
    """The regions that contribute most, and what is known of the rest.

    Attributes:
        rows: The regions to show.
        total: How many there are.
        covered: Share of the total variation distance that the shown ones make up.
        problem: Why there are none, if so.
    """

    rows: tuple[Region, ...] = ()
    total: int = 0
    covered: float = 1.0
    problem: str = ""


def regions(post: Posterior, level: float, first: str, second: str) -> Regions:
    """The regions of the most probable partition drawn; see `Posterior.regions`."""
    try:
        table = post.regions(level=level, first=first, second=second)
    except InputError as error:  # only turned frames: no region can be told in columns
        return Regions(problem=str(error))
    # By place: names of sets and columns may be anything, "where" included.
    sets = len(post.names)
    i, j = post.names.index(first), post.names.index(second)
    where = table.iloc[:, 0].tolist()
    counts = table.iloc[:, [1 + i, 1 + j]].to_numpy(int)
    masses = table.iloc[:, [1 + sets + i, 1 + sets + j]].to_numpy(float)
    ratios = table.iloc[:, 1 + 2 * sets : 4 + 2 * sets].to_numpy(float)
    # All of some draws is not certainty.
    least = 1 / (len(post.partitions) + 1)
    denser = np.clip(table.iloc[:, 4 + 2 * sets].to_numpy(float), least, 1 - least)
    ends = table.iloc[:, 5 + 2 * sets :].to_numpy(float)
    active = next(frame.domain.active for frame in post.frames if frame.straight)
    low, high = (np.full((len(table), len(post.columns)), end) for end in (-np.inf, np.inf))
    low[:, active], high[:, active] = ends[:, ::2], ends[:, 1::2]
    apart = np.abs(masses[:, 0] - masses[:, 1])
    largest = float(masses[:MOST_ROWS].max())
    rows = [
        _region(k, where[k], counts[k], masses[k], ratios[k], denser[k], largest, low[k], high[k])
        for k in range(min(MOST_ROWS, len(table)))
    ]
    covered = float(apart[:MOST_ROWS].sum() / apart.sum()) if apart.sum() > 0 else 1.0
    return Regions(tuple(rows), len(table), covered)


def _region(
    k: int,
    where: str,
    counts: FloatArray,
    masses: FloatArray,
    ratios: FloatArray,
    p_first: float,
    largest: float,
    low: FloatArray,
    high: FloatArray,
) -> Region:
    denser = int(ratios[0] < 0)
    sure = 1 - p_first if denser else p_first
    a, b = float(masses[0]), float(masses[1])
    ends = -ratios[:0:-1] if denser else ratios[1:]
    return Region(
        number=k + 1,
        where=_unbroken(where),
        points=(int(counts[0]), int(counts[1])),
        masses=(a, b),
        shares=(short_percent(a), short_percent(b)),
        bar=pair_of_bars(a, b, largest),
        denser=denser,
        log_ratio=float(ratios[0]),
        times=times(abs(ratios[0])),
        times_interval=" to ".join(dict.fromkeys(map(times, ends))),  # one word if they agree
        sure=float(sure),
        sure_words=short_percent(float(sure)),
        low=low,
        high=high,
    )


def times(log_ratio: float) -> str:
    """A ratio of densities from its logarithm; beyond a thousand nobody needs the number."""
    if log_ratio > math.log(LARGEST_TIMES):
        return f"over {LARGEST_TIMES:,.0f}"
    if log_ratio < -math.log(LARGEST_TIMES):
        return f"under 1/{LARGEST_TIMES:,.0f}"
    ratio = math.exp(log_ratio)
    return number(ratio, 3 if ratio >= 100 else 2)


def _unbroken(where: str) -> str:
    """A region in words, in which no line ends between a sign and its number, or in a date."""
    where = re.sub(r"(?<=\d)-(?=\d)", "-\u2060", where)
    where = re.sub(r"(\d) ([<≤=≥>])", "\\1\u00a0\\2", where)
    return re.sub(r"([<≤=≥>]) (-?\d|true|false)", "\\1\u00a0\\2", where)
