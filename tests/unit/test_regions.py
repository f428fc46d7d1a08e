"""Regions in the user's units and in words."""

import numpy as np
import pytest

import cobpm
from cobpm.domain import Domain
from cobpm.regions import all_ends, where
from cobpm.samples import as_samples

RNG = np.random.default_rng(2)


def words(sample, boxes, bounds=None, columns=1):
    """Sentences for boxes given as (level, index) for each column."""
    samples = as_samples([sample], owner="fit")
    domain = Domain.fit(samples, bounds)
    levels = np.array(boxes, dtype=np.int64).reshape(len(boxes), columns, 2)
    return where(
        all_ends(domain, levels[..., 0].astype(np.uint8), levels[..., 1].astype(np.uint64)),
        len(boxes),
    )


def test_intervals_in_words():
    ramp = np.linspace(0.0, 8.0, 50)
    boxes = [(0, 0), (1, 0), (2, 1), (1, 1)]
    assert words(ramp, boxes) == ["everywhere", "c1 < 4", "2 ≤ c1 < 4", "c1 ≥ 4"]


def test_only_columns_that_were_cut_are_named():
    grid = np.column_stack([np.linspace(0, 1, 30), np.linspace(0, 4, 30) ** 2])
    assert words(grid, [((0, 0), (1, 1)), ((1, 0), (1, 0))], columns=2) == [
        "c2 ≥ 8",
        "c1 < 0.5 and c2 < 8",
    ]


def test_atoms_in_words():
    # Zero has the lower half to itself; what lies above it starts above zero.
    sample = np.concatenate([np.zeros(500), np.linspace(0.01, 8.0, 500)])
    assert words(sample, [(1, 0), (1, 1), (2, 2), (2, 3)]) == [
        "c1 = 0",
        "c1 > 0",
        "0 < c1 < 4",
        "c1 ≥ 4",
    ]
    # An atom at the top: what lies below ends below it.
    assert words(-sample, [(1, 0), (1, 1)]) == ["c1 < 0", "c1 = 0"]


def test_integers_in_words():
    sample = np.repeat([1234567.0, 1234568.0, 1234569.0, 1234570.0], 100)
    assert words(sample, [(2, 0), (2, 3), (1, 0), (1, 1)]) == [
        "c1 = 1234567",
        "c1 = 1234570",
        "c1 ≤ 1234568",
        "c1 ≥ 1234569",
    ]


def test_digits_tell_narrow_intervals_apart():
    times = 1.357e9 + np.linspace(0, 1e4 / 3, 100)
    low, high = words(times, [(4, 3)])[0].split(" ≤ c1 < ")
    assert float(high) - float(low) == pytest.approx(1e4 / 48, rel=0.1)
    assert words(np.linspace(0, 1 / 3, 90), [(1, 0)]) == ["c1 < 0.16667"]


def counted(size, mean, seed):
    """A column of measurements and one of counts."""
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.normal(size=size) + mean / 2, rng.poisson(mean, size)])


X, Y = counted(500, 1, 1), counted(400, 2, 2)


@pytest.fixture(scope="module")
def post():
    return cobpm.compare(X, Y, rng=1, draws=400, model="paper")


def test_table(post):
    table = post.regions(level=0.8)
    assert list(table.columns[:9]) == [
        "where",
        "points_x",
        "points_y",
        "mass_x",
        "mass_y",
        "log_ratio",
        "log_ratio_low",
        "log_ratio_high",
        "p_x_denser",
    ]
    assert set(table.columns[9:]) == {"c1_low", "c1_high", "c2_low", "c2_high"}
    np.testing.assert_allclose(table[["mass_x", "mass_y"]].sum(), 1)
    assert list(table[["points_x", "points_y"]].sum()) == [500, 400]
    assert table["where"].is_unique
    assert table["p_x_denser"].between(0, 1).all()
    assert (table["log_ratio_low"] <= table["log_ratio_high"]).all()
    gaps = (table["mass_x"] - table["mass_y"]).abs().to_numpy()
    assert (np.diff(gaps) <= 1e-12).all()
    wide = post.regions(level=0.99)
    assert (wide["log_ratio_low"] <= table["log_ratio_low"]).all()


def test_rows_say_the_same_the_other_way_round(post):
    there, back = post.regions(), post.regions(first="y", second="x")
    assert there["where"].equals(back["where"])
    np.testing.assert_allclose(there["log_ratio"], -back["log_ratio"])
    np.testing.assert_allclose(there["p_x_denser"], 1 - back["p_y_denser"])


def test_regions_tile_the_domain():
    # In one column, sorted, each starts where the one before ends.
    post = cobpm.compare(
        RNG.normal(size=800), RNG.normal(size=800) + 1, rng=1, draws=100, model="paper"
    )
    table = post.regions().sort_values("c1_low")
    assert list(table["c1_low"][1:]) == list(table["c1_high"][:-1])
    low, high = post.domain.interval(0, 0.0, 1.0)
    assert (table["c1_low"].iloc[0], table["c1_high"].iloc[-1]) == (low, high)


def test_every_point_is_in_the_region_that_the_words_say(post):
    table = post.regions()
    assert len(table) > 5
    for name, sample in (("x", X), ("y", Y)):
        found = [
            np.all([holds(part, sample) for part in sentence.split(" and ")], axis=0).sum()
            for sentence in table["where"]
        ]
        # Numbers in words are rounded, which may move a point or two over an edge.
        assert abs(np.array(found) - table[f"points_{name}"]).sum() <= 4


def holds(part, x):
    """Evaluate "a ≤ c1 < b" and its like."""
    signs = {
        "=": np.equal,
        "≤": np.less_equal,
        "<": np.less,
        "≥": np.greater_equal,
        ">": np.greater,
    }
    words = part.split()
    values = [x[:, int(word[1]) - 1] if word[0] == "c" else float(word) for word in words[::2]]
    pairs = zip(values[:-1], words[1::2], values[1:], strict=True)
    return np.all([signs[sign](left, right) for left, sign, right in pairs], axis=0)


def test_cuts_inside_an_atom_do_not_show():
    # The most probable partition halves the interval of a value that one set has all its points at.
    post = cobpm.compare(np.zeros((1, 3)), np.ones((8, 3)), rng=1, draws=30, model="paper")
    table = post.regions()
    assert table["where"].is_unique
    assert list(table[["points_x", "points_y"]].sum()) == [1, 8]
    np.testing.assert_allclose(table[["mass_x", "mass_y"]].sum(), 1)


def test_one_set():
    post = cobpm.fit({"only": RNG.normal(size=(300, 2))}, rng=1, draws=100, model="paper")
    table = post.regions()
    assert "log_ratio" not in table
    assert table["mass_only"].is_monotonic_decreasing
    assert table["mass_only"].sum() == pytest.approx(1)


def test_masses_are_averages_over_all_partitions():
    x, y = RNG.normal(size=100), RNG.normal(size=100) + 2
    post = cobpm.compare(x, y, rng=1, draws=3000, model="paper")
    table = post.regions()
    # Points and prior both count: the mean mass is near (n + δ) / (N + δ l).
    rough = (table["points_x"] + 0.5) / (100 + 0.5 * post.leaves.mean())
    assert abs(rough - table["mass_x"]).max() < 0.1
