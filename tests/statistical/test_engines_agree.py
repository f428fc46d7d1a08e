"""All engines draw from one posterior, within the error of their draws; wrong ones are caught."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from arviz_stats.base.array import array_stats

from cobpm import _core
from cobpm.cells import Cells
from cobpm.divergences import Additive, Term, parse
from cobpm.engines import exact, mcmc, pruned
from cobpm.engines.fit import Plan
from cobpm.engines.mcmc import plug_in_kl
from cobpm.engines.moments import Moments
from cobpm.model import PaperModel
from cobpm.partitions import Partitions
from tests.cases import beta_mixtures, cells_of
from verification import sbc

LIMIT = 4.5  # standard errors: one false alarm in 150,000
CAUGHT = 6.0
PLAN = Plan(
    draws=40_000,
    burn_in=500,
    chains=4,
    thin=200,
    kernel="cherry",
    seed=20,
    threads=2,
    max_regions=1_000_000,
)
# KL of the posterior mean masses, sum of a/A ln(a/b) + ln(B/A): a sum over leaves given l, so that
# the recursion knows its mean.
PLUG_IN_KL = replace(
    parse("kl", "test"),
    additive=Additive(
        (Term(lambda a, b: a * np.log(a / b), lambda A, B: 1 / A),), lambda A, B: np.log(B / A)
    ),
)


def betas(d, n):
    rng = np.random.default_rng([d, n])
    return cells_of([rng.beta(2, 3, (n, d)), rng.beta(3, 2, (n + 5, d))])


def mixtures(n):
    return cells_of(beta_mixtures(n, np.random.default_rng(n)))


def model_of(cells, **changes):
    return replace(PaperModel(0.5, cells.d + 1.0, cells.d, tuple(cells.sizes.tolist())), **changes)


class Truth:
    """The posterior to the end: regions with two points or more are all grown."""

    def __init__(self, cells, model, depth=6):
        self.recursion = exact.start(cells, model, depth, PLAN)
        for _ in range(52 * cells.d):
            open_regions = self.recursion.frontier()
            if len(open_regions) == 0 or self.recursion.size > 400_000:
                break
            self.recursion.expand(open_regions, 2)
        self.root = exact.solve(self.recursion, model, PLAN)
        moments = Moments(self.recursion, model, self.root.leaves, self.root.probabilities)
        self.plug_in_kl = moments.mean(PLUG_IN_KL, 0, 1)
        self.leaves = self.root.mean_leaves
        self.d = cells.d

    def draw(self, draws, seed=5):
        packed, _, _ = self.recursion.draw(self.root.cumulative, self.root.first, draws, seed, 2)
        return Partitions.from_core(packed, self.d)


@cache
def truth_of(case):
    cells = {"line": lambda: betas(1, 200), "plane": lambda: betas(2, 25)}[case]()
    return cells, model_of(cells), Truth(cells, model_of(cells))


def z_score(values, expected, chains=1):
    """How many standard errors the mean of the draws is away; chains by their effective draws."""
    rows = np.asarray(values, dtype=float).reshape(chains, -1)
    effective = rows.size if chains == 1 else float(array_stats.ess(rows, method="mean"))
    return (rows.mean() - expected) * np.sqrt(effective) / rows.std()


def z_scores(partitions, model, truth, chains):
    """E[l], E[plug-in KL], and P(l) for every l that is neither rare nor nearly sure."""
    found = {
        "leaves": z_score(partitions.leaves, truth.leaves, chains),
        "plug-in KL": z_score(plug_in_kl(partitions, model), truth.plug_in_kl, chains),
    }
    for leaves, probability in zip(truth.root.leaves, truth.root.probabilities, strict=True):
        if 0.02 < probability < 0.98:
            found[f"P({leaves})"] = z_score(partitions.leaves == leaves, probability, chains)
    return found


def worst(scores):
    return max(map(abs, scores.values()))


# Chains


@pytest.mark.parametrize("case", ["line", "plane"])
def test_cherry_chains_agree_with_exact(case):
    cells, model, truth = truth_of(case)
    fit = mcmc.run(cells, model, PLAN, "asked for")
    scores = z_scores(fit.partitions, model, truth, PLAN.chains)
    assert len(scores) > 6
    assert worst(scores) < LIMIT, scores


@pytest.mark.parametrize("case", ["line", "plane"])
@pytest.mark.parametrize("wrong", ["price", "gamma"])
def test_wrong_hastings_ratios_are_caught(case, wrong):
    cells, model, truth = truth_of(case)
    log_gamma, log_price = model.log_gamma(), model.log_price(mcmc.most_leaves(cells))
    if wrong == "price":
        log_price = log_price + np.log(1.3)
    else:
        log_gamma = replace(model, delta=0.55).log_gamma()
    packed, _ = _core.run_chains(
        cells.codes, cells.sets, 2, log_gamma, log_price, "cherry", 4, 100_000, 10_000, 200, 20, 2
    )
    scores = z_scores(Partitions.from_core(packed, cells.d), model, truth, 4)
    assert worst(scores) > CAUGHT, scores


@pytest.mark.parametrize("case", ["line", "plane"])
def test_neighbouring_models_are_told_apart(case):
    """An exact posterior with a slightly different sigma does not pass for the right one."""
    cells, model, _ = truth_of(case)
    fit = mcmc.run(cells, model, PLAN, "asked for")
    other = Truth(cells, replace(model, sigma=model.sigma + 0.15))
    assert worst(z_scores(fit.partitions, model, other, PLAN.chains)) > CAUGHT


# Draws of the recursion


def root_splits(partitions):
    """Which column each partition is halved along first; -1 for none."""
    return partitions.splits[partitions.node_starts[:-1]]


def move_on(partitions, cells, model, steps=2000, log_price=None):
    packed = _core.move_on(
        cells.codes,
        cells.sets,
        len(cells.sizes),
        model.log_gamma(),
        model.log_price(mcmc.most_leaves(cells)) if log_price is None else log_price,
        partitions.splits,
        partitions.node_starts,
        steps,
        77,
        2,
    )
    return Partitions.from_core(packed, cells.d)


def test_exact_draws_stay_in_place_along_cherry_chains():
    cells = mixtures(250)
    model = model_of(cells)
    truth = Truth(cells, model, depth=10)
    draws = truth.draw(8000)
    moved = move_on(draws, cells, model)
    assert (moved.leaves != draws.leaves).mean() > 0.5  # they did move
    for partitions in (draws, moved):
        scores = z_scores(partitions, model, truth, chains=1)
        assert worst(scores) < LIMIT, scores
    for column in range(cells.d):
        before, after = (root_splits(partitions) == column for partitions in (draws, moved))
        share = before.mean()
        error = np.sqrt(max(share * (1 - share), 1e-4) / len(before))
        assert abs(after.mean() - share) < LIMIT * np.sqrt(2) * error

    # A wrong price carries them away.
    wrong = model.log_price(mcmc.most_leaves(cells)) + np.log(1.3)
    carried = move_on(draws, cells, model, log_price=wrong)
    assert worst(z_scores(carried, model, truth, chains=1)) > CAUGHT


@pytest.mark.parametrize(
    ("cells", "max_regions"), [(betas(2, 250), 1000), (mixtures(250), 4000)], ids=["plane", "space"]
)
def test_pruned_with_a_tight_budget_agrees_with_exact(cells, max_regions):
    model = model_of(cells)
    truth = Truth(cells, model, depth=9)
    assert truth.recursion.size > 4 * max_regions
    plan = replace(PLAN, draws=3000, max_regions=max_regions)
    fit = pruned.run(cells, model, plan, "asked for")
    assert fit.report.regions <= max_regions
    assert fit.report.left_out < 0.05
    assert all(entry.rhat < 1.02 for entry in fit.report.convergence)
    scores = z_scores(fit.partitions, model, truth, chains=1)
    assert worst(scores) < LIMIT, scores
    # What is left out can only lower the sum of weights.
    missing = truth.root.log_total - model.log_prior_total - fit.log_evidence
    assert -1e-9 < missing < 0.1


# Without data


@pytest.mark.parametrize(
    ("d", "sets", "delta", "sigma"), [(1, 2, 0.5, 2.3), (2, 2, 0.7, 2.0), (3, 1, 1.5, 1.0)]
)
@pytest.mark.parametrize("kernel", ["cherry", "guided", "uniform"])
def test_chains_without_data_draw_from_the_prior(kernel, d, sets, delta, sigma):
    cells = Cells(
        np.zeros((d, 0), dtype=np.uint64), np.zeros(0, dtype=np.uint16), np.zeros(sets, dtype=int)
    )
    model = PaperModel(delta, sigma, d, (0,) * sets)
    prior = model.prior_leaf_probabilities()

    def scores(log_price):
        packed, _ = _core.run_chains(
            cells.codes,
            cells.sets,
            sets,
            model.log_gamma(),
            log_price,
            kernel,
            4,
            20_000,
            8000,
            50,
            9,
            2,
        )
        leaves = Partitions.from_core(packed, d).leaves
        mean = z_score(leaves, prior @ np.arange(1, len(prior) + 1), chains=4)
        shares = [z_score(leaves == k + 1, p, 4) for k, p in enumerate(prior) if 0.02 < p < 0.98]
        return [mean, *shares]

    log_price = model.log_price(2000)
    assert max(map(abs, scores(log_price))) < LIMIT
    log_price = log_price.copy()
    log_price[1] += np.log(2)  # without the factor for the edge at l = 1
    assert max(map(abs, scores(log_price))) > CAUGHT


# Calibration, small; verification/sbc.py has the full run


LINE = PaperModel(0.5, 2.2, 1, (40, 25))
PLANE = PaperModel(1.0, 0.3, 2, (40, 40))


@pytest.mark.parametrize("model", [LINE, PLANE], ids=["line", "plane"])
def test_ranks_of_the_truth_are_uniform(model):
    found = sbc.ranks(sbc.Setting(model), replications=200, seed=4)
    for name, of_one in zip(sbc.RANKED, found, strict=True):
        assert sbc.p_value(of_one, 63, bins=16) > 1e-4, name


@pytest.mark.parametrize(
    "assumed", [replace(LINE, delta=1.5), replace(LINE, sigma=4.2)], ids=["delta", "sigma"]
)
def test_ranks_tell_a_wrong_posterior(assumed):
    found = sbc.ranks(sbc.Setting(LINE, assumed=assumed), replications=200, seed=4)
    assert min(sbc.p_value(of_one, 63, bins=16) for of_one in found) < 1e-8
