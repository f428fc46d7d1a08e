"""The exact recursion: independent draws, P(l | data), evidence, and means without a draw.

Every region down to a depth is in the recursion. The depth starts from a guess and grows until the
draws no longer go there: the splits they make fall off quickly with depth, and what the last two
depths had tells how much the next would add.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, comb, log2

import numpy as np

from cobpm import _core
from cobpm.arrays import FloatArray, IntArray
from cobpm.cells import Cells
from cobpm.engines.fit import Fit, Plan, Report
from cobpm.engines.moments import Moments
from cobpm.model import PaperModel
from cobpm.partitions import Partitions
from cobpm.samples import bad

NEGLIGIBLE = 0.01  # splits per draw: one partition in a hundred lacks one of its many splits
PROBE_DRAWS = 256
FEW_REGIONS = 2000
DEEPEST = 24
MOST_VISITS = 2_000_000_000  # of points, a few seconds
BYTES_PER_REGION = 60  # of two sets


@dataclass(frozen=True)
class Root:
    """What the recursion says of the whole space: the law of the number of leaves."""

    first: int  # fewest splits with any probability
    leaves: IntArray
    probabilities: FloatArray
    log_total: float

    @property
    def mean_leaves(self) -> float:
        """E[l | data]."""
        return float(self.probabilities @ self.leaves)

    @property
    def cumulative(self) -> FloatArray:
        """P(at most …) in the order of `leaves`."""
        return np.cumsum(self.probabilities)

    def leaf_probabilities(self) -> FloatArray:
        """P(l | data) with l as the index."""
        return np.concatenate([np.zeros(self.first + 1), self.probabilities])


def dense_regions(d: int, depth: int) -> int:
    """Regions down to a depth: C(m+d−1, m) level vectors of depth m, with 2^m boxes each."""
    return sum(comb(m + d - 1, m) << m for m in range(depth + 1)) if d else 1


def deepest_within(cells: Cells, max_regions: int) -> int:
    """The largest depth that is affordable: in regions to hold, and in points to count.

    Every level vector of the last depth takes one pass over the points.
    """
    depth, d = 0, cells.d
    while (
        depth < DEEPEST
        and d > 0
        and dense_regions(d, depth + 1) <= max_regions
        and comb(depth + d, depth + 1) * max(cells.rows, 40 * d) <= MOST_VISITS  # tables are d wide
    ):
        depth += 1
    return depth


def first_depth(d: int, n: int) -> int:
    """A guess at the depth that will do: in three columns a little below log2(n)/2 + 4."""
    halvings = log2(max(n, 2))
    return ceil(halvings) + 1 if d == 1 else ceil(0.5 * halvings + 3)


def start(cells: Cells, model: PaperModel, depth: int, plan: Plan) -> _core.Exact:
    """Count the points of every region down to a depth."""
    progress = plan.follow(f"counting points in {dense_regions(cells.d, depth):,} regions")
    return _core.Exact(
        cells.codes,
        cells.sets,
        len(cells.sizes),
        depth,
        model.log_gamma(),
        plan.threads,
        progress,
        cells.weights,
        cells.resolution,
    )


def solve(
    recursion: _core.Exact, model: PaperModel, plan: Plan, guess: float | None = None
) -> Root:
    """Run the recursion upwards, at a tilt that fits the number of leaves it finds.

    Coefficients are trimmed relative to the tilt. One far from the mean of l would trim a tail that
    matters, so the pass is repeated with the mean found until a coefficient eight standard
    deviations away is off by less than eight of the twenty digits that are kept.
    """
    guess = guess if guess is not None else max(2.0, sum(model.sizes) ** 0.5)
    for _ in range(8):
        log_tilt = model.log_tilt(guess)
        first, log_values = recursion.up(
            log_tilt, plan.threads, plan.follow("summing over partitions")
        )
        splits = first + np.arange(len(log_values))
        log_p, log_total = model.log_leaf_probabilities(splits, log_values - splits * log_tilt)
        root = Root(first, splits + 1, np.exp(log_p), log_total)
        mean = root.mean_leaves
        spread = float(np.sqrt(root.probabilities @ (root.leaves - mean) ** 2))
        if 8 * spread * abs(model.log_tilt(mean) - log_tilt) < 8 * np.log(10):
            break
        guess = mean
    if root.probabilities[-1] > 1e-6 and model.outruns_tilt(root.mean_leaves):
        raise bad(
            "sigma",
            "fit",
            "keep the number of cells within bounds",
            model.sigma,
            f"The posterior reaches beyond {root.leaves[-1]:,} cells. Raise sigma or delta.",
        )
    return root


def expected_beyond(splits_at_depth: IntArray, depth: int, draws: int) -> float:
    """Splits per draw that deeper regions would add: the last depth's, times how they fell."""
    depth = max(depth, len(splits_at_depth))  # regions may have been grown below the dense part
    made = np.zeros(depth + 1)
    upto = min(depth, len(splits_at_depth))
    made[1 : upto + 1] = splits_at_depth[:upto] / draws
    last, before = made[depth], made[depth - 1] if depth > 1 else 0.0
    return float(last * min(1.0, last / before)) if before > 0 else float(last)


def run(cells: Cells, model: PaperModel, plan: Plan, reason: str) -> Fit:
    """Deepen until the rest is negligible or the budget is used up, then draw."""
    limit = deepest_within(cells, plan.max_regions)
    depth = min(first_depth(cells.d, cells.n), limit)
    guess = None
    while True:
        recursion = start(cells, model, depth, plan)
        root = solve(recursion, model, plan, guess)
        guess = root.mean_leaves
        negligible = left_out(recursion, root, depth, plan) < NEGLIGIBLE
        if negligible or depth == limit:
            break
        depth += 1
    # Below the dense part only regions with points are grown. That is cheap where few are left, and
    # crowded data needs great depth in few places.
    if not negligible or len(recursion.frontier()) <= FEW_REGIONS:
        complete(recursion, cells.d, plan)
        root = solve(recursion, model, plan, guess)
    return finish(recursion, root, cells, model, plan, depth, reason)


def most_bytes(plan: Plan) -> int:
    """What regions that are grown one by one, with the lists of their points, may take."""
    return max(BYTES_PER_REGION * plan.max_regions, 200_000_000)


def left_out(recursion: _core.Exact, root: Root, depth: int, plan: Plan) -> float:
    """Estimate from a few draws what the next depths would add.

    They do not come from the user's seed, so that the depth depends on the data alone, and with it
    all that the recursion says without a draw.
    """
    _, splits_at_depth, open_leaves = recursion.draw(
        root.cumulative, root.first, PROBE_DRAWS, 1, plan.threads, None
    )
    return expected_beyond(splits_at_depth, depth, PROBE_DRAWS) if len(open_leaves) else 0.0


def complete(recursion: _core.Exact, d: int, plan: Plan) -> None:
    """Grow all regions with two points or more to the end, or as far as the budget allows."""
    while len(frontier := recursion.frontier()):
        points = recursion.frontier_points()
        if (
            recursion.size + 2 * d * len(frontier) > plan.max_regions
            or recursion.bytes + 4 * points > most_bytes(plan)
            or d * points > MOST_VISITS / 4
        ):
            return
        recursion.expand(frontier, plan.threads, plan.follow("growing regions"))


def finish(
    recursion: _core.Exact,
    root: Root,
    cells: Cells,
    model: PaperModel,
    plan: Plan,
    depth: int,
    reason: str,
) -> Fit:
    """Draw partitions and say what the recursion knows."""
    packed, splits_at_depth, open_leaves = recursion.draw(
        root.cumulative,
        root.first,
        plan.draws,
        plan.seed,
        plan.threads,
        plan.follow("drawing partitions"),
    )
    recursion.forget_points()
    if plan.draws < PROBE_DRAWS:  # too few to tell
        beyond = left_out(recursion, root, depth, plan)
    else:
        beyond = expected_beyond(splits_at_depth, depth, plan.draws) if len(open_leaves) else 0.0
    warnings: tuple[str, ...] = ()
    if beyond >= 5 * NEGLIGIBLE:
        warnings = (
            f"The exact engine reached depth {depth} within max_regions={plan.max_regions:,}, and "
            f"its draws would go on: about {beyond:.2g} splits per draw are missing. Raise "
            "max_regions, use engine='pruned', or map the columns with bounds='ranks'.",
        )
    return Fit(
        partitions=Partitions.from_core(packed, cells.d),
        report=Report(
            "exact",
            reason,
            depth=depth,
            regions=recursion.size,
            left_out=beyond,
            warnings=warnings,
        ),
        leaf_probabilities=root.leaf_probabilities(),
        log_evidence=root.log_total - model.log_prior_total,
        moments=Moments(recursion, model, root.leaves, root.probabilities),
    )
