"""Frames chosen by a part of the rows."""

import numpy as np
import pytest

import cobpm
from cobpm.engines import Plan, screening
from cobpm.frames import BLIND, NAMES, SHAPES
from cobpm.samples import as_samples

PLAN = Plan(100, 0, 1, None, "cherry", 1, 1, 2_000_000)
RNG = np.random.default_rng(3)
N = 12_000
ONE, SAME = RNG.normal(size=(N, 2)), RNG.normal(size=(N, 2))
OTHER = RNG.normal([0.8, 0.8], [1.0, 1.3], size=(N, 2))


@pytest.fixture
def few(monkeypatch):
    """Far fewer rows choose."""
    monkeypatch.setattr(screening, "ROWS", 4000)


def chosen(*sets, names=NAMES):
    return screening.chosen(as_samples(list(sets), owner="fit"), names, None, PLAN)


@pytest.mark.parametrize(
    ("sizes", "quotas"),
    [
        ((10**6, 10**6), (25_000, 25_000)),
        ((50, 10**6), (50, 49_950)),
        ((10**6, 50, 30_000), (24_975, 50, 24_975)),
        ((10, 10), (10, 10)),
        ((5000,) * 200, (1000,) * 200),  # beyond fifty sets each gets enough
        ((5000,) * 199 + (3,), (1000,) * 199 + (3,)),
    ],
)
def test_quotas(sizes, quotas):
    found = screening.quotas_of(sizes)
    assert all(k <= n for k, n in zip(found, sizes, strict=True))
    assert all(a <= b <= a + 10 for a, b in zip(quotas, found, strict=True))
    assert sum(found) <= max(screening.ROWS, screening.FEWEST * len(sizes))


def test_a_sample_does_not_depend_on_the_order_of_rows():
    rows = np.concatenate([ONE, np.round(ONE), np.zeros((N, 2)), -np.zeros((N, 2))])
    found = [
        screening.sample(as_samples([some, OTHER], owner="fit"), [700, 50])
        for some in (rows, rows[::-1], RNG.permutation(rows))
    ]
    for one in found:
        np.testing.assert_array_equal(one.values[0], found[0].values[0])
        assert one.sizes == (700, 50)
        # Repeated rows come as often as is due to them: here all zeros, which are half of the rows.
        zeros = (one.values[0] == 0).all(axis=1).mean()
        assert zeros == pytest.approx((rows == 0).all(axis=1).mean(), abs=0.002)
    # It is like the rest.
    plain = screening.sample(as_samples([ONE, OTHER], owner="fit"), [3000, N])
    assert np.abs(plain.values[0].mean(axis=0) - ONE.mean(axis=0)).max() < 4 / np.sqrt(3000)
    np.testing.assert_array_equal(plain.values[1], OTHER)
    other = screening.sample(as_samples([OTHER, OTHER], owner="fit"), [3000, 3000])
    assert not np.array_equal(other.values[0], other.values[1])  # no two sets in step


def test_what_is_chosen(few):
    assert chosen(ONE, SAME) == NAMES  # alike: none falls behind
    found = chosen(ONE, OTHER)
    assert 0 < len(found) < len(NAMES)
    assert [name for name in NAMES if name in found] == list(found)
    assert set(found) & set(BLIND)
    assert set(found) & set(SHAPES)
    assert chosen(ONE[::-1], OTHER) == found
    assert chosen(ONE[:1500], OTHER[:1500]) == NAMES  # too few rows for a choice
    assert chosen(ONE, OTHER, names=("ranks",)) == ("ranks",)


@pytest.mark.parametrize("pair", [(ONE, OTHER), (ONE, SAME), (ONE[:600], OTHER)])
def test_answers_are_those_of_all_frames(pair, few, monkeypatch):
    settings = {"rng": 1, "draws": 1000, "max_regions": 2_000_000}
    post = cobpm.compare(*pair, **settings)
    monkeypatch.setattr(screening, "ROWS", 10**9)
    full = cobpm.compare(*pair, **settings)
    assert len(full.frames) == len(NAMES)
    assert post.log_bayes_factor == pytest.approx(full.log_bayes_factor, abs=0.01)
    for divergence in ("kl", "tv", "hellinger", "renyi:2"):
        low, high = full.interval(divergence, 0.9)
        spread = max(high - low, 1e-12)
        assert abs(post.estimate(divergence) - full.estimate(divergence)) < 0.2 * spread
    kept = [frame.name for frame in post.frames]
    weights = dict(zip(full.report.frames, full.report.frame_weights, strict=True))
    assert sum(weights[name] for name in kept) > 1 - 1e-3
    if len(kept) < len(NAMES):
        assert f"in {len(kept)} of {len(NAMES)} frames" in post.report.reason
    assert len(post.regions()) > 0


def test_threads_do_not_matter(few, monkeypatch):
    posts = []
    for threads in ("1", "2"):
        monkeypatch.setenv("COBPM_THREADS", threads)
        posts.append(cobpm.compare(ONE, OTHER, rng=1, draws=200, max_regions=2_000_000))
    assert len(posts[0].frames) < len(NAMES)
    np.testing.assert_array_equal(posts[0].draws("kl"), posts[1].draws("kl"))
    assert posts[0].report == posts[1].report
