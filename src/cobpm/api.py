"""What people call: compare() for two samples, fit() and pairwise() for any number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from inspect import Parameter, signature
from typing import Any
from warnings import warn

import numpy as np

import cobpm
from cobpm import divergences, engines, pair_runs
from cobpm.diagnostics import ConvergenceWarning
from cobpm.domain import Domain
from cobpm.engines import Plan, screening
from cobpm.engines.exact import BYTES_PER_REGION
from cobpm.frames import GRID, Frame, check_frames, fit_frames
from cobpm.model import PaperModel, improper_because
from cobpm.pairs import PARTITIONS, Pairwise, PairwiseInterrupted, Question, joint
from cobpm.posterior import READ_OUTS, Posterior, default_read_out
from cobpm.progress import Progress, shown
from cobpm.provenance import provenance
from cobpm.ratio_model import RatioModel
from cobpm.samples import (
    Samples,
    Seen,
    bad,
    check_choice,
    check_count,
    check_level,
    check_positive,
    check_rng,
)
from cobpm.sketch import Sketch
from cobpm.sketched import (
    Sketched,
    as_grouped,
    as_sets,
    check_any_bounds,
    check_sketch_frames,
    encode,
)
from cobpm.threads import thread_count

MODELS = ("paper", "ratio")
MOST_EXPECTED = 1000  # cells before any data: beyond, the prior is all but improper
MAX_REGIONS = 8_000_000  # of two sets: about half a gigabyte


def _affordable(max_regions: int, sets: int) -> int:
    """As many regions of this many sets as take the memory of `max_regions` of two."""
    return max(1000, max_regions * BYTES_PER_REGION // (BYTES_PER_REGION - 8 + 4 * sets))


def compare(
    x: Any,
    y: Any,
    *,
    model: str = "ratio",
    bounds: Any = None,
    frames: Any = "auto",
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
    """Compare two samples: the posterior of all divergences between them, and of where they differ.

    Args:
        x: The first sample: an array of n rows and d columns, a list, or a data frame. A flat array
            of n numbers is one column. Or a `Sketch` of one set; collections of Dask become one.
        y: The second sample, of the same columns. The sizes may differ.
        model: "ratio", which cuts only where the ratio of the densities changes, or "paper", the
            published model.
        bounds: The range of the columns: None for the pooled minimum and maximum, "ranks" for
            pooled ranks, one (low, high) for all columns, a (low, high) for each column, or a
            mapping from column names to such pairs. With model="ratio" limits concern the frame
            "range", and "ranks" leaves only the frame of that name.
        frames: For model="ratio": the coordinate frames to average over. "auto" for all, a number,
            or a list of their names; see `cobpm.frames`.
        delta: For model="paper": pseudo-count of every cell for every set (the Dirichlet prior's
            parameter). None for 0.5.
        sigma: For model="paper": price of a cell; the prior of a partition into l cells is
            proportional to exp(-sigma l). None for d + 1.
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
    given = {
        "model": model,
        "bounds": bounds,
        "frames": frames,
        "delta": delta,
        "sigma": sigma,
        "engine": engine,
        "kernel": kernel,
        "draws": draws,
        "burn_in": burn_in,
        "chains": chains,
        "rng": rng,
        "progress": progress,
        "thin": thin,
        "max_regions": max_regions,
    }
    _check_settings(given, "compare")
    samples = as_sets(
        [x, y], owner="compare", names=("x", "y"), parameters=("x", "y"), bounds=bounds
    )
    post = _posterior(samples, "compare", **given)
    _warn(post.report.warnings)
    return post


def fit(
    samples: Samples | Sketch | Sketched | Mapping[str, Any] | Sequence[Any],
    *,
    model: str | None = None,
    bounds: Any = None,
    frames: Any = "auto",
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
            "1", "2", … Or a `Sketch`, whose sets have names.
        model: See `compare`, as for all that follow. None for "ratio", or "paper" with a single
            set, which has no ratio.
        bounds: The range of the columns.
        frames: Coordinate frames of the ratio model.
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
    given = {
        "model": "ratio" if model is None else model,
        "bounds": bounds,
        "frames": frames,
        "delta": delta,
        "sigma": sigma,
        "engine": engine,
        "kernel": kernel,
        "draws": draws,
        "burn_in": burn_in,
        "chains": chains,
        "rng": rng,
        "progress": progress,
        "thin": thin,
        "max_regions": max_regions,
    }
    _check_settings(given, "fit")
    found = as_sets(samples, owner="fit", bounds=bounds)
    if model is None and len(found.names) == 1:
        given["model"] = "paper"
    post = _posterior(found, "fit", **given)
    _warn(post.report.warnings)
    return post


def pairwise(
    samples: Any,
    divergence: str | Callable[[Any], Any] = "renyi:0.5",
    *,
    groups: Any = None,
    partition: str = "joint",
    level: float = 0.9,
    read_out: str | None = None,
    symmetric: bool = False,
    draws: int = 1000,
    rng: Any = None,
    progress: bool | Callable[[str, float], None] = False,
    checkpoint: Any = None,
    **settings: Any,
) -> Pairwise:
    """Work out the divergence between all pairs of many samples.

    Args:
        samples: A list of samples, a mapping from names to samples, a `Sketch`, or a table with
            `groups`.
        divergence: See `Posterior.draws`.
        groups: The column of a data frame that says which set a row belongs to, or one label per
            row of a table.
        partition: "joint" for one posterior over partitions that all sets share: fast, and all
            pairs are measured with the same ruler. "pair" for `compare` on every pair: partitions
            fit each pair, and the time grows with the square of the number of sets.
        level: Probability that a credible interval is to hold.
        read_out: What `Pairwise.matrix` holds: "mean", "median" or "plug"; see
            `Posterior.estimate`, also for what None means. Means over a joint posterior of more
            than ten sets are averages over its draws.
        symmetric: Take the mean of both directions, draw by draw.
        draws: Number of posterior draws, of each pair with partition="pair".
        rng: Seed or NumPy generator.
        progress: True for a bar on standard error, or a function of (stage, fraction done).
        checkpoint: With partition="pair", a file that takes the pairs as they are finished. The
            same call goes on where the file ends, also with further samples.
        **settings: The other keyword arguments of `compare`: model, bounds, delta, sigma, engine …

    Returns:
        The matrix of estimates with the ends of their intervals.

    Raises:
        InputError: If an argument cannot be used, saying what would do.
        PairwiseInterrupted: On Ctrl-C with partition="pair"; a KeyboardInterrupt whose `partial`
            holds the pairs that are done.
    """
    owner = "pairwise"
    check_choice(partition, PARTITIONS, parameter="partition", owner=owner)
    given = _settings_of_compare(settings, owner) | {"draws": draws}
    asked = divergences.parse(divergence, owner)
    if read_out is None:
        read_out = default_read_out(given["model"], asked)
    question = Question(
        asked,
        check_level(level, owner=owner),
        check_choice(read_out, READ_OUTS, parameter="read_out", owner=owner),
        bool(symmetric),
    )
    _check_settings(given | {"rng": rng}, owner)
    if groups is None:
        found = as_sets(samples, owner=owner, bounds=given["bounds"])
    else:
        found = as_grouped(samples, groups, owner=owner, bounds=given["bounds"])
    if len(found.names) < 2:
        parameter, seen = "samples" if groups is None else "groups", Seen("a single one")
        raise bad(parameter, owner, "make at least two sets", seen, "One set has no pairs.")
    check_any_bounds(given["bounds"], found, owner=owner)
    if partition == "pair":
        result = _every_pair(found, question, given, rng, progress, checkpoint)
    elif checkpoint is not None:
        way_out = "A joint posterior is one piece of work and cannot be resumed."
        raise bad("checkpoint", owner, "go with partition='pair'", checkpoint, way_out)
    else:
        post = _posterior(found, owner, **given, rng=rng, progress=progress)
        result = Pairwise.of(
            question,
            partition,
            found.names,
            joint(post, question),
            lambda i, j: post,
            post.report.warnings,
            post.notices,
        )
    _warn(result.warnings)
    return result


def _every_pair(
    samples: Samples | Sketched,
    question: Question,
    given: dict[str, Any],
    rng: Any,
    progress: bool | Callable[[str, float], None],
    path: Any,
) -> Pairwise:
    """One posterior per pair, as many at a time as there are processors."""
    owner = "pairwise"

    def fit_pair(
        pair: Samples | Sketched, seed: np.random.SeedSequence, progress: Progress
    ) -> Posterior:
        return _posterior(pair, owner, **given, rng=seed, progress=progress)

    generator = check_rng(rng, owner=owner)
    seed = _asked_seed(rng)
    if seed is None and rng is not None:  # without any, the file may have one
        seed = int(generator.integers(0, 2**63))
    asked = {
        "version": cobpm.__version__,
        "columns": samples.columns,
        "divergence": question.divergence.name,
        "level": question.level,
        "read_out": question.read_out,
        "symmetric": question.symmetric,
        **given,
        **({"sketch": samples.about} if isinstance(samples, Sketched) else {}),
    }
    with pair_runs.checkpoint(path, asked, seed) as (seed, answers, keep):
        pairs = pair_runs.Pairs.of(samples, question, seed, fit_pair)
        try:
            with shown(progress) as report:
                pair_runs.run(pairs, answers, keep, report)
            interrupted = False
        except KeyboardInterrupt:
            interrupted = True
    result = Pairwise.of(
        question,
        "pair",
        samples.names,
        pairs.tables(answers),
        pairs.posterior,
        pairs.warnings(answers),
        samples.notices,
    )
    if interrupted:
        raise PairwiseInterrupted(result, path)
    return result


def _settings_of_compare(settings: Mapping[str, Any], owner: str) -> dict[str, Any]:
    """The keyword arguments of compare() but for those that pairwise() has itself."""
    parameters = signature(compare).parameters.values()
    known = {p.name: p.default for p in parameters if p.kind is Parameter.KEYWORD_ONLY}
    for name in ("draws", "rng", "progress"):
        del known[name]
    for name in settings:
        if name not in known:
            close = get_close_matches(name, known, 1)
            hint = f"Did you mean '{close[0]}'?" if close else f"It takes {', '.join(known)}."
            raise TypeError(f"{owner}() got an unexpected keyword argument '{name}'. {hint}")
    return known | dict(settings)


def _asked_seed(rng: Any) -> int | None:
    """The seed that a user gave as a number, else None."""
    return int(rng) if isinstance(rng, int | np.integer) else None


def _warn(sentences: Iterable[str]) -> None:
    """Tell the caller of a public function what the engines have to say."""
    for sentence in sentences:
        warn(sentence, ConvergenceWarning, stacklevel=3)


def _check_settings(
    given: Mapping[str, Any], owner: str
) -> tuple[str, dict[str, int], int | None, str, str, np.random.Generator]:
    """Check what can be checked before the samples are read, which may take long."""
    model = check_choice(given["model"], MODELS, parameter="model", owner=owner)
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
    engine = check_choice(given["engine"], engines.ENGINES, parameter="engine", owner=owner)
    kernel = check_choice(given["kernel"], engines.KERNELS, parameter="kernel", owner=owner)
    rng = check_rng(given["rng"], owner=owner)
    return model, counts, thin, engine, kernel, rng


def _posterior(samples: Samples | Sketched, owner: str, **given: Any) -> Posterior:
    """The one way through the house: samples → domain → cells → model → engine → posterior."""
    model, counts, thin, engine, kernel, rng = _check_settings(given, owner)
    bounds = check_any_bounds(given["bounds"], samples, owner=owner)
    seed, mass_seed = (int(word) for word in rng.integers(0, 2**63, size=2))
    settings: dict[str, Any] = {
        "function": owner,
        "model": model,
        "bounds": "ranks"
        if isinstance(bounds, str)
        else ("pooled range" if bounds is None else "given"),
        "engine": engine,
        "kernel": kernel,
        **counts,
        "thin": thin,
        "seed": _asked_seed(given["rng"]),
    }
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
        fit = _fit_paper if model == "paper" else _fit_ratio
        frames, prior, fitted = fit(samples, bounds, owner, given, plan)
    parameters = {k: v for k, v in asdict(prior).items() if k not in ("d", "sizes")}
    settings |= {"frames": [frame.name for frame in frames], **parameters}
    if isinstance(samples, Sketched):
        settings |= {"bounds": "those of the grid", "sketch": samples.about}
    return Posterior.from_fit(
        samples, frames, prior, fitted, mass_seed, provenance(settings, samples)
    )


def _fit_paper(
    samples: Samples | Sketched, bounds: Any, owner: str, given: Mapping[str, Any], plan: Plan
) -> tuple[list[Frame], PaperModel, engines.Fit]:
    """The published model: one frame, one posterior."""
    if not (isinstance(given["frames"], str) and given["frames"] == "auto"):
        way_out = "The paper's model has one frame, which bounds= describes."
        raise bad("frames", owner, "go with model='ratio'", given["frames"], way_out)
    delta, sigma = given["delta"], given["sigma"]
    if delta is None:
        delta = 0.5 if len(samples.names) > 1 else 1.0
    delta = check_positive(delta, parameter="delta", owner=owner, way_out="The paper uses 0.5.")
    if isinstance(samples, Sketched):
        (frame,) = samples.frames([GRID])
    else:
        name = "ranks" if isinstance(bounds, str) else "range"
        frame = Frame(name, Domain.fit(samples, bounds))
    cells = encode(samples, frame)
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
    return [frame], model, engines.run(cells, model, given["engine"], plan)


def _fit_ratio(
    samples: Samples | Sketched, bounds: Any, owner: str, given: Mapping[str, Any], plan: Plan
) -> tuple[list[Frame], RatioModel, engines.Fit]:
    """The ratio model: several frames, and draws from all of them."""
    if len(samples.names) < 2:
        seen, way_out = Seen("a single set"), "A single set has no ratio; use model='paper'."
        raise bad("model", owner, "be 'paper' for a single set", seen, way_out)
    for name in ("delta", "sigma", "engine", "kernel", "burn_in", "chains", "thin"):
        value = given[name]
        if np.ndim(value) or value != signature(compare).parameters[name].default:
            raise bad(name, owner, "go with model='paper'", value, "Add model='paper'.")
    if isinstance(samples, Sketched):
        varying = len(samples.active)
        names = check_sketch_frames(given["frames"], owner=owner)
        fitted = samples.frames(names)
    else:
        limits = None if isinstance(bounds, str) else bounds
        varying, names = _frames_of_rows(samples, bounds, owner, given["frames"])
        fitted = fit_frames(samples, screening.chosen(samples, names, limits, plan), limits)
    found = engines.ratio.run(samples, fitted, plan, names)
    return fitted, RatioModel(varying, samples.sizes), found


def _frames_of_rows(
    samples: Samples, bounds: Any, owner: str, frames: Any
) -> tuple[int, tuple[str, ...]]:
    """The number of columns that vary, and the names of the frames to look through."""
    low, high = (
        extreme([extreme(rows, axis=0) for rows in samples.values], axis=0)
        for extreme in (np.min, np.max)
    )
    varying = int(np.count_nonzero(low < high))
    if isinstance(bounds, str) and isinstance(frames, str) and frames == "auto":
        frames = ["ranks"]
    return varying, check_frames(frames, owner=owner, d=varying)


def posterior_in(post: Posterior, frames: Sequence[Frame]) -> Posterior:
    """The posterior of the ratio model in some of the frames of another one, from its points."""
    assert post.samples is not None
    assert isinstance(post.model, RatioModel)
    settings = post.provenance["settings"]
    plan = Plan(
        draws=settings["draws"],
        burn_in=0,
        chains=1,
        thin=None,
        kernel=settings["kernel"],
        seed=0,
        threads=thread_count(),
        max_regions=_affordable(settings["max_regions"], len(post.names)),
    )
    fitted = engines.ratio.run(post.samples, frames, plan)
    return Posterior.from_fit(post.samples, frames, post.model, fitted, 0, post.provenance)
