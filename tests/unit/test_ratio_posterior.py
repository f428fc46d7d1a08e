"""The ratio model from the outside: compare, fit and pairwise with model="ratio"."""

import os
import pickle
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

import cobpm
from cobpm import storage
from cobpm.divergences import parse
from cobpm.frames import BLIND, NAMES, SHAPES
from cobpm.posterior import Band
from cobpm.samples import InputError
from tests.interface.test_hard_input import checked

RNG = np.random.default_rng(12)
X, Y, Z = (
    RNG.normal(size=(200, 2)),
    RNG.normal(size=(150, 2)) + np.array([1.0, 0.5]),
    RNG.normal(size=(180, 2)) * 1.5,
)


def compare(x=X, y=Y, **settings):
    return checked(cobpm.compare(x, y, **{"model": "ratio", "rng": 1, "draws": 300, **settings}))


@pytest.fixture(scope="module")
def post():
    return compare(draws=1000)


@pytest.fixture(scope="module")
def three():
    return cobpm.fit({"a": X, "b": Y, "c": Z}, model="ratio", rng=1, draws=2000)


# The same answer, asked in other ways


def test_pairwise_of_two_sets_is_compare():
    settings = {"model": "ratio", "rng": 5, "draws": 200}
    one = cobpm.compare(X, Y, **settings)
    for partition in ("joint", "pair"):
        pairs = cobpm.pairwise([X, Y], "kl", partition=partition, level=0.8, **settings)
        assert pairs.read_out == "median"
        if partition == "joint":
            assert pairs.matrix[0, 1] == pytest.approx(one.estimate("kl"), rel=1e-12)
            ends = pairs.low[0, 1], pairs.high[0, 1]
            assert ends == pytest.approx(one.interval("kl", 0.8), rel=1e-12)
        else:  # has a seed of its own for each pair
            assert pairs.matrix[0, 1] == pytest.approx(one.estimate("kl"), rel=0.15)
        again = pairs.posterior(0, 1)
        assert again.log_evidence == one.log_evidence
        assert pairs.draws(0, 1) == pytest.approx(again.draws("kl"), rel=1e-12)
    for read_out in ("mean", "plug"):
        pairs = cobpm.pairwise([X, Y], "tv", read_out=read_out, **settings)
        expected = one.estimate("tv", read_out=read_out)
        assert pairs.matrix[0, 1] == pytest.approx(expected, rel=1e-9)


def spread_of_median(draws):
    """About the standard error of the median of independent draws, a little wide."""
    return 1.5 * np.subtract(*np.quantile(draws, [0.75, 0.25])) / np.sqrt(len(draws))


def test_order_of_the_sets(three):
    other = cobpm.fit({"c": Z, "a": X, "b": Y}, model="ratio", rng=2, draws=2000)
    assert other.log_evidence == pytest.approx(three.log_evidence, abs=1e-9)
    assert other.log_bayes_factor == pytest.approx(three.log_bayes_factor, abs=1e-9)
    np.testing.assert_allclose(other.report.frame_weights, three.report.frame_weights, atol=1e-9)
    for name in ("kl", "tv"):
        for pair in (("a", "b"), ("c", "a")):
            means = [post.estimate(name, *pair, read_out="mean") for post in (three, other)]
            assert means[0] == pytest.approx(means[1], rel=1e-9)
            drawn = three.draws(name, *pair)
            medians = [post.estimate(name, *pair) for post in (three, other)]
            assert abs(medians[0] - medians[1]) < 6 * spread_of_median(drawn)
    swapped, straight = (cobpm.compare(*pair, model="ratio", rng=1) for pair in ((Y, X), (X, Y)))
    assert swapped.log_bayes_factor == pytest.approx(straight.log_bayes_factor, abs=1e-9)
    there, back = straight.draws("reverse_kl"), swapped.draws("kl")
    assert abs(np.median(there) - np.median(back)) < 6 * spread_of_median(there)
    assert abs(np.median(straight.draws("kl")) - np.median(back)) > 3 * spread_of_median(there)


@pytest.mark.parametrize("seed", range(3))
def test_order_of_the_rows(seed):
    """Rounding must not choose the signs of axes."""
    order = np.random.default_rng(seed).permutation(len(X))
    one, two = compare(), compare(X[order])
    assert one.log_evidence == pytest.approx(two.log_evidence, abs=1e-9)


def test_threads_and_seeds(post):
    script = (
        "import numpy as np, cobpm; rng = np.random.default_rng(1)\n"
        "x, y = rng.normal(size=(30_000, 2)), rng.normal(size=(25_000, 2)) + 0.5\n"
        "post = cobpm.compare(x, y, model='ratio', rng=4, draws=200)\n"
        "print(post.log_evidence.hex(), post.draws('kl').tobytes().hex())\n"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "COBPM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2", "3")
    }
    assert len(answers) == 1
    again, other = compare(draws=1000), compare(draws=1000, rng=2)
    np.testing.assert_array_equal(again.draws("kl"), post.draws("kl"))
    assert not np.array_equal(other.draws("kl"), post.draws("kl"))
    assert other.estimate("kl", read_out="mean") == post.estimate("kl", read_out="mean")


# What it says


def test_report_and_repr(post, three):
    assert post.report.engine == "ratio"
    assert post.report.frames == tuple(frame.name for frame in post.frames) == NAMES
    assert sum(post.report.frame_weights) == pytest.approx(1)
    counts = np.diff(post.frame_starts)
    assert counts.sum() == len(post.partitions) == 1000
    assert (np.abs(counts - 1000 * np.array(post.report.frame_weights)) <= 1).all()
    text = repr(post)
    assert text.startswith("Posterior of x (200), y (150) in 2 columns: 1,000 draws by engine")
    assert "'ratio'" in text
    assert "c (180)" in repr(three)
    assert post.estimate("kl") == np.median(post.draws("kl"))
    assert post.provenance["settings"]["frames"] == list(NAMES)


def test_summary(post):
    table = post.summary(["kl", "tv", "chi2", "renyi:2"])
    assert table.loc["kl", "mean"] == post.estimate("kl", read_out="mean")
    assert table.loc["chi2", "note"] == "mean does not exist"
    assert np.isnan(table.loc["chi2", "mean"])
    assert tuple(table.loc["kl", ["low", "high"]]) == post.interval("kl")
    with pytest.raises(InputError, match="read_out='median'"):
        post.estimate("chi2", read_out="mean")
    low, high = post.interval("kl", 0.9)
    plain = np.quantile(post.draws("kl"), [0.05, 0.95])
    assert low > plain[0]  # few points: narrower than the posterior's own
    assert high < plain[1]


def test_regions(post):
    table = post.regions()
    for name, rows in (("x", X), ("y", Y)):
        assert table[f"mass_{name}"].sum() == pytest.approx(1)
        for _, row in table.iterrows():
            inside = np.ones(len(rows), dtype=bool)
            for k in (0, 1):
                low, high = row[f"c{k + 1}_low"], row[f"c{k + 1}_high"]
                inside &= (rows[:, k] >= low) & (rows[:, k] <= high)
            assert inside.sum() == row[f"points_{name}"], row["where"]
    top = table.iloc[0]
    assert np.sign(top["log_ratio"]) == np.sign(top["mass_x"] - top["mass_y"])
    with pytest.raises(InputError, match="Add 'ranks' to the frames"):
        cobpm.compare(X, Y, model="ratio", frames=["turned ranks"], rng=1, draws=20).regions()


def test_masses_of_regions_follow_the_points():
    # Both sets lie along a ridge, which leaves of one draw and regions of another cross at will.
    rng = np.random.default_rng(3)
    first = rng.gamma(4, 1, 600)
    x = np.column_stack([first, first + rng.normal(size=600)])
    y = np.column_stack([first + rng.normal(size=600), first * 1.3])
    post = compare(x, y, frames=["range"])
    partitions = post.partitions
    regions = partitions.one(int(np.argmax(post.model.log_weights(partitions))))
    codes = np.ascontiguousarray(post.frames[0].encode(post.samples).codes)
    region, leaf = regions.locate(codes)[0], partitions.locate(codes)
    exact = np.empty((len(partitions), len(regions.counts), 2))
    for draw, (begin, end) in enumerate(pairwise(partitions.leaf_starts)):
        shared = np.zeros((len(regions.counts), end - begin))
        np.add.at(shared, (region, leaf[draw] - begin), 1.0)
        shared /= np.maximum(shared.sum(axis=0), 1.0)
        exact[draw] = shared @ post.masses[begin:end]
    points = regions.counts.sum(axis=1, dtype=np.int64)
    found = partitions.box_masses(post.masses, *regions.boxes(), points)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    even = partitions.box_masses(post.masses, *regions.boxes())
    errors = [np.abs(masses - exact).sum(axis=1).mean() / 2 for masses in (found, even)]
    assert errors[0] < 0.01 < 0.05 < errors[1]  # spread evenly, masses would be far off


def test_regions_where_turned_frames_have_all_draws(tmp_path):
    # A shift along the diagonal of four columns, with points enough to leave no doubt.
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(4000, 4)), rng.normal(size=(4000, 4)) + 0.7
    post = compare(x, y, draws=150)
    straight = {frame.name for frame in post.frames if frame.straight}
    assert not any(frame.name in straight for frame, *_ in post._by_frame())
    table = post.regions()
    assert table["points_x"].sum() == table["points_y"].sum() == 4000
    np.testing.assert_allclose(table[["mass_x", "mass_y"]].sum(), 1)
    assert table["p_x_denser"][0] in (0.0, 1.0)
    assert table.equals(post.regions())
    post.save(tmp_path / "post.npz")
    with pytest.raises(InputError, match="before save"):
        cobpm.load(tmp_path / "post.npz").regions()


def test_regions_of_three(three):
    table = three.regions(first="a", second="c")
    assert {"mass_b", "points_c", "p_a_denser"} <= set(table.columns)
    assert table[["mass_a", "mass_b", "mass_c"]].sum().to_numpy() == pytest.approx([1, 1, 1])


def test_log_ratio(post):
    towards = np.array([[-1.5, -1.0], [2.5, 1.5]])
    found = post.log_ratio(towards)
    assert found[0] > 1 > -1 > found[1]
    np.testing.assert_allclose(post.log_ratio(towards, "y", "x"), -found, atol=1e-12)
    band = post.log_ratio(X, level=0.9)
    assert isinstance(band, Band)
    assert band.low.shape == (200,)
    assert (band.low <= band.estimate + 1).all()
    assert (band.low <= band.high).all()
    truth = -X @ [1.0, 0.5] + 0.625
    assert np.corrcoef(band.estimate, truth)[0, 1] > 0.7


def test_log_ratio_far_away(post):
    edge = post.log_ratio([[-1e3, -1e3], [1e3, 1e3]])
    assert edge[0] > 0 > edge[1]
    for far in (1e6, 1e100, 1.7e308):
        found = post.log_ratio([[-far, -far], [far, far], [-far, far]])
        assert np.isfinite(found).all()
        assert found[0] > 0 > found[1]


def test_no_densities(post):
    with pytest.raises(InputError, match=r"density\(\).*log_ratio\(\)"):
        post.density(X, "x")


# Whether the sets are the same


def test_same_probability():
    rng = np.random.default_rng(3)
    same = compare(rng.normal(size=(500, 2)), rng.normal(size=(500, 2)))
    assert same.same_probability() > 0.85
    assert same.estimate("kl") < 0.01
    far = compare(X, Y + 3)
    assert far.same_probability() < 1e-20
    assert far.same_probability(prior=0.999999) < 1e-10
    odds = np.exp(-same.log_bayes_factor) * 0.2 / 0.8
    assert same.same_probability(prior=0.2) == pytest.approx(odds / (1 + odds))
    for prior in (0, 1, -0.5, "half", None):
        with pytest.raises(InputError, match="prior"):
            same.same_probability(prior=prior)


def test_same_probability_is_refused():
    with pytest.raises(InputError, match=r"must be 'ratio'.*paper"):
        cobpm.compare(X, Y, model="paper", rng=1, draws=10).same_probability()
    seeing = cobpm.compare(X, Y, model="ratio", frames=["means ranks"], rng=1, draws=10)
    assert seeing.log_bayes_factor is None
    with pytest.raises(InputError, match=r"'frames'.*Add 'ranks'"):
        seeing.same_probability()


def test_seeing_frames_do_not_count_in_the_bayes_factor(post):
    blind = compare(frames=len(BLIND))
    assert blind.log_bayes_factor == pytest.approx(post.log_bayes_factor, abs=1e-9)
    assert blind.log_evidence != post.log_evidence


def test_false_alarms_are_few():
    """Of sets with one distribution hardly any are told apart."""
    rng = np.random.default_rng(8)
    pairs = [rng.standard_t(3, size=(2, 100, 2)) for _ in range(40)]
    factors = [
        cobpm.compare(*pair, model="ratio", rng=1, draws=1).log_bayes_factor for pair in pairs
    ]
    assert np.mean(np.exp(factors)) < 2.5  # it is one on average
    assert sum(factor > np.log(20) for factor in factors) <= 5


# Settings


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"delta": 0.5}, "'delta' parameter of compare.*model='paper'"),
        ({"sigma": 3}, "'sigma'.*model='paper'"),
        ({"delta": np.ones(2)}, "'delta'.*model='paper'"),
        ({"engine": "exact"}, "'engine'.*model='paper'"),
        ({"engine": "ratio"}, "'engine'"),
        ({"model": "ratios"}, "'model'.*'ratio'"),
        ({"model": "paper", "frames": 3}, "'frames'.*model='ratio'"),
        ({"model": "paper", "frames": np.array(["a", "b"])}, "'frames'.*model='ratio'"),
        ({"draws": 0}, "'draws'"),
    ],
)
def test_settings_of_the_other_model(settings, words):
    with pytest.raises(InputError, match=words):
        cobpm.compare(X, Y, **{"model": "ratio", **settings})


def test_a_single_set():
    with pytest.raises(InputError, match="A single set has no ratio"):
        cobpm.fit([X], model="ratio")


def test_bounds():
    ranks = compare(bounds="ranks")
    assert [frame.name for frame in ranks.frames] == ["ranks"]
    chosen = compare(bounds="ranks", frames=["arctan", "warped"])
    assert {frame.name for frame in chosen.frames} == {"arctan", "warped"}
    wide = compare(bounds=(-100, 100), frames=["range", "ranks"])
    ends = {frame.name: frame.domain.interval(0, 0.0, 1.0) for frame in wide.frames}
    assert ends["range"] == (-100, 100)
    assert ends["ranks"] == (min(X[:, 0].min(), Y[:, 0].min()), max(X[:, 0].max(), Y[:, 0].max()))
    with pytest.raises(InputError, match="bounds"):
        compare(bounds=(0, 1))
    # A map that is applied to all columns changes nothing for ranks.
    bent = compare(np.exp(X), np.exp(Y), bounds="ranks")
    assert bent.log_evidence == pytest.approx(ranks.log_evidence, abs=1e-9)


# Unusual data


def test_unequal_sizes():
    """A small set's empty cells do not make the divergence from a large one explode."""
    rng = np.random.default_rng(4)
    large, small = rng.normal(size=(10_000, 2)), rng.normal(size=(100, 2)) + 0.7
    truth = 0.49
    for pair in ((large, small), (small, large)):
        post = compare(*pair)
        for read_out in ("median", "mean"):
            assert truth / 3 < post.estimate("kl", read_out=read_out) < 3 * truth
        assert post.interval("kl", 0.9).high < 6
    assert compare(large, large[::100]).same_probability() > 0.5


@pytest.mark.parametrize(("few", "many"), [(1, 1000), (5, 5000), (50, 5000)])
def test_a_few_points_among_many(few, many):
    """The smaller set is not different for being small, and a difference is still seen."""
    rng = np.random.default_rng(few)
    large = rng.normal(size=(many, 2))
    different = 0
    for _ in range(20):
        post = compare(rng.normal(size=(few, 2)), large, draws=300)
        different += post.same_probability() < 0.05 or post.interval("kl").low > 0
        if few == 1:  # one point says next to nothing, wherever it lies
            assert post.same_probability() == pytest.approx(0.5, abs=0.15)
    assert different <= 2
    if few == 50:
        far = compare(rng.normal(2, 1, size=(few, 2)), large)
        assert far.same_probability() < 1e-6
        assert far.interval("kl").low > 0.5


def test_intervals_of_a_few_points():
    """Two sets of one law: they hold zero."""
    rng = np.random.default_rng(1)
    held = [
        compare(*rng.normal(size=(2, n, 2)), draws=300).interval("kl").low == 0.0
        for n in (5, 10, 20, 50)
        for _ in range(15)
    ]
    assert np.mean(held) > 0.85


def test_identical_samples():
    post = compare(X, X)
    assert post.estimate("kl") == 0
    assert post.same_probability() > 0.9


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (RNG.poisson(3, (300, 3)), RNG.poisson(4, (200, 3))),
        (RNG.integers(0, 2, (300, 6)), RNG.integers(0, 2, (80, 6))),
        (np.maximum(X, 0), np.maximum(Y, 0)),
        (X.round(1), Y.round(1)),
        (1e300 * X, 1e300 * Y),
        (1e-310 * X, 1e-310 * Y),
        (X * 1.5e307, -Y * 1.5e307),
        (X + 1e12, Y + 1e12),
        (X[:, [0, 0, 1]], Y[:, [0, 0, 1]]),
        (X[:, 0] > 0, Y[:, 0] > 0),
        ([1.0], [2.0]),
        ([[1.0, 2.0, 3.0]], [[3.0, 1.0, 3.0]]),
        (X[:1], Y),
        ([0.0, 5e-324], [5e-324, 5e-324]),
        ([-1.7e308, 1.7e308, 0.0], [1.7e308, 3.0, 4.0]),
    ],
)
def test_hard_data(x, y):
    post = compare(x, y)
    assert 0 <= post.same_probability() <= 1
    assert np.isfinite(post.log_bayes_factor)
    points = np.asarray(x, dtype=float)
    assert np.isfinite(post.log_ratio(points, level=0.5).high).all()


def test_outliers():
    x = X.copy()
    x[0] = 1e12
    with_it, without = compare(x, Y, draws=2000), compare(X[1:], Y, draws=2000)
    assert with_it.estimate("tv") == pytest.approx(without.estimate("tv"), abs=0.08)
    assert with_it.notices == ()  # other frames see what the range does not


def test_constant_columns():
    plain = compare(draws=100)
    for constant in (7.0, 0.1, 1e300):
        x, y = (np.column_stack([rows, np.full(len(rows), constant)]) for rows in (X, Y))
        post = compare(x, y, draws=100)
        assert len(post.notices) == 1
        assert "'c3' is constant" in post.notices[0]
        assert post.model.d == 2
        columns = {frame.name: frame.domain.d for frame in post.frames}
        assert all(d == (1 if name.startswith("radius") else 2) for name, d in columns.items())
        assert post.log_bayes_factor == pytest.approx(plain.log_bayes_factor, abs=0.5)


def test_all_points_equal():
    post = compare(np.ones((20, 2)), np.ones((30, 2)))
    assert post.estimate("kl") == 0
    assert post.same_probability(prior=0.3) == pytest.approx(0.3)
    assert [frame.name for frame in post.frames] == list(SHAPES)
    np.testing.assert_allclose(post.log_ratio([[1.0, 1.0], [5.0, 5.0]]), 0, atol=1e-12)


@pytest.mark.parametrize(("n", "d"), [(50, 12), (2000, 20)])
def test_many_columns(n, d):
    rng = np.random.default_rng(d)
    x, y = rng.normal(size=(n, d)), rng.normal(size=(n, d))
    y[:, 0] += 2.0
    post = compare(x, y, draws=100)
    assert post.estimate("tv") > 0.5
    assert post.same_probability() < 0.01


# Elsewhere


@pytest.mark.parametrize("name", ["chi2", "renyi:2", "renyi:inf", "tsallis:1.5", "alpha:-0.5"])
def test_steep_divergences_are_read_off_mean_masses(name):
    """A few cells that are empty by chance decide draws of these, and so the median of draws."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(300, 2)), rng.normal(0.4, 1, size=(300, 2))
    post = cobpm.compare(x, y, rng=1, draws=400)
    plug = post.estimate(name, read_out="plug")
    assert post.estimate(name) == plug < post.estimate(name, read_out="median")
    p, q = post.mean_masses().T
    each = parse(name, "test").of_masses(p, q, post.partitions.starts)
    assert plug == np.median(each)
    for partition in ("joint", "pair"):
        assert cobpm.pairwise([x, y], name, draws=50, partition=partition).read_out == "plug"
    assert cobpm.pairwise([x, y], "renyi:0.5", draws=50).read_out == "median"


@pytest.mark.parametrize("sets", [2, 3])
def test_files_and_pickles(tmp_path, sets):
    data = [rows[:, [0, 1, 0]] for rows in (X, Y, Z)][:sets]  # turned frames have fewer columns
    post = cobpm.fit(data, model="ratio", rng=1, draws=60)
    post.save(tmp_path / "post.npz")
    first, second = post.names[:2]
    for again in (cobpm.load(tmp_path / "post.npz"), pickle.loads(pickle.dumps(post))):
        assert repr(again) == repr(post)
        assert again.regions(first=first, second=second).equals(
            post.regions(first=first, second=second)
        )
        points = np.vstack([data[1], np.full((1, 3), 1e5)])
        found = [one.log_ratio(points, first, second, level=0.8) for one in (again, post)]
        np.testing.assert_array_equal(*found)
        for name in ("model", "report", "notices", "log_evidence", "log_bayes_factor", "names"):
            assert getattr(again, name) == getattr(post, name), name
        assert again.same_probability() == post.same_probability()
        assert again.estimate("chi2", first, second) == post.estimate("chi2", first, second)
        assert [frame.name for frame in again.frames] == [frame.name for frame in post.frames]
        assert again.interval("kl", 0.9, first, second) == post.interval("kl", 0.9, first, second)
    loaded = cobpm.load(tmp_path / "post.npz")
    if sets == 2:
        assert loaded.summary().equals(post.summary())  # with its exact means
        assert loaded.estimate("squared_hellinger", read_out="mean") == post.estimate(
            "squared_hellinger", read_out="mean"
        )
    loaded.save(tmp_path / "again.npz")
    assert cobpm.load(tmp_path / "again.npz").draws("tv", first, second) == pytest.approx(
        post.draws("tv", first, second)
    )


def test_to_datatree(post):
    pytest.importorskip("xarray")
    tree = storage.to_datatree(post)
    assert tree["posterior"]["kl"].shape == (1, 1000)
    np.testing.assert_array_equal(tree["posterior"]["tv"].values[0], post.draws("tv"))
    assert np.isfinite(tree["sample_stats"]["lp"].values).all()
    assert tree["posterior"].attrs["engine"] == "ratio"


def test_progress():
    told = []
    post = compare(progress=lambda stage, done: told.append((stage, done)))
    stages = {stage for stage, _ in told}
    assert {"frame 1 of 16", "frame 16 of 16"} <= stages
    assert all(0 <= done <= 1 for _, done in told)
    np.testing.assert_array_equal(post.draws("kl"), compare().draws("kl"))

    class Enough(Exception):
        pass

    def stop(stage, done):
        raise Enough

    with pytest.raises(Enough):
        cobpm.compare(X, Y, model="ratio", progress=stop)


@pytest.mark.parametrize("read_out", [None, "mean", "plug"])
def test_new_sets_against_a_ratio_posterior(read_out):
    rng = np.random.default_rng(6)
    settings = {"model": "ratio", "draws": 300, "random_state": 0, "read_out": read_out}
    estimator = cobpm.SampleSetDivergence("tv", **settings).fit([X, Y, Z])
    new = [rng.normal(size=(150, 2)), rng.normal(size=(150, 2)) + np.array([1.0, 0.5]), X]
    table = estimator.transform(new)
    assert table.shape == (3, 3)
    assert list(table[:2].argmin(axis=1)) == [0, 1]
    assert table[0, 0] < 0.2
    np.testing.assert_array_equal(table[2], estimator.divergences_[0])
    pairs = cobpm.SampleSetDivergence("tv", partition="pair", **settings).fit([X, Y])
    assert pairs.transform(new[:1])[0, 0] < 0.2


@pytest.mark.parametrize(("sets", "n"), [(30, 30), (100, 30), (300, 400)])
def test_many_sets_of_one_law(sets, n):
    """That all have as many points as they have is no evidence for a difference."""
    rng = np.random.default_rng(sets)
    values = rng.normal(size=(sets, n, 1))
    found = cobpm.pairwise(list(values), draws=50, rng=1, frames=2, max_regions=10**6)
    assert np.isfinite(found.matrix).all()
    post = found.posterior(0, 1)
    assert post.log_bayes_factor < -1
    assert post.estimate("kl", "1", "2") == 0.0
    values[::2] += 0.8
    other = cobpm.fit(list(values), draws=50, rng=1, frames=2, max_regions=10**6)
    assert other.log_bayes_factor > 10
