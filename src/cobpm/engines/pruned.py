"""The recursion over the regions that matter, when all of them are too many.

All regions down to a base depth are in it. Below, regions are added where draws from the current
recursion end in a region that may be worth splitting, round by round, until the draws stop arriving
on unknown ground. What is left out is measured there: splits per draw that the recursion did not
know of.

Growing where the draws go can miss partitions that look poor until they are grown. So one run
starts twice, from all columns and from the few that tell most by themselves, lets cherry chains
wander off from the draws, and plants what the chains and the other start have found into the
recursion, which then sums over all of it. Whole runs are repeated with other seeds and other
columns: where they do not agree, partitions that matter are still missing, and the user is told so.
In the end every draw goes some way along a cherry chain of its own, which knows no limits of depth:
that corrects what was left out near the leaves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cobpm import _core
from cobpm.arrays import FloatArray, IntArray
from cobpm.cells import Cells
from cobpm.diagnostics import Convergence
from cobpm.engines import exact
from cobpm.engines.fit import Fit, Plan, Report
from cobpm.engines.mcmc import judge, most_leaves
from cobpm.model import PaperModel
from cobpm.partitions import Partitions

BASE_REGIONS = 400_000  # for the regions down to the base depth: deeper helps little and costs much
# How long to grow: draws per round, most rounds, and splits per draw that may go missing.
SKETCH = (100, 10, 0.1)
FINISH = (300, 40, exact.NEGLIGIBLE)
SUBSETS = (3, 5)  # how many columns a start from few columns uses
WANDER_ROUNDS, WANDERERS, WANDER_STEPS = 3, 32, 10_000
MOVES = 1000  # steps of each draw's own chain in the end
RHAT_LIMIT = 1.05


@dataclass
class Growth:
    """A recursion under way."""

    recursion: _core.Exact
    model: PaperModel
    plan: Plan
    root: exact.Root
    left_out: float = 0.0

    def draw(self, draws: int, seed: int) -> tuple[Partitions, IntArray]:
        """Partitions, and the leaves in them whose halves the recursion does not know."""
        packed, _, open_leaves = self.recursion.draw(
            self.root.cumulative, self.root.first, draws, seed, self.plan.threads, None
        )
        return Partitions.from_core(packed, self.model.d), open_leaves

    def grow(self, seed: int, how_long: tuple[int, int, float]) -> None:
        """Add regions where draws end, until they end in known ones or the budget is used up."""
        draws, rounds, enough = how_long
        for round_ in range(rounds):
            _, open_leaves = self.draw(draws, seed + round_)
            ids, visits = np.unique(open_leaves, return_counts=True)
            if len(ids) == 0:
                self.left_out = 0.0
                return
            if self.recursion.size + 2 * self.model.d * len(
                ids
            ) > self.plan.max_regions or self.recursion.bytes > exact.most_bytes(self.plan):
                self.left_out = len(open_leaves) / draws  # as if each were split once
                return
            self.recursion.expand(ids, self.plan.threads, self.plan.follow("growing regions"))
            self.solve()
            # Had these regions not been added, this many splits per draw would be missing.
            p_split = 1 / (1 + np.exp(-self.recursion.split_log_odds(ids)))
            self.left_out = float(visits @ p_split) / draws
            if self.left_out < enough:
                return

    def plant(self, partitions: Partitions) -> None:
        """Let the recursion know all regions of some partitions."""
        most = 2 * self.model.d * len(np.flatnonzero(partitions.splits >= 0))
        if self.recursion.size + most / 20 > self.plan.max_regions:  # nearly all are known already
            return
        self.recursion.plant(
            partitions.splits, np.ascontiguousarray(partitions.node_starts[:-1]), self.plan.threads
        )
        self.solve()

    def solve(self) -> None:
        """Sum again over all that is known."""
        self.root = exact.solve(self.recursion, self.model, self.plan, self.root.mean_leaves)


@dataclass(frozen=True)
class Run:
    """What one run ends with."""

    growth: Growth
    depth: int  # of the base
    partitions: Partitions  # after their own chains
    drift: float  # of l on the way, in standard deviations of l


def run(cells: Cells, model: PaperModel, plan: Plan, reason: str) -> Fit:
    """Make several runs, compare them, and draw from the one that found the greatest evidence."""
    depth = min(
        exact.deepest_within(cells, min(BASE_REGIONS, plan.max_regions // 2)),
        exact.first_depth(cells.d, cells.n),
    )
    gains = column_gains(cells, model, plan)
    per_run = -(-plan.draws // plan.chains)
    best: Run | None = None
    drawn, evidence = [], []
    for i in range(plan.chains):
        columns = columns_to_start_from(gains, i, plan.seed)
        one = one_run(cells, model, plan, depth, columns, i, per_run)
        drawn.append(one.partitions)
        evidence.append(one.growth.root.log_total)
        if best is None or evidence[-1] > best.growth.root.log_total:
            best = one  # the regions of the others are not needed any more
    assert best is not None
    joined = Partitions.joined(drawn)
    found = judge(joined, model, plan.chains)
    agreed = all(not entry.rhat > RHAT_LIMIT for entry in found)
    partitions = joined
    if not agreed:  # then at most one of the runs is right
        again, _ = best.growth.draw(plan.draws, plan.seed + 7)
        partitions = move_on(again, cells, model, plan, plan.seed + 8)
    return Fit(
        partitions,
        Report(
            "pruned",
            reason,
            kernel="cherry",
            chains=plan.chains if agreed else 1,
            depth=best.depth,
            regions=best.growth.recursion.size,
            left_out=best.growth.left_out,
            convergence=found,
            warnings=tuple(warnings_about(found, np.array(evidence), best, agreed)),
        ),
        leaf_probabilities=best.growth.root.leaf_probabilities(),
        log_evidence=best.growth.root.log_total - model.log_prior_total,
    )


def one_run(
    cells: Cells,
    model: PaperModel,
    plan: Plan,
    depth: int,
    columns: IntArray,
    which: int,
    draws: int,
) -> Run:
    """Two starts, wandering chains, and all they found in one recursion."""
    seed = plan.seed + 1_000_003 * (which + 1)
    growths = []
    depth = max(0, depth - which % 2)
    for start, seeded in enumerate((False, True)):
        growth = begin(cells, model, plan, depth)
        if seeded:
            for k in SUBSETS:
                if k < cells.d and k <= len(columns):
                    growth.plant(from_few_columns(cells, model, plan, columns[:k], seed + k))
        growth.grow(seed + 1000 * start, SKETCH)
        for round_ in range(WANDER_ROUNDS):
            wanderers, _ = growth.draw(WANDERERS, seed + 2000 + round_)
            growth.plant(move_on(wanderers, cells, model, plan, seed + 3000 + round_, WANDER_STEPS))
            growth.grow(seed + 4000 + 100 * round_, SKETCH)
        growths.append(growth)
    other, best = sorted(growths, key=lambda growth: growth.root.log_total)
    best.plant(other.draw(WANDERERS, seed + 5000)[0])
    best.grow(seed + 6000, FINISH)
    drawn, _ = best.draw(draws, seed + 8000)
    moved = move_on(drawn, cells, model, plan, seed + 7000)
    spread = float(drawn.leaves.std())
    drift = float(moved.leaves.mean() - drawn.leaves.mean()) / spread if spread > 0 else 0.0
    return Run(best, depth, moved, drift)


def begin(cells: Cells, model: PaperModel, plan: Plan, depth: int) -> Growth:
    """All regions down to the base depth."""
    recursion = exact.start(cells, model, depth, plan)
    return Growth(recursion, model, plan, exact.solve(recursion, model, plan))


def column_gains(cells: Cells, model: PaperModel, plan: Plan) -> FloatArray:
    """What splitting along one column alone gains over not splitting at all, in log evidence."""
    gains = []
    for column in range(cells.d):
        alone = replace(model, d=1)
        recursion = exact.start(restricted(cells, np.array([column])), alone, 10, plan)
        root = exact.solve(recursion, alone, plan)
        single_leaf = float(
            model.log_size(np.array(1.0)) + model.log_leaf(cells.sizes, np.array(0))
        )
        gains.append(root.log_total - single_leaf)
    return np.array(gains)


def columns_to_start_from(gains: FloatArray, which: int, seed: int) -> IntArray:
    """Columns by their gain; every run but the first shuffles them a little."""
    useful = np.flatnonzero(gains > 1.0)
    keys = gains[useful]
    if which > 0 and len(useful):
        noise = np.random.default_rng([seed, which]).gumbel(size=len(useful))
        keys = np.log(keys) + 0.3 * noise
    return useful[np.argsort(-keys, kind="stable")]


def restricted(cells: Cells, columns: IntArray) -> Cells:
    """The same points seen in some of the columns only."""
    finest = cells.resolution
    return replace(
        cells,
        codes=np.ascontiguousarray(cells.codes[columns]),
        resolution=None if finest is None else finest[columns],
    )


def from_few_columns(
    cells: Cells, model: PaperModel, plan: Plan, columns: IntArray, seed: int
) -> Partitions:
    """Exact draws of partitions that use only these columns."""
    few, seen = replace(model, d=len(columns)), restricted(cells, columns)
    depth = min(
        exact.deepest_within(seen, min(BASE_REGIONS, plan.max_regions)),
        exact.first_depth(few.d, cells.n) + 1,
    )
    growth = begin(seen, few, plan, depth)
    drawn, _ = growth.draw(WANDERERS, seed)
    names = np.append(columns, -1).astype(np.int16)  # a leaf is −1 and stays so
    return replace(drawn, splits=names[drawn.splits], d=cells.d)


def move_on(
    partitions: Partitions,
    cells: Cells,
    model: PaperModel,
    plan: Plan,
    seed: int,
    steps: int = MOVES,
) -> Partitions:
    """Every partition some steps further along a cherry chain of its own."""
    packed = _core.move_on(
        cells.codes,
        cells.sets,
        len(cells.sizes),
        model.log_gamma(),
        model.log_price(max(most_leaves(cells), int(partitions.leaves.max()) + 1000)),
        partitions.splits,
        partitions.node_starts,
        steps,
        seed,
        plan.threads,
        plan.follow("moving draws along chains"),
        cells.weights,
        cells.resolution,
    )
    return Partitions.from_core(packed, cells.d)


def warnings_about(
    found: tuple[Convergence, ...], evidence: FloatArray, best: Run, agreed: bool
) -> list[str]:
    """Sentences for the user where the result should not be trusted."""
    remedy = (
        "Compare fewer columns, map them with bounds='ranks', or treat the estimate as that of one "
        "good partition among many."
    )
    sentences = []
    if len(evidence) < 2:
        sentences.append(
            "With chains=1 the pruned engine makes one run, and has no other to compare it with. "
            "Leave chains at 4."
        )
    if not agreed:
        worst = max(found, key=lambda entry: entry.rhat)
        sentences.append(
            f"Independent runs of the pruned engine do not agree: R-hat of the {worst.quantity} is "
            f"{worst.rhat:.2f} (should be at most {RHAT_LIMIT}), and the log evidence they found "
            f"differs by {np.ptp(evidence):.1f}. The draws are from the best of them. {remedy}"
        )
    if best.growth.left_out >= 5 * exact.NEGLIGIBLE:
        sentences.append(
            f"The pruned engine stopped growing while about {best.growth.left_out:.2g} splits per "
            f"draw were still missing. Raise max_regions. {remedy}"
        )
    if abs(best.drift) > 0.5:
        sentences.append(
            "The draws of the pruned engine drift when they are moved along a chain, by "
            f"{best.drift:+.2f} standard deviations of the number of leaves. {remedy}"
        )
    return sentences
