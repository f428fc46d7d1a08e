"""The reproduced tables and figures: small versions, against values from elsewhere."""

import json
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from matplotlib.cbook import boxplot_stats
from scipy import integrate, special, stats
from scipy.optimize import brentq

import cobpm
from cobpm.diagnostics import ConvergenceWarning
from cobpm.experiments import (
    MODULES,
    comparison,
    fits,
    framework,
    illustrations,
    image_methods,
    images,
    laws,
    sanity,
    simulation,
    table1,
    table2,
)
from cobpm.experiments import simulation_page as page
from cobpm.experiments.framework import Result, Settings
from cobpm.partitions import Partitions

BETA = stats.beta(3, 5)
OURS = ("illustrations", "table1", "sanity", "one-dim", "three-dim", "table2")


def silent(stage, fraction):
    assert isinstance(stage, str)
    assert 0 <= fraction <= 1


@pytest.fixture(scope="module")
def small():
    """Every experiment with samples so small that all take a few seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation, "SIZES", (20, 40, 80))
        patch.setattr(sanity, "SIZE", 150)
        patch.setattr(table2, "SIZE", 40)
        settings = Settings(quick=True)
        return {name: framework.load(name).run(settings, silent) for name in OURS}


# --- laws --------------------------------------------------------------------------------------


def test_truths_in_closed_form():
    b = special.betaln
    truth = laws.ONE_DIM.truth
    below = stats.beta(5, 6).cdf(0.5) - stats.beta(6, 5).cdf(0.5)
    assert truth["tv"] == pytest.approx(below, abs=1e-9)
    assert truth["hellinger"] ** 2 == pytest.approx(1 - np.exp(b(5.5, 5.5) - b(6, 5)))
    assert truth["kl"] == pytest.approx(0.2)
    assert truth["renyi:2"] == pytest.approx(np.log(1.5))


def test_truth_of_table_1():
    truth = laws.BETA_SQUARE.truth
    assert truth["kl"] == pytest.approx(-2 * BETA.entropy())
    roots, squares = (integrate.quad(lambda t, k=k: BETA.pdf(t) ** k, 0, 1)[0] for k in (0.5, 2))
    assert truth["hellinger"] == pytest.approx(np.sqrt(1 - roots**2))
    assert truth["renyi:2"] == pytest.approx(2 * np.log(squares))

    def above(x):
        """Mass of (p − 1)+ on the line through x, between the two places where p = 1."""
        level = 1 / BETA.pdf(x)
        mode = 2 / 6
        if level >= BETA.pdf(mode):
            return 0.0
        low, high = (
            brentq(lambda t: BETA.pdf(t) - level, *ends) for ends in ((0, mode), (mode, 1))
        )
        return BETA.pdf(x) * (BETA.cdf(high) - BETA.cdf(low)) - (high - low)

    points = np.linspace(0, 1, 501)[1:-1]
    tv = integrate.simpson([0.0, *map(above, points), 0.0], dx=1 / 500)
    assert truth["tv"] == pytest.approx(tv, abs=1e-4)


@pytest.mark.parametrize(
    ("problem", "name", "known"),
    [
        (laws.UNIFORM_NORMAL, "kl", 1.87343),
        (laws.CORNER_NORMALS, "kl", 1.66326),
        (laws.BETA_MIXTURES, "kl", 0.21318),
        (laws.BETA_MIXTURES, "tv", 0.2301),
        (laws.BETA_MIXTURES, "hellinger", 0.2129),
        (laws.BETA_MIXTURES, "renyi:2", 0.67688),
        (laws.TABLE2, "renyi:2", 2.2188),
    ],
)
def test_known_truths(problem, name, known):
    digits = len(str(known).split(".")[1])
    assert problem.truth[name] == pytest.approx(known, abs=0.6 * 10.0**-digits)


def bump(points):
    return stats.beta.pdf(points, 2, 2).prod(axis=1)


def in_cells(points, which):
    height = np.zeros(len(points))
    for sides, *heights in laws.NESTED_CELLS.values():
        low, high = np.transpose(sides)
        height[np.all((points >= low) & (points < high), axis=1)] = heights[which]
    return height


DENSITIES = {
    laws.UNIFORM_HALVES: (lambda x: 1.8 - 0.8 * bump(x), lambda x: 0.2 + 0.8 * bump(x)),
    laws.NESTED: (lambda x: in_cells(x, 0), lambda x: in_cells(x, 1)),
    laws.BETA_SQUARE: (lambda x: BETA.pdf(x).prod(axis=1), lambda x: np.ones(len(x))),
}


@pytest.mark.parametrize("problem", DENSITIES, ids=lambda problem: problem.name)
def test_samples_agree_with_truths(problem):
    n = 40_000
    x, y = problem.sample(n, np.random.default_rng(7))
    assert x.shape == y.shape == (n, 2)
    p, q = DENSITIES[problem]
    logs = np.log(p(x) / q(x))
    assert abs(logs.mean() - problem.truth["kl"]) < 4 * logs.std() / np.sqrt(n)
    other = np.abs(1 - p(y) / q(y)) / 2  # of the second sample
    assert abs(other.mean() - problem.truth["tv"]) < 4 * other.std() / np.sqrt(n)


def test_six_dyadic_cells():
    """Both densities integrate to one, and few choices of volumes let them."""
    halves = [Fraction(1, 2**k) for k in range(1, 6)]  # six leaves are at most five deep
    choices = [
        (a, a, *rest)
        for a, *rest in product(halves, repeat=5)
        if 2 * a + sum(rest) == 1 and 3 * rest[0] == 2 * rest[2] + 10 * rest[3]
    ]
    volumes = tuple(
        Fraction(b - a) * Fraction(d - c) for ((a, b), (c, d)), *_ in laws.NESTED_CELLS.values()
    )
    assert len(choices) == 3
    assert min(choices, key=max) == volumes  # the most even of them
    for masses in laws.nested_masses():
        assert masses.sum() == pytest.approx(1)


def test_masses_on_boxes():
    low, high = np.array([[0.1, 0.2], [0.0, 0.0]]), np.array([[0.4, 0.9], [1.0, 1.0]])
    p, q = laws.uniform_halves_on(low, high)
    for k, masses in enumerate((p, q)):
        density = DENSITIES[laws.UNIFORM_HALVES][k]
        found, _ = integrate.dblquad(
            lambda b, a, f=density: f(np.array([[a, b]]))[0], 0.1, 0.4, 0.2, 0.9
        )
        assert masses == pytest.approx([found, 1.0])


# --- Table 1 -----------------------------------------------------------------------------------


def test_table_1(small):
    found = small["table1"].numbers["part_2"]
    expected = {
        "histogram": (0.5269, 0.4935, 0.7964, 1.0291),
        "adaptive": (0.5452, 0.5050, 0.8357, 1.0551),
        "truth": (0.5518, 0.5204, 0.8603, 1.0768),
    }
    for row, values in expected.items():
        assert list(found[row].values()) == pytest.approx(values, abs=5e-5)
    first = small["table1"].numbers["part_1"]
    assert first["B1"] == pytest.approx(
        {
            "tv": 1 / 2,
            "hellinger": 3**0.5 / 2 - 1 / 2,
            "kl": np.log(3) / 2,
            "renyi:2": np.log(7 / 3),
        }
    )
    assert set(first["B2"].values()) == {0.0}


def test_greedy_cells_tile_the_square_and_are_greedy():
    def kl(boxes):
        masses = [
            np.prod([integrate.quad(BETA.pdf, *side)[0] for side in box.sides]) for box in boxes
        ]
        return sum(m * np.log(m / box.volume) for m, box in zip(masses, boxes, strict=True))

    boxes = [table1.WHOLE]
    for cells in range(2, 6):
        options = [
            [*boxes[:k], *box.halves(column), *boxes[k + 1 :]]
            for k, box in enumerate(boxes)
            for column in (0, 1)
        ]
        boxes = max(options, key=kl)
        assert kl(boxes) == pytest.approx(kl(table1.greedy(cells)), rel=1e-9)
    all_cells = table1.greedy(64)
    assert len(all_cells) == 64
    assert sum(box.volume for box in all_cells) == pytest.approx(1)
    rng = np.random.default_rng(1)
    for point in rng.random((200, 2)):
        inside = [
            all(a <= t < b for t, (a, b) in zip(point, box.sides, strict=True)) for box in all_cells
        ]
        assert sum(inside) == 1


# --- fits --------------------------------------------------------------------------------------


def test_boxes_are_those_of_matplotlib():
    values = np.random.default_rng(3).gamma(1.0, size=500)
    ours, (theirs,) = fits.box(values), boxplot_stats(values)
    for mine, his in (
        ("median", "med"),
        ("quartile_1", "q1"),
        ("quartile_3", "q3"),
        ("whisker_low", "whislo"),
        ("whisker_high", "whishi"),
    ):
        assert ours[mine] == pytest.approx(theirs[his])
    assert ours["outliers"] == len(theirs["fliers"]) > 0


def test_chain_and_exact_agree_where_the_chain_mixes():
    x, y = laws.ONE_DIM.sample(8, np.random.default_rng(2))
    exact = simulation.fit_exact(x, y, 1, 3000)
    chain = simulation.fit_chain(x, y, 1, 3000, "guided")
    each = chain.about["mean_leaves_of_chains"]
    error = each.std(ddof=1) / np.sqrt(len(each))
    assert abs(each.mean() - exact.about["expected_leaves"]) < 4.5 * error
    assert len(chain.leaves) == len(chain.draws["kl"]) == 3000
    assert max(chain.about["rhat"].values()) < 1.05


def test_errors_of_monte_carlo():
    errors = simulation.monte_carlo_errors(laws.ONE_DIM, 10**8)
    # Of x/(1−x) with x ~ Beta(6, 5), which has mean 3/2 and second moment 7/2.
    assert errors["renyi:2"] == pytest.approx(np.sqrt(5 / 4) / 1.5 / 1e4, rel=1e-6)
    logs = np.sqrt(special.polygamma(1, 6) + special.polygamma(1, 5)) / 1e4
    assert errors["kl"] == pytest.approx(logs, rel=1e-6)
    assert simulation.monte_carlo_errors(laws.BETA_MIXTURES, 10**8)["renyi:2"] is None


# --- simulations -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["one-dim", "three-dim"])
def test_simulations(small, name):
    numbers = small[name].numbers
    assert set(numbers["sizes"]) == set(numbers["over_data_sets"]) == {20, 40, 80}
    for found in numbers["sizes"].values():
        exact = found["exact"]
        counts = exact["leaves"]
        assert sum(counts.values()) == numbers["draws"]
        mean = sum(k * count for k, count in counts.items()) / numbers["draws"]
        assert exact["mean_leaves"] == pytest.approx(mean)
        assert exact["expected_leaves"] == pytest.approx(mean, rel=0.1)
        assert 0 <= exact["tv"]["median"] <= 1
    for value, paper in zip(
        numbers["truth"].values(), numbers["paper"]["truth"].values(), strict=True
    ):
        assert value == pytest.approx(paper, abs=2e-4)


def averages(first, last, error=0.01):
    def one(value):
        return {"mean": value, "standard_error": error}

    names = laws.FOUR
    return {
        "over_data_sets": {
            50: {name: {"std": one(value)} for name, value in zip(names, first, strict=True)},
            1250: {name: {"std": one(value)} for name, value in zip(names, last, strict=True)},
        }
    }


def test_what_the_page_says_of_changes():
    changes = page._changes(averages((1, 1, 1, 1), (0.5, 0.99, 2, 0.9)), "std")
    assert changes == {
        "falls": ["tv", "renyi:2"],
        "rises": ["kl"],
        "does not clearly change": ["hellinger"],
    }
    assert page._said(changes) == (
        "falls for total variation and Rényi of order 2; rises for Kullback–Leibler; does not "
        "clearly change for Hellinger."
    )
    assert page._said(page._changes(averages((1,) * 4, (0,) * 4), "std")) == "falls for all four."


# --- Table 2 -----------------------------------------------------------------------------------


def test_table_2(small):
    numbers = small["table2"].numbers
    sets = numbers["data_sets"]
    for engine in ("exact", "guided"):
        for what in ("medians", "stds"):
            assert numbers[engine][what].shape == (sets, 4)
            assert (numbers[engine][what] > 0).all()
    # The first data set again, from its seed.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table2, "SIZE", 40)
        settings = Settings(quick=True)
        x, y = table2.truncated_normals(settings.rng(4, 0))
    draws = cobpm.compare(
        x, y, bounds=(0, 1), delta=0.7, model="paper", draws=numbers["draws"], rng=settings.seed
    ).draws("renyi:2")
    assert numbers["exact"]["medians"][0, 2] == pytest.approx(np.median(draws))
    assert numbers["exact"]["stds"][0, 2] == pytest.approx(draws.std())
    assert numbers["first_data_set"]["exact"][2]["median"] == pytest.approx(np.median(draws))


# --- sanity ------------------------------------------------------------------------------------

SIX = [0, 1, -1, -1, 1, -1, 0, -1, 1, -1, -1]  # the columns of the cuts that make r1 to r6
FINER = [0, 1, 0, -1, -1, -1, 1, -1, 0, -1, 1, -1, -1]
COARSER = [0, 1, -1, -1, 1, -1, 0, -1, -1]  # r5 and r6 together


def test_cells_that_are_found():
    trees = [SIX, FINER, [-1], COARSER]
    leaves = [tree.count(-1) for tree in trees]
    partitions = Partitions(
        np.concatenate(trees).astype(np.int8),
        np.cumsum([0, *map(len, trees)]),
        np.zeros((sum(leaves), 2), dtype=np.int64),
        np.cumsum([0, *leaves]),
        2,
    )
    found = sanity.found_cells(partitions)
    np.testing.assert_array_equal(found[:2], 1)
    np.testing.assert_array_equal(found[2], 0)
    np.testing.assert_array_equal(found[3], [1, 1, 1, 1, 0, 0])
    assert sanity.share_that_refines(partitions) == 0.5


def test_sanity(small):
    numbers = small["sanity"].numbers
    mixture = numbers["mixture"]
    assert mixture["exact"]["mean_leaves"] > numbers["control"]["exact"]["mean_leaves"]
    best = mixture["learned"]
    assert (best["high"] - best["low"]).prod(axis=1).sum() == pytest.approx(1)
    assert best["counts"].sum(axis=0).tolist() == [150, 150]
    for name in laws.FOUR:  # Theorem 1
        assert mixture["bound_on_learned"][name] <= mixture["truth"][name]
    assert 0 <= numbers["nested"]["exact"]["share_that_refines"] <= 1


# --- illustrations -----------------------------------------------------------------------------


def test_sequences_are_those_that_enumeration_finds():
    def grow(cells, left):
        if not left:
            ends.append(frozenset(cells))
            return
        for cell in cells:
            for column in (0, 1):
                rest = [other for other in cells if other != cell]
                grow([*rest, *illustrations.halves(cell, column)], left - 1)

    whole = ((0.0, 1.0), (0.0, 1.0))
    ends = []
    grow([whole], 4)
    counted = Counter(ends)
    assert sum(counted.values()) == 24 * 2**4
    for cells, count in counted.items():
        assert illustrations.sequences(whole, list(cells)) == count
        order = illustrations.cuts(whole, list(cells))
        grown = {whole}
        for box, column in order:
            grown = (grown - {box}) | set(illustrations.halves(box, column))
        assert grown == cells


# --- pages and files ---------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["guided", "uniform"])
def test_chains_are_run_as_the_paper_says(kernel):
    """From a single cell, 5,000 iterations left out, every further one kept; the two in order."""
    x, y = laws.ONE_DIM.sample(30, np.random.default_rng(31))
    how = {"model": "paper", "engine": "mcmc", "thin": 1, "bounds": (0, 1), "rng": 3}
    with pytest.warns(ConvergenceWarning):
        there = cobpm.compare(
            *(x, y), **how, kernel=kernel, chains=2, burn_in=5000, draws=80, delta=0.7
        )
    here = fits.chain(x, y, 3, draws=40, kernel=kernel, chains=2, delta=0.7)
    np.testing.assert_array_equal(here.draws("kl"), there.draws("kl"))
    assert here.model.delta == 0.7


def test_settings_are_the_papers():
    """What its text says, word by word, of sizes and numbers of draws."""
    assert (fits.KEPT, fits.BURN_IN) == (3000, 5000)
    assert fits.KEPT + fits.BURN_IN == 8000
    assert simulation.SIZES == (50, 250, 1250)
    assert (sanity.SIZE, table2.SIZE) == (1000, 500)
    assert table2.DELTAS == (0.5, 0.6, 0.7, 0.8)
    assert (comparison.SIZES[0], comparison.SIZES[-1]) == (50, 5000)
    assert (table1.CELLS, len(table1.grid(8))) == (64, 64)
    plan = images.PAPERS_PLAN
    assert (plan.train, plan.test, plan.repeats, plan.grid**2) == (50, 100, 20, 1600)
    assert (plan.words, plan.topics, image_methods.VOTERS, images.DIMENSIONS) == (100, 20, 9, 2)
    assert image_methods.DIVERGENCE == f"renyi:{image_methods.ORDER}" == "renyi:0.5"


def test_every_experiment_is_listed():
    assert set(OURS) <= set(MODULES)
    for name in MODULES:
        experiment = framework.load(name)
        assert name == experiment.NAME
        assert experiment.TITLE


@pytest.mark.parametrize("name", OURS)
def test_files(small, name, tmp_path):
    result, settings = small[name], Settings(quick=True)
    framework.write(framework.load(name), result, tmp_path, settings, 1.5)
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        f"{name}.json",
        f"{name}.md",
        f"{name}.png",
    ]
    content = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
    assert content["verdict"] == result.verdict
    assert content["provenance"]["command"] == f"cobpm reproduce {name} --quick"
    assert content["provenance"]["seconds"] == 1.5
    assert content["provenance"]["cobpm"] == cobpm.__version__
    assert "paper" in content["numbers"] or name in ("sanity", "illustrations")  # no numbers there
    text = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {framework.load(name).TITLE}\n")
    assert f"]({name}.png)" in text
    assert f"`cobpm reproduce {name} --quick`" in text
    assert "quick version" in text
    assert "nan" not in text
    assert (tmp_path / f"{name}.png").stat().st_size < 300_000


def test_same_numbers_each_time(small, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation, "SIZES", (20, 40, 80))
        again = framework.load("one-dim").run(Settings(quick=True), silent)
    one, other = small["one-dim"], again
    assert json.dumps(framework._plain(one.numbers)) == json.dumps(framework._plain(other.numbers))
    assert one.sections == other.sections


def test_numbers_that_json_does_not_know(small, tmp_path):
    bad = replace(small["table1"], numbers={"value": np.nan})
    with pytest.raises(ValueError, match="JSON"):
        framework.write(framework.load("table1"), bad, tmp_path, Settings(), 0.0)
    assert list(tmp_path.iterdir()) == []


def test_the_page_in_the_documentation_is_up_to_date(small):
    kept = Path(__file__).parents[2] / "docs/reproduction/table1.json"
    there = json.loads(kept.read_text(encoding="utf-8"))["numbers"]["part_2"]
    for row, values in small["table1"].numbers["part_2"].items():
        assert there[row] == pytest.approx(values)


def test_index(tmp_path):
    outcomes = [
        framework.Outcome("table1", "Table 1", "It agrees.", seconds=2.4),
        framework.Outcome("images", "Images", "There is no data.", done=False),
    ]
    framework.write_index(outcomes, tmp_path, Settings())
    text = (tmp_path / "index.md").read_text(encoding="utf-8")
    assert "[Table 1](table1.md) | `cobpm reproduce table1` | It agrees. | 2 |" in text
    assert "| Images | `cobpm reproduce images` | Not run: There is no data. |  |" in text


def test_upper_bounds():
    said = [framework.upper_bound(value) for value in (0.0, 3.3e-7, 2e-8, 0.000135, 0.0001, 0.9)]
    assert said == ["0", "4e-07", "2e-08", "0.0002", "0.0001", "0.9"]


def test_results_need_all_parts():
    with pytest.raises(TypeError):
        Result({}, None, "", ())
