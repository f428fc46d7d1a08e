"""What people call: compare() for two samples, fit() for any number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cobpm import engines
from cobpm.domain import Domain
from cobpm.engines import Plan
from cobpm.engines.exact import BYTES_PER_REGION
from cobpm.model import PaperModel, improper_because
from cobpm.posterior import Posterior, provenance
from cobpm.progress import shown
from cobpm.samples import (
    Samples,
    Seen,
    as_samples,
    bad,
    check_bounds,
    check_choice,
    check_count,
    check_positive,
    check_rng,
)
from cobpm.threads import thread_count

MODELS = ("paper",)
MOST_EXPECTED = 1000  # cells before any data: beyond, the prior is all but improper
MAX_REGIONS = 8_000_000  # of two sets: about half a gigabyte


def _affordable(max_regions: int, sets: int) -> int:
    """As many regions of this many sets as take the memory of `max_regions` of two."""
    return max(1000, max_regions * BYTES_PER_REGION // (BYTES_PER_REGION - 8 + 4 * sets))


def compare(
    x: Any,
    y: Any,
    *,
    model: str = "paper",
    bounds: Any = None,
    delta: float = 0.5,
    sigma: float | None = None,
    engine: str = "auto",
    kernel: str = "cherry",
    draws: int = 3000,
    burn_in: int = 5000,
    chains: int = 4,
    rng: Any = None,
    progress: bool | Callable[[str, float], None] = False,
    thin: int | None = None,
    max_regions: int = MAX_REGIONS,
) -> Posterior:
    """Compare two samples: the posterior of all divergences between them, and of where they differ.

    Args:
        x: The first sample: an array of n rows and d columns, a list, or a data frame. A flat array
            of n numbers is one column.
        y: The second sample, of the same columns. The sizes may differ.
        model: "paper", the published model.
        bounds: The range of the columns: None for the pooled minimum and maximum, "ranks" for
            pooled ranks, one (low, high) for all columns, a (low, high) for each column, or a
            mapping from column names to such pairs.
        delta: Pseudo-count of every cell for every set (the Dirichlet prior's parameter).
        sigma: Price of a cell; the prior of a partition into l cells is proportional to exp(-sigma
            l). None for d + 1.
        engine: "exact" sums over all partitions and draws independently; "pruned" does so over
            those that matter, when all are too many; "mcmc" runs chains. "auto" takes "exact" where
            it fits into max_regions, else "pruned".
        kernel: For engine="mcmc": "cherry", or the paper's "guided" and "uniform", which hardly
            mix.
        draws: Number of posterior draws. With chains it is rounded up to a multiple of them.
        burn_in: Draws to discard at the start of each chain.
        chains: Number of chains (of independent runs, for "pruned").
        rng: Seed or NumPy generator. The same seed gives the same answer on any number of threads.
        progress: True for a bar on standard error, or a function of (stage, fraction done).
        thin: Steps of a chain between draws. None for 1 with the paper's kernels and 100 with
            "cherry".
        max_regions: Most regions the recursion may hold at a time, which bounds memory; fewer
            where many sets make each region larger.

    Returns:
        The posterior. Ask it for `summary()`, `draws("kl")`, `interval("kl", 0.9)`, `regions()` …

    Raises:
        InputError: If an argument cannot be used, saying what would do.
    """
    samples = as_samples([x, y], owner="compare", names=("x", "y"), parameters=("x", "y"))
    return _posterior(
        samples,
        "compare",
        model=model,
        bounds=bounds,
        delta=delta,
        sigma=sigma,
        engine=engine,
        kernel=kernel,
        draws=draws,
        burn_in=burn_in,
        chains=chains,
        rng=rng,
        progress=progress,
        thin=thin,
        max_regions=max_regions,
    )


def fit(
    samples: Mapping[str, Any] | Sequence[Any],
    *,
    model: str = "paper",
    bounds: Any = None,
    delta: float | None = None,
    sigma: float | None = None,
    engine: str = "auto",
    kernel: str = "cherry",
    draws: int = 3000,
    burn_in: int = 5000,
    chains: int = 4,
    rng: Any = None,
    progress: bool | Callable[[str, float], None] = False,
    thin: int | None = None,
    max_regions: int = MAX_REGIONS,
) -> Posterior:
    """Partition any number of samples jointly: one posterior for the divergences of all pairs.

    Args:
        samples: A list of samples, or a mapping from names to samples. Samples of a list are named
            "1", "2", …
        model: See `compare`, as for all that follow.
        bounds: The range of the columns.
        delta: Pseudo-count of every cell for every set. None for 0.5, or 1 with a single set, where
            0.5 has no posterior.
        sigma: Price of a cell.
        engine: Way of computing.
        kernel: Kernel of the chains.
        draws: Number of posterior draws.
        burn_in: Draws to discard.
        chains: Number of chains.
        rng: Seed or generator.
        progress: Whether to show progress.
        thin: Steps between draws.
        max_regions: Bound on the size of the recursion.

    Returns:
        The posterior; name the two sets a divergence is between: `post.draws("kl", "a", "b")`.
    """
    found = as_samples(samples, owner="fit")
    if delta is None:
        delta = 0.5 if len(found.names) > 1 else 1.0
    return _posterior(
        found,
        "fit",
        model=model,
        bounds=bounds,
        delta=delta,
        sigma=sigma,
        engine=engine,
        kernel=kernel,
        draws=draws,
        burn_in=burn_in,
        chains=chains,
        rng=rng,
        progress=progress,
        thin=thin,
        max_regions=max_regions,
    )


def _posterior(samples: Samples, owner: str, **given: Any) -> Posterior:
    """The one way through the house: samples → domain → cells → model → engine → posterior."""
    check_choice(given["model"], MODELS, parameter="model", owner=owner)
    engine = check_choice(given["engine"], engines.ENGINES, parameter="engine", owner=owner)
    kernel = check_choice(given["kernel"], engines.KERNELS, parameter="kernel", owner=owner)
    delta = check_positive(
        given["delta"], parameter="delta", owner=owner, way_out="The paper uses 0.5."
    )
    counts = {
        name: check_count(
            given[name],
            minimum=minimum,
            parameter=name,
            owner=owner,
            way_out=f"The default is {default:,}.",
        )
        for name, minimum, default in (
            ("draws", 1, 3000),
            ("burn_in", 0, 5000),
            ("chains", 1, 4),
            ("max_regions", 1000, MAX_REGIONS),
        )
    }
    thin = given["thin"]
    if thin is not None:
        thin = check_count(thin, parameter="thin", owner=owner)
    rng = check_rng(given["rng"], owner=owner)
    bounds = check_bounds(given["bounds"], samples, owner=owner)

    domain = Domain.fit(samples, bounds)
    cells = domain.encode(samples)
    sigma = given["sigma"]
    sigma = (
        cells.d + 1.0
        if sigma is None
        else check_positive(
            sigma, parameter="sigma", owner=owner, way_out=f"The default is {cells.d + 1}."
        )
    )
    problem = improper_because(delta, sigma, cells.d, len(samples.names))
    if problem is not None:
        raise bad(
            problem[0],
            owner,
            "leave the posterior proper",
            Seen(f"delta={delta:g} and sigma={sigma:g}"),
            f"An empty cell could be split for ever; {problem[1]}.",
        )
    model = PaperModel(delta, sigma, cells.d, samples.sizes)
    if model.prior_mean_leaves > MOST_EXPECTED:
        raise bad(
            "sigma",
            owner,
            "hold the number of cells down",
            sigma,
            f"With delta={delta:g} the prior expects {model.prior_mean_leaves:,.0f} cells. The "
            f"default, sigma={cells.d + 1}, is larger; a larger delta helps too.",
        )
    seed, mass_seed = (int(word) for word in rng.integers(0, 2**63, size=2))
    with shown(given["progress"]) as progress:
        plan = Plan(
            draws=counts["draws"],
            burn_in=counts["burn_in"],
            chains=counts["chains"],
            thin=thin,
            kernel=kernel,
            seed=seed,
            threads=thread_count(),
            max_regions=_affordable(counts["max_regions"], len(samples.names)),
            progress=progress,
        )
        fitted = engines.run(cells, model, engine, plan)
    settings = {
        "function": owner,
        "model": given["model"],
        "bounds": "ranks"
        if isinstance(bounds, str)
        else ("pooled range" if bounds is None else "given"),
        "delta": delta,
        "sigma": sigma,
        "engine": engine,
        "kernel": kernel,
        **counts,
        "thin": thin,
        "seed": int(given["rng"]) if isinstance(given["rng"], int | np.integer) else None,
    }
    return Posterior.from_fit(
        samples, domain, model, fitted, mass_seed, provenance(settings, samples)
    )
