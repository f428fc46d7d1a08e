"""Input that is unusual but valid works, and the answer makes sense."""

import numpy as np
import pytest

import cobpm
from cobpm.divergences import SUMMARY


def checked(post):
    """What every posterior of two sets owes, whatever the data."""
    summary, regions = post.summary(), post.regions()
    assert list(summary.index) == list(SUMMARY)
    finite = summary[["median", "low", "high"]].to_numpy()
    assert np.isfinite(finite).all()
    assert (finite >= 0).all()
    assert (summary["mean"].isna() == (summary["note"] == "mean does not exist")).all()
    assert np.isfinite(regions.select_dtypes("number").to_numpy()).all()
    for name, size in zip(post.names, post.model.sizes, strict=True):
        assert regions[f"mass_{name}"].sum() == pytest.approx(1)
        assert regions[f"points_{name}"].sum() == size
    return post


def compare(x, y, **settings):
    return checked(cobpm.compare(x, y, **{"rng": 1, "draws": 300, **settings}, model="paper"))


@pytest.fixture
def rng():
    return np.random.default_rng(42)


def test_integers_get_cells_of_their_own(rng):
    post = compare(rng.integers(0, 3, 600), rng.choice([0, 1, 2], 600, p=[0.5, 0.3, 0.2]))
    assert set(post.regions()["where"]) == {"c1 = 0", "c1 = 1", "c1 = 2"}
    truth = 0.5 * (abs(0.5 - 1 / 3) + abs(0.3 - 1 / 3) + abs(0.2 - 1 / 3))
    low, high = post.interval("tv", 0.99)
    assert low < truth < high


def test_zero_inflated(rng):
    x, y = (np.where(rng.random(500) < p, 0.0, rng.exponential(size=500)) for p in (0.7, 0.3))
    top = compare(x, y).regions().iloc[0]
    assert top["where"] == "c1 = 0"
    assert top["mass_x"] == pytest.approx(0.7, abs=0.08)
    assert top["mass_y"] == pytest.approx(0.3, abs=0.08)


def test_constant_columns_are_named(rng):
    x, y = (np.column_stack([np.full(90, 7.0), rng.normal(size=90)]) for _ in range(2))
    post = compare(x, y)
    assert post.notices == ("Column 'c1' is constant (always 7) and was left out.",)
    assert post.notices[0] in repr(post)
    np.testing.assert_array_equal(post.draws("kl"), compare(x[:, 1], y[:, 1]).draws("kl"))


def test_all_points_equal():
    post = compare(np.full((50, 2), 3.0), np.full((40, 2), 3.0))
    assert len(post.notices) == 2
    assert post.estimate("tv") == 0
    assert list(post.regions()["where"]) == ["everywhere"]
    np.testing.assert_allclose(post.density([[3.0, 3.0], [2.0, 3.0]], "x"), [1, 0])


@pytest.mark.parametrize("d", [1, 2, 5])
def test_one_row_each(d):
    post = compare(np.zeros((1, d)), np.ones((1, d)))
    low, high = post.interval("tv", 0.98)
    assert low < 0.1  # nothing is known
    assert high > 0.8
    assert compare(np.zeros((1, d)), np.zeros((1, d))).estimate("kl") == 0


@pytest.mark.parametrize("d", [1, 2])
def test_identical_sets(rng, d):
    x = rng.normal(size=(1000, d))
    post = compare(x, x)
    assert post.estimate("tv") < 0.12
    assert post.estimate("kl") < 0.06


@pytest.mark.parametrize("distance", [1e2, 1e4])
def test_sets_far_apart(rng, distance):
    x, y = rng.normal(size=(400, 2)), rng.normal(size=(400, 2)) + distance
    post = compare(x, y)
    assert post.estimate("tv") > 0.9
    assert post.regions()["p_x_denser"][0] in (0.0, 1.0)


@pytest.mark.filterwarnings("ignore::cobpm.diagnostics.ConvergenceWarning")
@pytest.mark.parametrize("d", [1, 2, 3])
def test_outlier(rng, d):
    x, y = rng.normal(size=(200, d)), rng.normal(size=(200, d)) + 1
    x[0, 0] = 1e12
    post = cobpm.compare(x, y, rng=1, draws=200, model="paper")
    assert any("bounds='ranks'" in notice for notice in post.notices)
    ranks = compare(x, y, bounds="ranks")
    assert not ranks.notices
    for result in (post, ranks):
        assert 0.3 < result.draws("tv").mean() < 0.75
    assert np.isfinite(post.draws("kl")).all()


@pytest.mark.parametrize("scale", [1e300, 1e-300, 1.0])
def test_scale_does_not_matter(rng, scale):
    x, y = rng.normal(size=(300, 2)), rng.normal(size=(300, 2)) + 0.5
    expected = compare(x, y).estimate("kl")
    assert compare(scale * x, scale * y).estimate("kl") == pytest.approx(expected, rel=1e-9)


def test_the_whole_range_of_floats():
    post = compare([-1.7e308, 1.7e308, 0.0], [1.7e308, 3.0, 4.0])
    assert post.regions()["c1_low"].min() == -1.7e308
    compare([0.0, 5e-324], [5e-324, 5e-324])


@pytest.mark.parametrize(
    "convert", [np.float32, np.float16, np.ndarray.tolist, np.asfortranarray, lambda x: x[::-1]]
)
def test_kinds_of_numbers(rng, convert):
    x, y = rng.normal(size=(200, 2)), rng.normal(size=(250, 2)) + 1
    expected = compare(x, y).estimate("kl")
    assert compare(convert(x), convert(y)).estimate("kl") == pytest.approx(expected, rel=0.02)


def test_booleans(rng):
    post = compare(rng.random(200) < 0.3, rng.random(300) < 0.6)
    assert set(post.regions()["where"]) == {"c1 = false", "c1 = true"}
    assert post.estimate("tv") == pytest.approx(0.3, abs=0.1)


def test_very_unequal_sizes(rng):
    post = compare(rng.normal(size=10), rng.normal(size=100_000))
    assert post.model.sizes == (10, 100_000)
    assert post.interval("tv", 0.9).low < 0.6


@pytest.mark.filterwarnings("ignore::cobpm.diagnostics.ConvergenceWarning")
def test_forty_columns(rng):
    x, y = rng.normal(size=(200, 40)), rng.normal(size=(200, 40))
    y[:, 7] += 3
    post = compare(x, y, bounds="ranks")
    assert post.estimate("tv") > 0.6
    assert "c8" in post.regions()["where"][0]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_data_frames(rng, library):
    module = pytest.importorskip(library)
    make = module.table if library == "pyarrow" else module.DataFrame
    columns = {"height": rng.normal(170, 10, 300), "log_ratio": rng.normal(70, 9, 300)}
    x = make(columns)
    y = make({"log_ratio": columns["log_ratio"], "height": columns["height"] + 20})
    post = compare(x, y)
    assert post.columns == ("height", "log_ratio")
    regions = post.regions()
    assert "height" in regions["where"][0]
    # A column of the data may be called like one of the table.
    ends = {"height_low", "height_high", "column_log_ratio_low", "column_log_ratio_high"}
    assert ends <= set(regions.columns)
    assert regions["log_ratio_low"].le(regions["log_ratio_high"]).all()
    plain = np.column_stack([columns["height"], columns["log_ratio"]])
    np.testing.assert_array_equal(post.density(x, "x"), post.density(plain, "x"))


def test_one_set_is_a_density_estimate(rng):
    post = cobpm.fit([rng.beta(2, 5, 800)], bounds=(0, 1), rng=1, draws=500, model="paper")
    assert post.model.delta == 1.0
    grid = (np.arange(4096) + 0.5) / 4096
    density = post.density(grid)
    assert density.mean() == pytest.approx(1, abs=1e-9)
    truth = 30 * grid * (1 - grid) ** 4
    assert np.abs(density - truth).mean() < 0.15
    assert post.regions()["mass_1"].sum() == pytest.approx(1)


def test_three_sets(rng):
    post = cobpm.fit(
        {k: rng.normal(k, 1, (300, 2)) for k in (0, 1, 3)}, rng=1, draws=300, model="paper"
    )
    assert post.names == ("0", "1", "3")
    assert post.estimate("kl", "0", "1") < post.estimate("kl", "0", "3")
    np.testing.assert_array_equal(post.draws("kl", 0, 3), post.draws("kl", "0", "3"))
    np.testing.assert_allclose(post.draws("kl", "0", "3"), post.draws("reverse_kl", "3", "0"))
    assert len(post.summary(first="0", second="1")) == len(SUMMARY)


def test_thirty_sets(rng):
    post = cobpm.fit(
        [rng.normal(i / 10, 1, (60, 2)) for i in range(30)], rng=1, draws=200, model="paper"
    )
    assert len(post.names) == 30
    assert post.estimate("tv", "1", "2") < post.estimate("tv", "1", "30")
    masses = post.regions(first="1", second="30").filter(like="mass_")
    np.testing.assert_allclose(masses.sum(), 1)
