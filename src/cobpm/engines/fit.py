"""What every engine returns, and how it is told what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from cobpm.arrays import FloatArray
from cobpm.diagnostics import Convergence
from cobpm.engines.moments import Moments
from cobpm.engines.ratio_moments import RatioMoments
from cobpm.partitions import Partitions
from cobpm.progress import Progress


@dataclass(frozen=True)
class Plan:
    """Settings of a run. Each engine reads those that concern it."""

    draws: int
    burn_in: int
    chains: int
    thin: int | None
    kernel: str
    seed: int
    threads: int
    max_regions: int
    progress: Progress | None = None

    def follow(self, stage: str) -> Callable[[float], None] | None:
        """A progress callback for one stage of the work."""
        progress = self.progress
        return None if progress is None else lambda fraction: progress(stage, fraction)


@dataclass(frozen=True)
class Report:
    """How a posterior was computed, and how far it can be trusted.

    Attributes:
        engine: "exact", "pruned" or "mcmc"; "ratio" for the recursion of the ratio model.
        reason: Why this engine.
        kernel: Of a chain, else None.
        chains: The draws are those of this many chains, one after another; 1 for independent draws.
        depth: All regions down to this many halvings were in the recursion, else None.
        regions: Regions in the recursion.
        left_out: Splits per draw that the recursion is expected to miss because it does not reach
            them.
        convergence: R-hat and effective draws, for engines that run chains.
        acceptance: Share of moves accepted, for engines that run chains.
        frames: Names of the frames that the ratio model looked through with all points.
        frame_weights: How much each of them counts.
        warnings: Sentences for the user.
    """

    engine: str
    reason: str
    kernel: str | None = None
    chains: int = 1
    depth: int | None = None
    regions: int | None = None
    left_out: float | None = None
    convergence: tuple[Convergence, ...] = ()
    acceptance: float | None = None
    frames: tuple[str, ...] = ()
    frame_weights: tuple[float, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fit:
    """Draws of partitions with all that is known about them.

    Attributes:
        partitions: The draws.
        report: How they came about.
        leaf_probabilities: P(l | data) for l = 0, 1, 2, …, where the engine knows it.
        log_evidence: Log marginal likelihood of the points in the unit cube, where known.
        moments: Exact posterior means over all partitions, where the engine can work them out.
        frame_draws: How many of the draws were made in each frame; empty if there is one frame.
        log_bayes_factor: Log evidence for a difference over that for one common distribution,
            where known.
    """

    partitions: Partitions
    report: Report
    leaf_probabilities: FloatArray | None = None
    log_evidence: float | None = None
    moments: Moments | RatioMoments | None = field(default=None, repr=False)
    frame_draws: tuple[int, ...] = ()
    log_bayes_factor: float | None = None
