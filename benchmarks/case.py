"""One measurement, in a process of its own so that peak memory and number of threads are its own.

`benchmarks.speed` runs this module with the settings as JSON in its only argument and reads JSON
from its output.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np

import cobpm
from cobpm.baselines import knn_divergence
from tests.cases import beta_mixtures

FOUR = ("tv", "hellinger", "kl", "renyi:2")


def main() -> None:
    """Measure what the argument asks for."""
    warnings.simplefilter("ignore")  # they are in the report, and the caller shows them
    settings = json.loads(sys.argv[1])
    x, y = samples(settings["n"], settings["d"])
    # Load the modules that are loaded when first needed.
    small = samples(20, 2)
    read_off(cobpm.compare(*small, draws=10, model="paper"))
    knn_divergence(*small)
    measure = chain if "kernel" in settings else fit
    print(json.dumps(measure(x, y, settings)))


def samples(n: int, d: int) -> tuple[Any, Any]:
    """The paper's mixtures of beta densities in three columns; further columns are uniform."""
    rng = np.random.default_rng([2014, n, d])
    x, y = beta_mixtures(n, rng)
    if d <= 3:
        return x[:, :d].copy(), y[:, :d].copy()
    return np.hstack([x, rng.random((n, d - 3))]), np.hstack([y, rng.random((n, d - 3))])


def fit(x: Any, y: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Time a comparison, from arrays to numbers, in turns with the estimate from neighbours."""
    ours, theirs = [], []  # (seconds, of processor time)
    for turn in range(settings["repeats"]):
        post = None  # let go of what the turn before holds
        time, (post, found) = timed(lambda: compared(x, y, settings))
        ours.append(time)
        if turn == 0:
            peak = peak_memory()
        time, neighbours = timed(lambda: knn_divergence(x, y))
        theirs.append(time)
    return {
        "seconds": [median(column) for column in zip(*ours, strict=True)],
        "neighbours_seconds": [median(column) for column in zip(*theirs, strict=True)],
        "kl": found["kl"][0],
        "neighbours_kl": neighbours,
        "engine": post.report.engine,
        "leaves": float(post.leaves.mean()),
        "depth": post.report.depth,
        "regions": post.report.regions,
        "left_out": post.report.left_out,
        "rhat": {entry.quantity: entry.rhat for entry in post.report.convergence},
        "warnings": post.report.warnings,
        "data_bytes": x.nbytes + y.nbytes,
        "peak_bytes": peak,
    }


def compared(x: Any, y: Any, settings: dict[str, Any]) -> tuple[Any, Any]:
    """The main job: fit, draws, and four divergences with their medians and intervals."""
    post = cobpm.compare(
        x,
        y,
        bounds=(0, 1),
        draws=settings["draws"],
        engine=settings["engine"],
        rng=1,
        model=settings["model"],
    )
    return post, read_off(post)


def read_off(post: Any) -> dict[str, tuple[float, float, float]]:
    """Median and 90% interval of each divergence."""
    quantiles = {name: np.quantile(post.draws(name), [0.5, 0.05, 0.95]) for name in FOUR}
    return {name: tuple(map(float, values)) for name, values in quantiles.items()}


def chain(x: Any, y: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Iterations of one chain per second of processor time, from a single leaf on."""
    draws, thin = 1000, max(1, settings["iterations"] // 1000)
    (_, seconds), post = timed(
        lambda: cobpm.compare(
            x,
            y,
            bounds=(0, 1),
            engine="mcmc",
            kernel=settings["kernel"],
            chains=1,
            burn_in=0,
            draws=draws,
            thin=thin,
            rng=1,
            model="paper",
        )
    )
    return {"per_second": draws * thin / seconds, "acceptance": post.report.acceptance}


def timed(work: Callable[[], Any]) -> tuple[tuple[float, float], Any]:
    """Seconds, seconds of processor time, and the result."""
    began, used = perf_counter(), process_time()
    result = work()
    return (perf_counter() - began, process_time() - used), result


def peak_memory() -> int | None:
    """Most memory this process has held so far, in bytes, where the system tells."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


if __name__ == "__main__":
    main()
