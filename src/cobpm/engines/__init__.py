"""Engines: ways to the same posterior, and the choice between them."""

from __future__ import annotations

from cobpm.cells import Cells
from cobpm.engines import exact, mcmc, pruned, ratio
from cobpm.engines.fit import Fit, Plan, Report
from cobpm.engines.mcmc import KERNELS
from cobpm.model import PaperModel

ENGINES = ("auto", "exact", "pruned", "mcmc")

__all__ = ["ENGINES", "KERNELS", "Fit", "Plan", "Report", "ratio", "run"]


def run(cells: Cells, model: PaperModel, engine: str, plan: Plan) -> Fit:
    """Run an engine; with "auto", the exact one where it fits the budget and goes deep enough."""
    if engine == "mcmc":
        return mcmc.run(cells, model, plan, "asked for")
    if engine == "pruned":
        return pruned.run(cells, model, plan, "asked for")
    if engine == "exact":
        return exact.run(cells, model, plan, "asked for")
    depth = min(exact.first_depth(cells.d, cells.n), exact.deepest_within(cells, plan.max_regions))
    regions = exact.dense_regions(cells.d, depth)
    fit = exact.run(
        cells, model, plan, f"{regions:,} regions down to depth {depth} are within the budget"
    )
    if not fit.report.warnings:
        return fit
    reason = (
        f"depth {fit.report.depth}, as far as all regions are within the budget, is not enough: "
        f"about {fit.report.left_out:.2g} splits per draw would be missing"
    )
    del fit  # its regions would take memory beside those of the other engine
    return pruned.run(cells, model, plan, reason)
