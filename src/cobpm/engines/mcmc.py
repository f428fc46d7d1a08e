"""Chains: the paper's kernels, which can only undo their last split, and one that mixes better."""

from __future__ import annotations

from math import ceil

import numpy as np

from cobpm import _core
from cobpm.arrays import FloatArray
from cobpm.cells import Cells
from cobpm.diagnostics import Convergence, convergence, warnings_for
from cobpm.divergences import parse
from cobpm.engines.fit import Fit, Plan, Report
from cobpm.model import PaperModel
from cobpm.partitions import Partitions

KERNELS = ("cherry", "guided", "uniform")
CHERRY_THIN = 100  # steps between draws: neighbouring partitions differ by a leaf or none


def run(cells: Cells, model: PaperModel, plan: Plan, reason: str) -> Fit:
    """Run the chains and judge them."""
    thin = plan.thin or (CHERRY_THIN if plan.kernel == "cherry" else 1)
    per_chain = ceil(plan.draws / plan.chains)
    packed, accepted = _core.run_chains(
        cells.codes,
        cells.sets,
        len(cells.sizes),
        model.log_gamma(),
        model.log_price(most_leaves(cells)),
        plan.kernel,
        plan.chains,
        plan.burn_in * thin,
        per_chain,
        thin,
        plan.seed,
        plan.threads,
        plan.follow("running chains"),
        cells.weights,
        cells.resolution,
    )
    partitions = Partitions.from_core(packed, cells.d)
    found = judge(partitions, model, plan.chains)
    return Fit(
        partitions,
        Report(
            "mcmc",
            reason,
            kernel=plan.kernel,
            chains=plan.chains,
            convergence=found,
            acceptance=float(np.mean(accepted)),
            warnings=tuple(warnings_for(found, kernel=plan.kernel)),
        ),
    )


def most_leaves(cells: Cells) -> int:
    """The length of the price table: chains go no further than this many leaves."""
    return cells.rows + 2000


def judge(partitions: Partitions, model: PaperModel, chains: int) -> tuple[Convergence, ...]:
    """R-hat and effective draws of what shows bad mixing: l, and the plug-in divergence.

    The noise that drawing masses adds to a divergence would hide chains that disagree about the
    partition. The draws of each chain stand together.
    """
    followed = [("number of leaves", partitions.leaves.astype(float))]
    if len(model.sizes) > 1:
        followed.append(("plug-in KL divergence", plug_in_kl(partitions, model)))
    return tuple(convergence(name, values.reshape(chains, -1)) for name, values in followed)


def plug_in_kl(partitions: Partitions, model: PaperModel) -> FloatArray:
    """KL divergence of the posterior mean masses of the first two sets, for each partition."""
    a, b = (model.delta + partitions.counts[:, i] for i in (0, 1))
    return parse("kl", "fit").plug(a, b, partitions.starts)
