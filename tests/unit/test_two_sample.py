import numpy as np
import pytest

import cobpm
from cobpm import _core
from cobpm.frames import BLIND, SHAPES, fit_frames
from cobpm.samples import Samples, as_samples
from cobpm.two_sample import MAX_REGIONS, log_ratios, pool
from tests.cases import beta_mixtures, cells_of


def normals(n, m, d, shift=0.0, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(shift, 1, size=(m, d))


def recursion(sets, depth, threads=1):
    cells = cells_of(sets)
    return cells, _core.Ratio(
        cells.codes, cells.sets, len(sets), depth, np.array([1.0, 4.0, 16.0]), 1 / 3, threads
    )


# Permutations in the core


def labels_of(n, seed, permutation, sets):
    """What the core's permutation does to labels: its generator and shuffle, written out."""
    mask = 2**64 - 1

    def mix(z):
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    golden = 0x9E3779B97F4A7C15
    x, state = mix(seed) ^ mix((permutation + golden) & mask), []
    for _ in range(4):
        x = (x + golden) & mask
        state.append(mix(x))

    def rotate(x, k):
        return ((x << k) | (x >> (64 - k))) & mask

    def bits():
        s = state
        result = (rotate((s[0] + s[3]) & mask, 23) + s[0]) & mask
        t = (s[1] << 17) & mask
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotate(s[3], 45)
        return result

    labels = np.array(sets)
    for i in range(n, 1, -1):
        j = int((bits() >> 11) * 2.0**-53 * i)
        labels[[i - 1, j]] = labels[[j, i - 1]]
    return labels


@pytest.mark.parametrize(
    ("sizes", "d", "depth"), [((9, 5), 1, 5), ((80, 41), 3, 5), ((20, 10, 7), 2, 4), ((1, 1), 2, 0)]
)
def test_permuted_equals_relabelled(sizes, d, depth):
    rng = np.random.default_rng(3)
    cells, ratio = recursion([rng.random((n, d)) ** (1 + s) for s, n in enumerate(sizes)], depth)
    before = ratio.up(1)
    permuted = ratio.permuted(11, 20, 1)
    assert ratio.up(1) == before  # labels stay as they are
    for b, found in enumerate(permuted):
        ratio.relabel(labels_of(cells.n, 11, b, cells.sets), 1)
        assert found == pytest.approx(ratio.up(1), abs=1e-10)


def test_permuted_evidence_of_many_points():
    # Beyond what is tabled, and with regions of more points than double precision likes.
    rng = np.random.default_rng(4)
    cells, ratio = recursion([rng.random((6000, 1)), rng.random((5000, 1)) ** 2], 3)
    assert ratio.up(1) - cells.n * np.log(0.5) > 300
    found = ratio.permuted(1, 2, 1)
    for b in range(2):
        ratio.relabel(labels_of(cells.n, 1, b, cells.sets), 1)
        assert found[b] == pytest.approx(ratio.up(1), abs=1e-8)


def test_permutations_do_not_depend_on_how_many_there_are_or_on_threads():
    rng = np.random.default_rng(5)
    _, ratio = recursion([rng.random((50, 2)), rng.random((40, 2))], 4)
    many = ratio.permuted(2, 100, 1)
    np.testing.assert_array_equal(ratio.permuted(2, 13, 3), many[:13])
    assert len(np.unique(many)) > 50
    assert ratio.permuted(2, 0, 1).shape == (0,)
    assert not np.isin(ratio.permuted(3, 100, 1), many).all()


def test_grown_regions_cannot_be_permuted():
    rng = np.random.default_rng(6)
    _, ratio = recursion([rng.random((50, 2)), rng.random((40, 2))], 1)
    ratio.expand(ratio.frontier(), 1)
    with pytest.raises(RuntimeError, match="grown"):
        ratio.permuted(1, 5, 1)


# The statistic


def test_statistic_and_bayes_factor_are_those_of_the_model():
    x, y = normals(60, 45, 2, 0.8)
    found = cobpm.test(x, y, permutations=9, rng=0)
    post = cobpm.compare(x, y, model="ratio", draws=10, rng=0)
    assert found.log_bayes_factor == pytest.approx(post.log_bayes_factor, abs=1e-9)
    assert found.same_probability(0.3) == pytest.approx(post.same_probability(0.3))
    assert found.frames == BLIND
    each = [
        cobpm.test(x, y, permutations=9, frames=[name], rng=0).statistic for name in found.frames
    ]
    assert found.statistic == pytest.approx(np.mean(each))


def test_statistic_of_permuted_labels_is_that_of_permuted_data():
    x, y = normals(40, 25, 3, 0.5)
    samples = as_samples([x, y], owner="test")
    pooled, labels = pool(samples, np.random.default_rng(0))
    frames = fit_frames(pooled, BLIND, None)
    ratios = log_ratios(pooled, labels, samples.sizes, frames, 12, 99, MAX_REGIONS, None)
    for b in range(12):
        new = labels_of(65, 99, b, labels)
        assert not (new == labels).all()
        (rows,) = pooled.values
        fresh = cobpm.test(rows[new == 0], rows[new == 1], permutations=1)
        assert fresh.statistic == pytest.approx(ratios[:, 1 + b].mean(), abs=1e-9)


@pytest.mark.parametrize("d", [1, 2])
def test_order_does_not_matter(d):
    x, y = normals(30, 50, d, 0.4)
    one = cobpm.test(x, y, permutations=99, rng=3)
    other = cobpm.test(y[::-1], x, permutations=99, rng=3)
    assert other.statistic == pytest.approx(one.statistic, abs=1e-9)
    assert other.pvalue == one.pvalue
    assert one.frames == (BLIND if d > 1 else SHAPES)


def test_pooled_order_does_not_tell_whose_the_points_are():
    # All rows are the same: only their order could.
    samples = Samples(("x", "y"), ("c1",), (np.zeros((5, 1)), np.zeros((5, 1))))
    first = [pool(samples, np.random.default_rng(seed))[1][0] for seed in range(40)]
    assert 5 < sum(first) < 35
    rows = np.random.default_rng(0).normal(size=(10, 2))
    samples = as_samples([rows[:5], rows[5:]], owner="test")
    pooled, labels = pool(samples, np.random.default_rng(0))
    for row, label in zip(pooled.values[0], labels, strict=True):
        assert (samples.values[label] == row).all(axis=1).any()
    again, _ = pool(as_samples([rows[5:], rows[:5]], owner="test"), np.random.default_rng(8))
    np.testing.assert_array_equal(again.values[0], pooled.values[0])


def test_pvalue_counts_the_observed_labels():
    x, y = normals(30, 30, 2, 3.0)
    assert cobpm.test(x, y, permutations=19, rng=0).pvalue == pytest.approx(1 / 20)
    assert cobpm.test(x, x, permutations=19, rng=0).pvalue <= 1
    assert cobpm.test([1.0], [2.0], permutations=19, rng=0).pvalue == 1  # all labellings tie
    constant = cobpm.test(np.ones((5, 2)), np.ones((4, 2)), permutations=19, rng=0)
    assert constant.pvalue == 1
    assert constant.log_bayes_factor == pytest.approx(0.0, abs=1e-9)
    assert any("constant" in notice for notice in constant.notices)


def test_same_seed_same_answer_on_any_number_of_threads(monkeypatch):
    x, y = normals(70, 60, 3, 0.3)
    answers = []
    for threads in ("1", "3"):
        monkeypatch.setenv("COBPM_THREADS", threads)
        answers.append(cobpm.test(x, y, permutations=99, rng=5))
    assert answers[0] == answers[1]
    other = cobpm.test(x, y, permutations=99, rng=6)
    assert other.statistic == answers[0].statistic
    assert other.pvalue != answers[0].pvalue


# The face


def test_result_unpacks_and_speaks():
    x, y = beta_mixtures(200, np.random.default_rng(0))
    found = cobpm.test(x, y, permutations=99, rng=0)
    statistic, pvalue = found
    assert (statistic, pvalue) == (found.statistic, found.pvalue)
    assert "pvalue=0.01" in repr(found)
    assert "99 permutations" in repr(found)
    assert found.permutations == 99
    with pytest.raises(AttributeError):
        found.pvalue = 0.0


def test_progress_is_told():
    told = []
    x, y = normals(400, 400, 3)
    cobpm.test(
        x, y, permutations=2000, frames=2, progress=lambda stage, done: told.append((stage, done))
    )
    assert {stage for stage, _ in told} <= {"frame 1 of 2", "frame 2 of 2"}
    assert told
    assert all(0 <= done <= 1 for _, done in told)


def test_frames_and_bounds():
    x, y = normals(30, 30, 2)
    assert cobpm.test(x, y, permutations=9, bounds="ranks").frames == ("ranks",)
    assert cobpm.test(x, y, permutations=9, frames=3).frames == BLIND[:3]
    assert cobpm.test(x, y, permutations=9, frames=12).frames == BLIND
    close, wide = (
        cobpm.test(x, y, permutations=9, frames=["range"], bounds=bounds, rng=0).statistic
        for bounds in (None, (-50, 50))
    )
    assert close != wide


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"permutations": 0}, "'permutations' parameter of test.. must be a whole number"),
        ({"permutations": 9.5}, "'permutations' parameter of test"),
        ({"frames": ["ranks", "means ranks"]}, "must name frames that do not look at the labels"),
        ({"frames": "means ranks"}, "'frames' parameter of test"),
        ({"frames": 0}, "'frames' parameter of test"),
        ({"frames": ["rank"]}, "Did you mean 'ranks'"),
        ({"bounds": (0, 0.1)}, "'bounds' parameter of test.. must contain every point"),
        ({"rng": "seed"}, "'rng' parameter of test"),
        ({"max_regions": 10}, "'max_regions' parameter of test"),
        ({"y": np.ones((4, 3))}, "'y' parameter of test.. must have as many columns"),
        ({"x": []}, "'x' parameter of test.. must hold at least one point"),
    ],
)
def test_bad_arguments(arguments, message):
    x, y = normals(10, 10, 2)
    with pytest.raises(cobpm.InputError, match=message):
        cobpm.test(**({"x": x, "y": y} | arguments))


def test_prior_is_checked():
    found = cobpm.test(*normals(10, 10, 2), permutations=9)
    with pytest.raises(cobpm.InputError, match="'prior' parameter of same_probability"):
        found.same_probability(1.0)
