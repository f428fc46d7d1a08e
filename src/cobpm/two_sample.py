"""Do two samples come from one distribution? A permutation test with the ratio model's evidence.

The pooled points say where the regions of each frame lie; which set a point belongs to does not.
So the frames are fitted once, and if both samples have the same law, all ways to hand out the
labels are alike likely. The test compares the evidence for a difference with that of labels
permuted at random. Its level is exact for any data, ties and small samples included: the share of
p-values up to α is at most α.

In each frame, log Φ/L is the log probability of the labels under the model over that of a single
leaf. The statistic is its mean over the frames. The Bayes factor averages Φ/L itself, which leaves
little but the largest of them; the mean of the logs heeds all frames, and had a little more power
on the problems tried (`python -m verification.two_sample`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from cobpm import _core
from cobpm.arrays import FloatArray
from cobpm.engines.ratio import depth_for, log_bayes_factor_of
from cobpm.frames import BLIND, Frame, check_frames, fit_frames
from cobpm.progress import Progress, shown
from cobpm.ratio_model import RatioModel
from cobpm.samples import (
    Samples,
    bad,
    check_count,
    check_level,
    check_rng,
)
from cobpm.sketch_permutations import affordable_cells, sketch_log_ratios
from cobpm.sketched import Sketched, as_sets, check_any_bounds, check_sketch_frames
from cobpm.threads import thread_count

OWNER = "test"
MAX_REGIONS = 1_000_000  # in all frames: each permutation visits all of them
TOLERANCE = 1e-9  # statistics that differ by less are equal but for rounding


@dataclass(frozen=True)
class TestResult:
    """What `test` found. It unpacks into the statistic and the p-value.

    Attributes:
        statistic: Mean over the frames of the log probability of the labels under the ratio model
            over that under one common distribution. Large values speak for a difference.
        pvalue: How often labels handed out at random have a statistic at least as large, the
            observed labels counted among them.
        log_bayes_factor: Log of the probability of the labels if the samples differ over that if
            they share one distribution.
        permutations: How many permutations the p-value rests on.
        frames: Names of the frames.
        notices: What happened to the data on the way.
    """

    statistic: float
    pvalue: float
    log_bayes_factor: float
    permutations: int
    frames: tuple[str, ...]
    notices: tuple[str, ...] = ()

    __test__: ClassVar[bool] = False  # nothing for pytest to collect

    def __iter__(self) -> Iterator[float]:
        """The statistic and the p-value."""
        yield self.statistic
        yield self.pvalue

    def same_probability(self, prior: float = 0.5) -> float:
        """Posterior probability that the samples share one distribution, by the Bayes factor.

        Args:
            prior: The probability of that before seeing the data.
        """
        prior = check_level(prior, parameter="prior", owner="same_probability")
        return float(expit(np.log(prior) - np.log1p(-prior) - self.log_bayes_factor))

    def __repr__(self) -> str:
        return (
            f"TestResult(statistic={self.statistic:.4g}, pvalue={self.pvalue:.4g}, "
            f"log_bayes_factor={self.log_bayes_factor:.4g})\n"
            f"If both samples had one distribution, {self.pvalue:.2g} would be the probability of "
            f"a statistic this large ({self.permutations:,} permutations)."
        )


def test(
    x: Any,
    y: Any,
    *,
    permutations: int = 999,
    frames: Any = "auto",
    bounds: Any = None,
    rng: Any = None,
    progress: bool | Callable[[str, float], None] = False,
    max_regions: int = MAX_REGIONS,
) -> TestResult:
    """Test whether two samples come from one distribution.

    Args:
        x: The first sample, as in `compare`, or a `Sketch` of one set.
        y: The second sample, of the same columns. The sizes may differ.
        permutations: Permutations of the labels. The smallest possible p-value is
            1 / (permutations + 1).
        frames: The coordinate frames to average over: "auto" for all that do not look at the
            labels, a number of them, or a list of names; see `cobpm.frames`.
        bounds: Limits of the columns for the frame "range", as in `compare`; "ranks" leaves only
            the frame of that name.
        rng: Seed or NumPy generator of the permutations. The statistic does not depend on it unless
            rows are repeated, and never with sketches.
        progress: True for a bar on standard error, or a function of (stage, fraction done).
        max_regions: Most regions that the recursions of all frames may hold, which bounds time and
            memory by the depth of the partitions.

    Returns:
        The statistic, the p-value and the Bayes factor.

    Raises:
        InputError: If an argument cannot be used, saying what would do.
    """
    way_out = "The default is 999."
    permutations = check_count(permutations, parameter="permutations", owner=OWNER, way_out=way_out)
    way_out = f"The default is {MAX_REGIONS:,}."
    max_regions = check_count(
        max_regions, minimum=1000, parameter="max_regions", owner=OWNER, way_out=way_out
    )
    most = affordable_cells(permutations)
    samples = as_sets([x, y], owner=OWNER, names=("x", "y"), parameters=("x", "y"), most_cells=most)
    generator = check_rng(rng, owner=OWNER)
    limits = check_any_bounds(bounds, samples, owner=OWNER)
    with shown(progress) as report:
        if isinstance(samples, Sketched):
            names = check_sketch_frames(frames, owner=OWNER)
            fitted = samples.frames(names)
            ratios = sketch_log_ratios(
                samples, fitted, permutations, generator, max_regions, report
            )
        else:
            pooled, labels = pool(samples, generator)
            names = _blind_frames(frames, limits, pooled)
            fitted = fit_frames(pooled, names, None if isinstance(limits, str) else limits)
            seed = int(generator.integers(0, 2**63))
            ratios = log_ratios(
                pooled, labels, samples.sizes, fitted, permutations, seed, max_regions, report
            )
    statistics = ratios.mean(axis=0)
    return TestResult(
        statistic=float(statistics[0]),
        pvalue=float(np.mean(statistics >= statistics[0] - TOLERANCE)),
        log_bayes_factor=log_bayes_factor_of(ratios[:, 0], RatioModel.stop),
        permutations=permutations,
        frames=names,
        notices=(*samples.notices, *fitted[0].domain.notices),
    )


# pytest would take a function of this name for one of its own.
test.__test__ = False  # type: ignore[attr-defined]


def pool(samples: Samples, rng: np.random.Generator) -> tuple[Samples, NDArray[np.uint16]]:
    """All points as one set, and which set each belongs to.

    The order of the points must not tell whose they are, because repeated values are told apart by
    it. They are sorted; rows that are the same in all columns come in a random order.
    """
    rows = np.concatenate(samples.values)
    labels = np.repeat(np.arange(len(samples.sizes), dtype=np.uint16), samples.sizes)
    shuffled = rng.permutation(len(rows))
    order = shuffled[np.lexsort(rows[shuffled].T[::-1])]
    pooled = Samples(("pooled",), samples.columns, (np.ascontiguousarray(rows[order]),))
    return pooled, labels[order]


def _blind_frames(frames: Any, bounds: Any, pooled: Samples) -> tuple[str, ...]:
    """The names of the frames to use, none of which may look at the labels."""
    (rows,) = pooled.values
    varying = int(np.count_nonzero(rows.min(axis=0) < rows.max(axis=0)))
    by_name = not isinstance(frames, str | int | np.integer)
    asked = ["ranks"] if isinstance(bounds, str) and not by_name and frames == "auto" else frames
    names = check_frames(asked, owner=OWNER, d=varying)
    blind = tuple(name for name in names if name in BLIND)
    if by_name and len(blind) < len(names):
        seen = next(name for name in names if name not in BLIND)
        way_out = f"Those that do are {', '.join(map(repr, BLIND))}."
        raise bad("frames", OWNER, "name frames that do not look at the labels", seen, way_out)
    return blind


def log_ratios(
    pooled: Samples,
    labels: NDArray[np.uint16],
    sizes: tuple[int, ...],
    frames: Sequence[Frame],
    permutations: int,
    seed: int,
    max_regions: int,
    report: Progress | None,
) -> FloatArray:
    """Log Φ/L in each frame, of the labels as they are and of permuted ones: (frames, 1 + B)."""
    threads, found = thread_count(), []
    for number, frame in enumerate(frames):
        follow = _follow(report, f"frame {number + 1} of {len(frames)}")
        cells = frame.encode(pooled)
        model = RatioModel(cells.d, sizes)
        depth = depth_for(cells, max_regions // len(frames))
        recursion = _core.Ratio(
            cells.codes, labels, len(sizes), depth, model.concentrations, model.stop, threads
        )
        logs = recursion.up(threads), *recursion.permuted(seed, permutations, threads, follow)
        found.append(np.array(logs) - model.log_same())
    return np.array(found)


def _follow(report: Progress | None, stage: str) -> Callable[[float], None] | None:
    return None if report is None else lambda fraction: report(stage, fraction)
