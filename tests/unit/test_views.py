"""The numbers behind the pictures, against what can be worked out without them."""

import gc
import weakref

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import cobpm
from cobpm.bins import choose_bins
from cobpm.marginals import MOST_ROWS, thinned
from cobpm.samples import InputError
from cobpm.views import column_view, map_view, telling_columns


def bins_of(*sets, most=None):
    sets = [np.asarray(values, dtype=float) for values in sets]
    ends = min(v.min() for v in sets), max(v.max() for v in sets)
    return choose_bins(sets, most, ends)


@pytest.fixture(scope="module")
def normals():
    rng = np.random.default_rng(1)
    return cobpm.compare(rng.normal(0, 1, 4000), rng.normal(0.5, 1, 5000), rng=0)


@pytest.fixture(scope="module")
def twelve():
    """Twelve columns: the fourth differs in the mean, the ninth in the spread."""
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(1500, 12)), rng.normal(size=(1500, 12))
    y[:, 3] += 1.0
    y[:, 8] *= 1.6
    return cobpm.compare(x, y, rng=0)


# --- bins --------------------------------------------------------------------------------------


def test_every_value_falls_into_a_bin():
    rng = np.random.default_rng(0)
    for values in (rng.normal(size=50), rng.standard_cauchy(500), rng.poisson(3, 80), [7.0, 7.0]):
        bins = bins_of(values)
        assert (np.diff(bins.edges) > 0).all()
        assert bins.counts(np.asarray(values, dtype=float)).sum() == len(values)
        assert (bins.edges[0] <= np.min(values)) or bins.open_low
        assert (bins.edges[-1] >= np.max(values)) or bins.open_high


def test_values_are_found_as_by_a_search():
    rng = np.random.default_rng(0)
    for values in (
        rng.normal(size=3000),
        rng.standard_cauchy(3000),
        rng.normal(size=3000).round(1),
    ):
        bins = bins_of(values)
        asked = np.concatenate([values, bins.edges, np.nextafter(bins.edges, -np.inf)])
        expected = np.clip(np.digitize(asked, bins.edges) - 1, 0, len(bins) - 1)
        np.testing.assert_array_equal(bins.of(asked), expected)


def test_whole_numbers_get_bins_of_whole_numbers():
    bins = bins_of([0, 1, 1, 2, 5, 9])
    np.testing.assert_allclose(bins.edges, np.arange(-0.5, 10))
    assert bins.step == 1.0
    wide = bins_of(np.arange(1000))
    width = np.diff(wide.edges)
    np.testing.assert_allclose(width, 25)
    assert wide.counts(np.arange(1000.0)).max() == 25


def test_rounded_numbers_do_not_beat_with_the_bins():
    values = np.random.default_rng(0).uniform(0, 10, 20_000).round(1)
    bins = bins_of(values)
    assert bins.step == pytest.approx(0.1)
    counts = bins.counts(values)[1:-1]
    expected = counts.mean()
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)


def test_an_outlier_leaves_the_picture_as_it_is():
    rng = np.random.default_rng(0)
    for n in (10, 1000):
        values = rng.normal(size=n)
        bins = bins_of(np.append(values, 1e12), values)
        assert bins.open_high
        assert not bins.open_low
        assert bins.edges[-1] < 6
        assert bins.of(np.array([1e12]))[0] == len(bins) - 1


def test_the_range_of_a_normal_sample_is_shown_whole():
    bins = bins_of(np.random.default_rng(0).normal(size=100_000))
    assert not bins.open_low
    assert not bins.open_high


@pytest.mark.parametrize(
    "values",
    [[1e308, -1e308, 3.0], [5e-324, 0.0], [1e16, 1e16 + 2, 1e16 + 4], [1.0], [0.0] * 99 + [1e12]],
)
def test_extreme_columns_have_bins(values):
    bins = bins_of(values)
    assert np.isfinite(bins.edges).all()
    assert (np.diff(bins.edges) > 0).all()
    assert bins.counts(np.array(values)).sum() == len(values)


# --- one column --------------------------------------------------------------------------------


def test_shares_are_those_of_a_histogram(normals):
    view = column_view(normals, "c1")
    for shares, values in zip(view.shares, normals.samples.values, strict=True):
        expected, _ = np.histogram(values, view.edges)
        np.testing.assert_allclose(shares, expected / len(values), atol=1.5 / len(values))
        assert shares.sum() == pytest.approx(1)


def test_the_band_holds_the_log_ratio_of_two_normals(normals):
    view = column_view(normals, "c1")
    p, q = (np.diff(stats.norm(mean).cdf(view.edges)) for mean in (0.0, 0.5))
    truth = np.log(p) - np.log(q)
    busy = view.shares.sum(axis=0) > 0.02
    assert busy.sum() > 15
    np.testing.assert_allclose(view.log_ratio[busy], truth[busy], atol=0.3)
    assert ((view.low < truth) & (truth < view.high))[busy].mean() > 0.7
    assert (view.sign[busy] == np.sign(truth[busy])).mean() > 0.6
    assert not (view.sign[busy] == -np.sign(truth[busy])).any()


def test_the_ratio_in_a_bin_is_that_of_the_masses_there():
    """By brute force: what every drawn partition puts into the bin, point by point."""
    rng = np.random.default_rng(3)
    post = cobpm.compare(rng.normal(0, 1, 60), rng.normal(1, 1, 50), rng=0, draws=40)
    view = column_view(post, "c1", bins=8)
    which = np.clip(np.digitize(np.concatenate(post.samples.values)[:, 0], view.edges) - 1, 0, 7)
    found = []
    for frame, partitions, leaves in post._by_frame():
        at = partitions.locate(frame.encode(post.samples).codes)
        masses, points = post.masses[leaves], partitions.counts.sum(axis=1)
        for rows in at:
            per_point = masses[rows] / points[rows][:, None]
            bins = np.array([per_point[which == k].sum(axis=0) for k in range(8)])
            np.testing.assert_allclose(bins.sum(axis=0), 1)
            found.append(np.log(bins[:, 0] / bins[:, 1]))
    np.testing.assert_allclose(view.log_ratio, np.mean(found, axis=0), rtol=1e-10)


def test_a_column_on_its_own_has_the_right_distance(twelve):
    truth = 2 * stats.norm.cdf(0.5) - 1
    view = column_view(twelve, "c4")
    low, high = view.tv_interval
    assert low < truth < high
    assert low < view.tv < high
    assert column_view(twelve, "c1").tv_interval.low == 0


def test_one_column_is_answered_by_the_posterior_itself(normals):
    view = column_view(normals, "c1", level=0.8)
    assert view.tv == normals.estimate("tv")
    assert view.tv_interval == normals.interval("tv", 0.8)


def test_the_sets_can_be_swapped(normals):
    there, back = column_view(normals, "c1"), column_view(normals, "c1", "y", "x")
    assert back.sets == ("y", "x")
    np.testing.assert_allclose(back.shares, there.shares[::-1], atol=1e-3)
    np.testing.assert_allclose(back.log_ratio, -there.log_ratio, rtol=1e-6)


def test_columns_come_in_the_order_of_how_much_they_differ(twelve):
    views = telling_columns(twelve)
    assert len(views) == 12
    assert [view.name for view in views[:2]] == ["c4", "c9"]
    tv = [view.tv for view in views]
    assert tv == sorted(tv, reverse=True)
    assert [view.name for view in telling_columns(twelve, most=1)] == ["c4"]


def test_of_many_columns_the_telling_ones_are_found():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 60)), rng.normal(size=(200, 60))
    y[:, 47] += 1
    views = telling_columns(cobpm.compare(x, y, rng=0, frames=1), most=3)
    assert views[0].name == "c48"


def test_of_many_sets_two_are_chosen_by_name():
    rng = np.random.default_rng(0)
    sets = {name: rng.normal(k, 1, 300) for k, name in enumerate(["a", "b", "c"])}
    post = cobpm.fit(sets, rng=0)
    near, far = column_view(post, "c1", "a", "b"), column_view(post, "c1", "a", "c")
    assert far.tv > near.tv
    with pytest.raises(InputError, match="name one of the sets"):
        column_view(post, "c1")


def test_rows_are_thinned_by_a_fixed_rule():
    values = np.arange(3 * MOST_ROWS, dtype=float)
    kept = thinned(values, 0)
    assert len(kept) == MOST_ROWS
    assert len(np.unique(kept)) == MOST_ROWS
    np.testing.assert_array_equal(kept, thinned(values, 0))
    assert (np.diff(kept) > 0).all()
    assert not np.array_equal(kept, thinned(values, 1))
    assert thinned(values[:10], 0) is not None
    assert len(thinned(values[:10], 0)) == 10
    # Neither is it every third row.
    assert len(np.unique(np.diff(kept))) > 3


def test_many_rows_give_the_same_picture_twice():
    rng = np.random.default_rng(0)
    x, y = rng.normal(0, 1, (30_000, 2)), rng.normal(0.1, 1, (40_000, 2))
    views = [column_view(cobpm.compare(x, y, rng=k, frames=1, draws=50), "c2") for k in (0, 1)]
    np.testing.assert_array_equal(views[0].log_ratio, views[1].log_ratio)
    assert views[0].tv == views[1].tv


def test_pictures_do_not_keep_a_posterior_alive():
    rng = np.random.default_rng(0)
    for d in (1, 3):
        post = cobpm.compare(rng.normal(size=(50, d)), rng.normal(size=(50, d)), rng=0, draws=50)
        column_view(post, "c1")
        remembered = weakref.ref(post)
        del post
        gc.collect()
        assert remembered() is None


def test_a_constant_column_is_one_bin():
    x, y = np.ones((20, 2)), np.ones((30, 2))
    x[:, 1], y[:, 1] = np.arange(20), np.arange(30)
    view = column_view(cobpm.compare(x, y, rng=0), "c1")
    np.testing.assert_allclose(view.edges, [0.5, 1.5])
    np.testing.assert_allclose(view.shares, 1)
    np.testing.assert_allclose(view.log_ratio, 0, atol=1e-12)
    assert view.tv == 0


def test_dates_are_known_again():
    days = pd.date_range("2024-01-01", periods=80)
    table = pd.DataFrame({"when": days, "what": np.arange(80.0)})
    post = cobpm.compare(table[:40], table[20:], rng=0)
    assert column_view(post, "when").dated
    assert column_view(post, "when").step == 86400
    assert not column_view(post, "what").dated
    array = cobpm.compare(days.to_numpy()[:40], days.to_numpy()[20:], rng=0)
    assert column_view(array, "c1").dated
    series = cobpm.compare(pd.Series(days, name="a"), pd.Series(days, name="b"), rng=0)
    assert column_view(series, "c1").dated


def test_regions_name_dates():
    days = pd.date_range("2024-01-01", periods=400)
    post = cobpm.compare(pd.DataFrame({"t": days[:250]}), pd.DataFrame({"t": days[200:]}), rng=0)
    words = " ".join(post.regions()["where"])
    assert "2024-0" in words
    assert "e+09" not in words


# --- two columns -------------------------------------------------------------------------------


def test_a_map_holds_the_log_ratio_of_two_normals():
    rng = np.random.default_rng(0)
    x, y = rng.normal(0, 1, (4000, 3)), rng.normal(0, 1, (4000, 3))
    y[:, 0] += 1
    post = cobpm.compare(x, y, rng=0)
    view = map_view(post, ("c1", "c2"))
    middle = (view.edges[0][1:] + view.edges[0][:-1]) / 2
    across, up = (np.histogram(np.append(x[:, k], y[:, k]), view.edges[k])[0] for k in (0, 1))
    busy = (up > 300)[:, None] & (across > 300)[None, :]
    truth = np.broadcast_to(0.5 - middle, view.log_ratio.shape)
    assert np.abs(view.log_ratio - truth)[busy].mean() < 0.2
    assert ((view.low < truth) & (truth < view.high))[busy].mean() > 0.7
    assert view.known[busy].all()
    assert not view.known[0, 0]


def test_a_map_can_be_turned(twelve):
    there, back = map_view(twelve, ("c4", "c9")), map_view(twelve, ["c9", "c4"])
    np.testing.assert_allclose(back.log_ratio, there.log_ratio.T)
    np.testing.assert_array_equal(back.known, there.known.T)
    np.testing.assert_allclose(back.leaves[:, :2], there.leaves[:, 2:])
    assert there.edges[1] is not there.edges[0]


def test_a_map_shows_the_columns_that_tell_most(twelve):
    assert map_view(twelve).columns == ("c4", "c9")


def test_the_leaves_fill_the_map_without_overlap(twelve):
    view = map_view(twelve)
    left, right, low, high = view.leaves.T
    whole = np.ptp(view.edges[0]) * np.ptp(view.edges[1])
    assert ((right - left) * (high - low)).sum() == pytest.approx(whole)
    assert len(view.leaf_log_ratio) == len(view.leaves) > 1


def test_leaves_of_integers_end_between_them():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.poisson(2, 900), rng.normal(size=900)])
    y = np.column_stack([rng.poisson(4, 900), rng.normal(size=900)])
    view = map_view(cobpm.compare(x, y, rng=0))
    cuts = np.unique(view.leaves[:, :2])
    np.testing.assert_allclose(cuts % 1, 0.5)
    assert len(cuts) > 2


def test_points_of_a_map_are_points_of_the_sets(twelve):
    view = map_view(twelve, ("c4", "c9"))
    for points, values in zip(view.points, twelve.samples.values, strict=True):
        rows = {tuple(row) for row in values[:, [3, 8]].tolist()}
        assert 100 < len(points) <= 500
        assert {tuple(row) for row in points.tolist()} <= rows


def test_columns_of_a_map_are_checked(twelve, normals):
    for columns in (("c4",), "c4", ("c4", "c4"), ("c4", "c99"), 3):
        with pytest.raises(InputError, match="columns"):
            map_view(twelve, columns)
    with pytest.raises(InputError, match="one column"):
        map_view(normals)


# --- without the points ------------------------------------------------------------------------


def test_a_loaded_posterior_takes_its_points_again(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.normal(0, 1, (300, 2)), rng.normal(0.5, 1, (300, 2))
    post = cobpm.compare(x, y, rng=0)
    post.save(tmp_path / "post.npz")
    loaded = cobpm.load(tmp_path / "post.npz")
    with pytest.raises(InputError, match="Give them again"):
        column_view(loaded, "c1")
    for wrong in ([y, x], [x], {"x": x, "z": y}, x):
        with pytest.raises(InputError, match="samples"):
            column_view(loaded, "c1", samples=wrong)
    expected = map_view(post)
    for samples in ([x, y], {"y": y, "x": x}):
        found = map_view(loaded, samples=samples)
        np.testing.assert_array_equal(found.log_ratio, expected.log_ratio)
        np.testing.assert_array_equal(found.points[0], expected.points[0])
