"""Frames: bijections of the user's space that depend on the samples and a name, and on no seed."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import cobpm
from cobpm.column_map import BITS, ColumnMap, by_arctan, by_ranks, fit_column, warped
from cobpm.frames import (
    BLIND,
    FOLDING,
    NAMES,
    SEEING,
    SHAPES,
    Frame,
    Linear,
    check_frames,
    fit_frames,
)
from cobpm.samples import InputError, as_samples

RNG = np.random.default_rng(3)
X, Y = RNG.normal(size=(300, 3)), RNG.normal(size=(200, 3)) * [1, 2, 0.5] + 0.7
OUTLIERS = np.where(np.arange(300)[:, None] < 2, [[1e12, -1e12, 1e12]], X)
DATA = {
    "plain": (X, Y),
    "outliers": (OUTLIERS, Y),
    "constant": (
        np.column_stack([X[:, :2], np.full(300, 0.1)]),
        np.c_[Y[:, :2], np.full(200, 0.1)],
    ),
    "duplicate": (X[:, [0, 1, 0]], Y[:, [0, 1, 0]]),
    "one column": (X[:, :1], Y[:, :1]),
    "integers": (np.floor(2 * X), np.floor(2 * Y)),
    "zeros": (np.maximum(X, 0), np.maximum(Y, 0)),
    "two points": (X[:1], Y[:1]),
    "huge": (1e300 * X, 1e300 * Y),
    "tiny": (1e-310 * X, 1e-310 * Y),
}


def samples_of(*sets):
    return as_samples(list(sets), owner="fit")


def frames_of(*sets, names=None):
    samples = samples_of(*sets)
    d = len(np.flatnonzero(np.ptp(np.concatenate(samples.values) / 2, axis=0)))
    return samples, fit_frames(samples, names or check_frames("auto", owner="fit", d=d), None)


@pytest.mark.parametrize("data", DATA)
def test_every_map_increases_and_comes_back(data):
    samples, frames = frames_of(*DATA[data])
    assert [frame.name for frame in frames] == list(SHAPES if samples.d == 1 else NAMES)
    for frame in frames:
        rows = frame.turned(np.concatenate(samples.values))
        unit = frame.domain.unit(rows)
        assert ((unit >= 0) & (unit < 1)).all()
        assert frame.domain.inside(rows).all()
        for k, j in enumerate(frame.domain.active):
            column = frame.domain.maps[j]
            assert column.edges[0] == 0
            assert column.edges[-1] == 1
            assert (np.diff(column.edges) > 0).all()
            assert (column.low <= column.high).all()
            order = np.argsort(rows[:, j], kind="stable")
            assert (np.diff(unit[order, k]) >= 0).all()
            distinct = np.unique(rows[:, j])
            assert (np.diff(column.unit(distinct)) > 0).mean() > 0.99  # all but for rounding
            low, high = column.values(unit[:, k], "low"), column.values(unit[:, k], "high")
            span = np.quantile(rows[:, j], 0.9) / 2 - np.quantile(rows[:, j], 0.1) / 2
            wide = frame.name.endswith("range") and data == "outliers"
            error = (np.ptp(rows[:, j]) if wide else span + np.abs(rows[:, j])) * 1e-9
            assert (np.abs(low - rows[:, j]) <= error).all()
            assert (np.abs(high - rows[:, j]) <= error).all()


@pytest.mark.parametrize("data", DATA)
def test_codes(data):
    samples, frames = frames_of(*DATA[data])
    for frame in frames:
        cells = frame.encode(samples)
        codes = frame.codes(np.concatenate(samples.values))
        assert codes.shape == cells.codes.shape == (frame.domain.d, sum(samples.sizes))
        assert codes.max() < 2**BITS
        assert cells.codes.max() < 2**BITS
        if data not in ("integers", "zeros", "outliers"):  # without ties
            np.testing.assert_array_equal(codes, cells.codes)


def test_number_of_columns_after_a_turn():
    for data, straight, turned in (("duplicate", 3, 2), ("constant", 2, 2), ("two points", 3, 1)):
        for frame in frames_of(*DATA[data])[1]:
            expected = (
                1 if frame.name.startswith("radius") else straight if frame.straight else turned
            )
            assert frame.domain.d == expected, (data, frame.name)


def test_shapes():
    _, frames = frames_of(X, Y)
    pooled = np.concatenate([X, Y])
    unit = {frame.name: frame.domain.unit(frame.turned(pooled)) for frame in frames}
    ranks = (np.argsort(np.argsort(pooled, axis=0), axis=0) + 0.5) / len(pooled)
    inner = (unit["ranks"] > 0) & (unit["ranks"] < 0.9999)  # the outermost points are at the ends
    assert inner.sum() == 3 * (len(pooled) - 2)
    np.testing.assert_allclose(unit["ranks"][inner], ranks[inner], atol=1e-9)
    low, high = pooled.min(axis=0), pooled.max(axis=0)
    np.testing.assert_allclose(unit["range"], (pooled - low) / (high - low), atol=1e-9)
    lower, middle, upper = np.quantile(pooled, [0.25, 0.5, 0.75], axis=0)
    angles = np.arctan((pooled - middle) / ((upper - lower) / 2 / 0.6745))
    straight = (angles - angles.min(axis=0)) / np.ptp(angles, axis=0)
    np.testing.assert_allclose(unit["arctan"], straight, atol=2e-4)  # linear between 257 knots
    # A power of the ranks, from one end or the other, of each column its own.
    found = []
    for k in range(3):
        ours, share = (unit[name][inner[:, k], k] for name in ("warped", "ranks"))
        powers = [np.log(ours) / np.log(share), np.log1p(-ours) / np.log1p(-share)]
        mirrored = int(np.ptp(powers[1]) < np.ptp(powers[0]))
        assert np.ptp(powers[mirrored]) < 0.01
        found.append((mirrored, powers[mirrored].mean().round(3)))
    assert len(set(found)) == 3
    assert all(np.exp(-0.5) < power < np.exp(0.5) for _, power in found)


def test_warped_leaves_atoms_on_dyadic_intervals():
    points = np.sort(np.concatenate([np.zeros(100), np.full(50, 2.0), RNG.normal(size=250)]))
    plain, _ = fit_column(points, None, by_ranks)
    bent, _ = fit_column(points, None, warped(by_ranks, 1.5, mirrored=True))
    for atom in (0.0, 2.0):
        for column in (plain, bent):
            (k,) = np.flatnonzero((column.low == atom) & (column.high == atom))
            width = column.edges[k + 1] - column.edges[k]
            assert np.log2(width) == np.round(np.log2(width))
            assert column.edges[k] % width == 0
    assert not np.array_equal(plain.edges, bent.edges)


def test_arctan_with_outliers():
    points = np.sort(np.concatenate([RNG.normal(size=998), [-1e12, 1e12]]))
    column, _ = fit_column(points, None, by_arctan)
    unit = column.unit(points)
    assert unit[0] == 0
    assert (np.diff(unit) > 0).all()
    # The middle half of the points keeps a fair part of the axis, where a straight map leaves none.
    assert unit[750] - unit[250] > 0.3
    assert np.ptp(fit_column(points, None, None)[0].unit(points[1:-1])) < 1e-10
    # Quartiles that coincide, and the whole range of floats.
    for hard in ([0.0, 1, 1, 1, 2], [-1.7e308, 0.0, 1.7e308], [0.0, 5e-324], [1.0, 1.0 + 2e-16]):
        column, _ = fit_column(np.array(hard), None, by_arctan)
        assert isinstance(column, ColumnMap)
        assert (np.diff(column.edges) > 0).all()
        assert np.isfinite(column.unit(np.array(hard))).all()


def test_equal_points_stay_equal_in_sets_of_any_sizes():
    """A matrix product rounds rows by how many there are; the sets would seem to differ."""
    rng = np.random.default_rng(0)
    for d in (5, 8, 20):
        linear = Linear(np.ones(d), np.zeros(d), rng.normal(size=(d, d)))
        row = rng.normal(size=(1, d))
        sizes = (1, 2, 7, 50, 5001)
        assert (
            len(np.unique(np.concatenate([linear.turned(row.repeat(n, 0)) for n in sizes]), axis=0))
            == 1
        )
        np.testing.assert_allclose(linear.turned(row), row @ linear.turn, rtol=1e-12, atol=1e-12)
    patterns = rng.integers(0, 2, (6, 8)).astype(float)
    x, y = np.tile(patterns, (1, 1)), np.tile(patterns, (900, 1))
    samples, frames = frames_of(x, y)
    for frame in frames:
        ours, theirs = (np.unique(frame.turned(rows), axis=0) for rows in samples.values)
        np.testing.assert_array_equal(ours, theirs)


# Folds


def test_folds_are_distances_from_the_middle():
    """Of normal scores that were made uncorrelated, here by other means."""
    samples, frames = frames_of(X, Y, names=list(FOLDING))
    pooled = np.concatenate(samples.values)
    ranks = (np.argsort(np.argsort(pooled, axis=0), axis=0) + 0.5) / len(pooled)
    scores = stats.norm.ppf(ranks)
    scores -= scores.mean(axis=0)
    distance = np.sqrt(np.einsum("ni,ij,nj->n", scores, np.linalg.inv(np.cov(scores.T)), scores))
    distance *= np.sqrt(len(pooled) / (len(pooled) - 1))
    for frame in frames:
        assert frame.blind
        assert not frame.straight
        after = frame.turned(pooled)
        assert after.shape == (500, 1 if frame.name.startswith("radius") else 3)
        assert (after >= 0).all()
        np.testing.assert_allclose(np.linalg.norm(after, axis=1), distance, atol=1e-5)
        if after.shape[1] > 1:  # along uncorrelated axes: signs are all that is missing
            np.testing.assert_allclose((after**2).mean(axis=0), 1, atol=1e-5)
            axes = (scores - frame.before.centre) @ frame.before.axes
            np.testing.assert_allclose(np.abs(axes), after, atol=1e-6)
            np.testing.assert_allclose(axes.T @ axes / 500, np.eye(3), atol=1e-6)


def test_folds_heed_ranks_alone():
    """Stretched columns fold to the same places, and an outlier moves no other point."""
    _, plain = frames_of(X, Y, names=list(FOLDING))
    _, stretched = frames_of(np.exp(X), np.exp(Y), names=list(FOLDING))
    far = X.copy()
    far[np.argmax(X[:, 0]), 0] = 1e12
    _, outlying = frames_of(far, Y, names=list(FOLDING))
    assert far[:, 0].max() > Y[:, 0].max()
    for one, two, three in zip(plain, stretched, outlying, strict=True):
        np.testing.assert_allclose(one.turned(X), two.turned(np.exp(X)), atol=1e-6)
        if np.argmax(X[:, 0]) == np.argmax(np.r_[X, Y][:, 0]):
            np.testing.assert_allclose(one.turned(X), three.turned(far), atol=1e-6)


def test_folds_see_what_comes_together():
    """Heavier tails all around, and large values that come together, in few cuts."""
    rng = np.random.default_rng(2)
    normal, other = rng.normal(size=(2, 2000, 3))
    heavy = other / np.sqrt(rng.chisquare(4, (2000, 1)) / 4)
    for names in (["radius ranks"], ["radius arctan"], ["folded ranks"], ["folded arctan"]):
        seen = cobpm.compare(normal, heavy, frames=names, rng=0, draws=200)
        straight = cobpm.compare(normal, heavy, frames=["ranks"], rng=0, draws=200)
        assert seen.log_evidence > straight.log_evidence + 10
        assert seen.estimate("tv") > 0.08
    same = cobpm.compare(normal, other, frames=list(FOLDING), rng=0, draws=200)
    assert same.estimate("tv") == 0


def test_points_that_mirror_each_other_do_not_tie():
    """Ties would be spread by which set a point is of, and where it stands in it."""
    grid = np.stack(np.meshgrid(np.arange(6.0), np.arange(6.0)), axis=-1).reshape(-1, 2)
    grid += 1e-3 * np.arange(36)[:, np.newaxis]  # mirrored ranks, no ties
    samples, frames = frames_of(grid[::2], grid[1::2], names=list(FOLDING))
    for frame in frames:
        after = frame.turned(np.concatenate(samples.values))
        assert all(len(np.unique(column)) == 36 for column in after.T)
        again = frames_of(grid[20:], grid[:20], names=[frame.name])[1][0]
        np.testing.assert_array_equal(frame.codes(grid), again.codes(grid))


# Which frames depend on what


def test_blind_frames_do_not_see_labels():
    pooled = np.concatenate([X, Y])
    shuffled = pooled[np.random.default_rng(1).permutation(500)]
    one = {frame.name: frame for frame in frames_of(X, Y)[1]}
    two = {frame.name: frame for frame in frames_of(shuffled[:120], shuffled[120:])[1]}
    moved = {}
    for name in NAMES:
        codes = [frames[name].codes(pooled) / 2.0**BITS for frames in (one, two)]
        moved[name] = np.abs(codes[0] - codes[1]).max()
        assert one[name].blind == (name in BLIND)
    assert max(moved[name] for name in BLIND) < 1e-9
    assert min(moved[name] for name in SEEING) > 0.1


def test_no_seed_of_the_user():
    posts = [cobpm.compare(X, Y, model="ratio", rng=seed, draws=20) for seed in (1, 2)]
    for one, two in zip(*(post.frames for post in posts), strict=True):
        for key, array in one.to_arrays().items():
            np.testing.assert_array_equal(array, two.to_arrays()[key])
    assert posts[0].log_evidence == posts[1].log_evidence


def test_units_do_not_matter():
    frames = frames_of(X, Y)[1]
    scale, shift = np.array([0.25, 1024.0, 2.0**-40]), np.array([3.0, -8.0, 0.5])
    scaled = frames_of(X * scale, Y * scale)[1]
    moved = frames_of(X + shift, Y + shift)[1]
    for one, two, three in zip(frames, scaled, moved, strict=True):
        np.testing.assert_array_equal(one.codes(X), two.codes(X * scale))
        near = one.codes(X) / 2.0**BITS - three.codes(X + shift) / 2.0**BITS
        assert np.abs(near).max() < 1e-9


def test_seeing_frames_put_the_difference_first():
    """An oblique shift is along the first axis of "means", an oblique spread of "spreads"."""
    rng = np.random.default_rng(5)
    way = np.array([1.0, -2.0, 1.0]) / np.sqrt(6)
    base = rng.normal(size=(2, 4000, 3))
    _, (means,) = frames_of(base[0], base[1] + way, names=["means ranks"])
    wide = base[1] + 2 * (base[1] @ way)[:, None] * way
    _, (spreads,) = frames_of(base[0], wide, names=["spreads ranks"])
    for frame in (means, spreads):
        first = (frame.before.turn / frame.before.scale[:, None])[:, 0]
        white = np.cov(np.concatenate([base[0], base[1] + way if frame is means else wide]).T)
        first = white @ first  # the direction in space that the axis measures
        assert abs(first @ way) / np.linalg.norm(first) > 0.98


# Checks and files


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        (0, "number from 1 to 16"),
        (17, "number from 1 to 16"),
        (True, "'auto', a number, or a list of names"),
        (2.0, "'auto', a number, or a list of names"),
        ("ranks", "list of names"),
        ([], "The names are 'ranks'"),
        (["ranks", "ranks"], "name each frame once"),
        (["rank"], "ranks"),
        ([["ranks"]], "one of"),
        (np.array(["ranks", "range"]), "list of names"),
    ],
)
def test_frames_that_are_none(frames, words):
    with pytest.raises(InputError, match="'frames' parameter of compare") as error:
        check_frames(frames, owner="compare", d=3)
    assert words in str(error.value)
    with pytest.raises(InputError, match="'frames'"):
        cobpm.compare(X, Y, model="ratio", frames=frames)
    with pytest.raises(InputError, match="go with model='ratio'"):
        cobpm.compare(X, Y, model="paper", frames=frames)


def test_frames_that_are():
    assert check_frames("auto", owner="fit", d=2) == NAMES
    assert check_frames("auto", owner="fit", d=1) == check_frames(16, owner="fit", d=1) == SHAPES
    assert check_frames(np.int64(3), owner="fit", d=5) == NAMES[:3]
    assert check_frames(("range", "means ranks"), owner="fit", d=2) == ("range", "means ranks")
    for name in ("turned ranks", "radius ranks", "folded arctan"):
        with pytest.raises(InputError, match=f"'{name}' for a single column"):
            check_frames(["ranks", name], owner="fit", d=1)


@pytest.mark.parametrize("data", ["plain", "integers", "duplicate", "tiny"])
def test_arrays_and_back(data):
    samples, frames = frames_of(*DATA[data])
    points = np.concatenate([samples.values[0], np.zeros((1, 3)), np.full((1, 3), 1e9)])
    for frame in frames:
        again = Frame.from_arrays(frame.name, frame.to_arrays())
        assert again.straight == frame.straight
        assert again.domain == frame.domain
        np.testing.assert_array_equal(again.codes(points), frame.codes(points))


def test_notices_say_what_holds_for_all_frames():
    x, y = (np.column_stack([rows, np.ones(len(rows))]) for rows in DATA["outliers"])
    samples = samples_of(x, y)
    said = {notice for frame in fit_frames(samples, NAMES, None) for notice in frame.domain.notices}
    assert said == {"Column 'c4' is constant (always 1) and was left out."}
    (alone,) = fit_frames(replace(samples), ["range"], None)
    assert any("bounds='ranks'" in notice for notice in alone.domain.notices)
