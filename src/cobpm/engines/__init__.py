"""Engines: ways to the same posterior, and the choice between them."""

from __future__ import annotations

from cobpm.cells import Cells
from cobpm.engines import exact, mcmc, pruned
from cobpm.engines.fit import Fit, Plan, Report
from cobpm.engines.mcmc import KERNELS
from cobpm.model import PaperModel

ENGINES = ("auto", "exact", "pruned", "mcmc")

__all__ = ["ENGINES", "KERNELS", "Fit", "Plan", "Report", "run"]


def run(cells: Cells, model: PaperModel, engine: str, plan: Plan) -> Fit:
    """Run an engine; with "auto", the exact one wherever it fits the budget and reaches deep enough."""
    if engine == "mcmc":
        return mcmc.run(cells, model, plan, "asked for")
    if engine == "pruned":
        return pruned.run(cells, model, plan, "asked for")
    depth = exact.first_depth(cells.d, cells.n)
    cost = exact.dense_regions(cells.d, depth)
    if engine == "exact":
        return exact.run(cells, model, plan, "asked for")
    if cost > plan.max_regions:
        reason = f"all regions down to depth {depth} would be {cost:,}, above max_regions={plan.max_regions:,}"
        return pruned.run(cells, model, plan, reason)
    fit = exact.run(
        cells, model, plan, f"all regions down to depth {depth} are {cost:,}, within max_regions"
    )
    if not fit.report.warnings:
        return fit
    return pruned.run(
        cells,
        model,
        plan,
        f"depth {fit.report.depth}, all that max_regions={plan.max_regions:,} allows, is not enough",
    )
