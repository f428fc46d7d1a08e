"""A first look: two samples whose divergences are known, compared."""

from __future__ import annotations

from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.special import betaln, digamma

import cobpm
from cobpm import divergences

SIZE = 1000
P, Q = (6.0, 5.0), (5.0, 6.0)  # the beta densities of the paper's one-dimensional example
DATA_SEED = 20141006


def show(seed: int) -> None:
    """Make the samples, compare them, and print what came out beside the truth."""
    rng = np.random.default_rng(DATA_SEED)
    x, y = rng.beta(*P, SIZE), rng.beta(*Q, SIZE)
    began = perf_counter()
    post = cobpm.compare(x, y, rng=seed)
    summary, regions = post.summary(), post.regions()
    seconds = perf_counter() - began

    console = Console()
    console.print(f"x: {SIZE} points from Beta(6, 5).  y: {SIZE} points from Beta(5, 6).\n")
    table = Table(title="Posterior of each divergence", title_justify="left")
    table.add_column("divergence")
    for heading in ("median", "90% interval", "truth"):
        table.add_column(heading, justify="right")
    truth = true_values()
    for name, row in summary.iterrows():
        table.add_row(
            divergences.parse(str(name), "demo").label,
            f"{row['median']:.4f}",
            f"{row['low']:.4f} – {row['high']:.4f}",
            f"{truth[str(name)]:.4f}",
        )
    console.print(table)

    most = regions.iloc[0]
    more, less = ("x", "y") if most["log_ratio"] > 0 else ("y", "x")
    console.print(
        f"\nThey differ most where {most['where'].replace('c1', 'the value')}: {more} has "
        f"{most[f'mass_{more}']:.0%} of its mass there, {less} {most[f'mass_{less}']:.0%}."
    )
    console.print(
        f"[dim]Engine {post.report.engine!r}: {len(post.leaves):,} independent draws, "
        f"{post.leaves.mean():.1f} sub-regions on average, {seconds:.2f} s.[/dim]"
    )


def true_values() -> dict[str, float]:
    """The divergences between Beta(6, 5) and Beta(5, 6): closed forms and quadrature."""
    # Midpoints of a fine grid: the integrands are smooth, and the error is far below what is shown.
    edges = np.linspace(0.0, 1.0, 200_001)
    t = (edges[:-1] + edges[1:]) / 2
    p, q = (
        np.exp((a - 1) * np.log(t) + (b - 1) * np.log1p(-t) - betaln(a, b)) / len(t)
        for a, b in (P, Q)
    )
    starts = np.array([0])
    values = {
        name: float(divergences.parse(name, "demo").of_masses(p / p.sum(), q / q.sum(), starts)[0])
        for name in divergences.SUMMARY
    }
    kl = digamma(6.0) - digamma(5.0)  # with equal normalisers, (6 − 5) ψ(6) + (5 − 6) ψ(5)
    return values | {"kl": float(kl), "reverse_kl": float(kl), "jeffreys": float(2 * kl)}
