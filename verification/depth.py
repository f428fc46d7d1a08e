"""How deep must the exact recursion go? What it finds by depth, on the paper's problem."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from cobpm.divergences import parse
from cobpm.engines import exact
from cobpm.engines.fit import Plan
from cobpm.engines.moments import Moments
from cobpm.model import PaperModel
from cobpm.threads import thread_count
from tests.cases import beta_mixtures, cells_of
from verification.report import parser, publish, table

DEPTHS = {1250: range(6, 13), 20_000: range(7, 14), 100_000: range(8, 15)}
HEAD = [
    "depth",
    "regions",
    "seconds",
    "E[l]",
    "log evidence",
    "E[KL]",
    "estimated left out",
    "missing",
]


def study(n: int, seed: int) -> list[str]:
    """One table."""
    cells = cells_of(beta_mixtures(n, np.random.default_rng([seed, n])))
    model = PaperModel(0.5, cells.d + 1.0, cells.d, (n, n))
    plan = Plan(256, 0, 1, None, "cherry", seed, thread_count(), 8_000_000)
    found = []
    for depth in DEPTHS[n]:
        began = perf_counter()
        recursion = exact.start(cells, model, depth, plan)
        root = exact.solve(recursion, model, plan)
        seconds = perf_counter() - began
        moments = Moments(recursion, model, root.leaves, root.probabilities)
        found.append(
            (
                depth,
                recursion.size,
                seconds,
                root.mean_leaves,
                root.log_total - model.log_prior_total,
                moments.mean(parse("kl", "compare"), 0, 1),
                exact.left_out(recursion, root, depth, plan),
            )
        )
    chosen = exact.run(cells, model, plan, "asked for").report.depth
    deepest = found[-1][3]
    rows = [
        [
            f"{depth}{' (chosen)' * (depth == chosen)}",
            f"{regions:,}",
            f"{seconds:.2f}",
            f"{leaves:.4f}",
            f"{evidence:.4f}",
            f"{kl:.6f}",
            f"{left_out:.2g}",
            f"{deepest - leaves:.2g}",
        ]
        for depth, regions, seconds, leaves, evidence, kl, left_out in found
    ]
    return [f"## n = {n:,} + {n:,}", table(HEAD, rows)]


def main() -> None:
    given = parser(__doc__, "depth").parse_args()
    publish(
        "depth",
        given.out,
        "# Depth of the exact recursion",
        "Three-dimensional mixtures of beta densities. Seconds are for counting and the recursion. "
        "`estimated left out` is what the engine believes deeper regions would add, in splits per "
        "draw; `missing` is E[l] at the greatest depth here less E[l] at this one.",
        *(part for n in DEPTHS for part in study(n, given.seed)),
    )


if __name__ == "__main__":
    main()
