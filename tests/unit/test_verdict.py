"""The answer in words."""

import numpy as np
import pytest

import cobpm
from cobpm.verdict import NEGLIGIBLE, percent, verdict

RNG = np.random.default_rng(11)
ONE, SAME = RNG.normal(size=(1500, 2)), RNG.normal(size=(1500, 2))
OTHER = RNG.normal([0.0, 0.7], 1.0, size=(1500, 2))


@pytest.mark.parametrize("model", ["ratio", "paper"])
def test_two_sets(model):
    told = verdict(cobpm.compare(ONE, OTHER, rng=1, model=model))
    assert (told.kind, told.headline) == ("different", "x and y differ")
    assert "Given one row, you could tell whether it is from x or y 6" in told.sentence
    assert ("overestimates" in told.sentence) == (model == "paper")

    told = verdict(cobpm.compare(ONE, SAME, rng=1, model=model))
    assert (told.kind, told.headline) == ("same", "No difference found between x and y")
    assert "no proof" in told.sentence
    assert (told.same_probability is None) == (model == "paper")
    assert (told.chance is None) == (model == "ratio")


def test_the_share_of_right_guesses_is_that_of_total_variation():
    post = cobpm.compare([0.0] * 400 + [1.0] * 600, [0.0] * 800 + [1.0] * 200, rng=1)
    told = verdict(post, level=0.8)
    assert told.total_variation == post.estimate("tv")
    assert told.interval == post.interval("tv", 0.8)
    guess = 100 * (0.5 + told.total_variation / 2)
    assert guess == pytest.approx(70, abs=2)
    said = f"Given one value, you could tell whether it is from x or y {guess:.0f}% of the time"
    assert told.sentence.startswith(f"{said} (80% interval")


@pytest.mark.parametrize("model", ["ratio", "paper"])
def test_pairs_of_three_sets(model):
    post = cobpm.fit({"a": ONE, "b": SAME, "c": OTHER}, rng=1, model=model)
    assert verdict(post, "a", "b").kind == "same"
    assert verdict(post, "c", "b").kind == "different"
    assert verdict(post, "c", "b").headline == "c and b differ"
    assert verdict(post, "c", "b") == verdict(post, "c", "b")
    with pytest.raises(cobpm.InputError, match="'first' parameter of verdict"):
        verdict(post)


def test_little_data_settles_nothing():
    told = verdict(cobpm.compare([1.0, 2.0, 4.0], [1.5, 2.5, 3.0], rng=1))
    assert told.kind == "unclear"
    assert told.headline == "No clear difference between x and y"
    assert "does not settle it" in told.sentence
    assert verdict(cobpm.compare([1.0], [2.0], rng=1, model="paper")).kind in ("same", "unclear")


def test_nothing_found():
    many = verdict(cobpm.compare(np.arange(5000.0), np.arange(5000.0), rng=1))
    assert (many.kind, many.total_variation) == ("same", 0.0)
    assert 0.0 < many.interval.high < NEGLIGIBLE
    assert "it may be possible to tell which it is from up to 51% of the time" in many.sentence
    told = verdict(cobpm.compare(np.arange(200.0), np.arange(200.0), rng=1))
    assert (told.kind, told.interval.high) == ("same", 0.0)
    assert "no proof that they are the same, but nothing was found" in told.sentence
    assert "a value is from" in told.sentence


def test_size_in_words():
    far = verdict(cobpm.compare(ONE, ONE + 8.0, rng=1))
    assert far.headline == "x and y differ strongly"
    rare = ONE.copy()
    rare[:40, 0] = 9.0
    near = verdict(cobpm.compare(SAME, rare, rng=1))
    assert near.headline == "x and y differ slightly"


def test_seldom_wrong_without_a_difference():
    """Of 40 pairs of one law, at the 90% level, hardly any are called different."""
    rng = np.random.default_rng(5)
    kinds = {"ratio": [], "paper": []}
    for _ in range(40):
        x, y = rng.gamma(2.0, size=(120, 2)), rng.gamma(2.0, size=(150, 2))
        for model, found in kinds.items():
            found.append(verdict(cobpm.compare(x, y, rng=1, model=model, draws=400)).kind)
    for found in kinds.values():
        assert found.count("different") <= 3
        assert found.count("same") + found.count("unclear") >= 37


def test_without_a_frame_that_is_blind_to_the_sets():
    post = cobpm.compare(ONE, OTHER, rng=1, frames=["means ranks"])
    assert post.log_bayes_factor is None
    assert verdict(post).kind == "different"
    assert verdict(post).chance is not None


def test_percent():
    shares = [0.0, 0.0004, 0.004, 0.0996, 0.5, 0.634, 0.93, 0.9996, 1.0]
    assert [percent(share) for share in shares] == [
        *("less than 0.1%", "less than 0.1%", "0.4%", "10%", "50%", "63%", "93.0%"),
        *("more than 99.9%", "100%"),
    ]


def test_a_difference_over_partitions_that_follow_a_third_set():
    """A large set with fine structure leaves few points of the others in a leaf."""
    rng = np.random.default_rng(5)
    third = np.concatenate([rng.normal(size=(20_000, 2)), rng.normal(1, 0.1, size=(10_000, 2))])
    shift = [0.585, 0.0]  # total variation distance 0.23
    kinds = []
    for _ in range(6):
        sets = {"a": rng.normal(size=(200, 2)), "b": third, "c": rng.normal(shift, size=(200, 2))}
        sets["d"] = rng.normal(size=(200, 2))
        post = cobpm.fit(sets, rng=1, model="paper", draws=300)
        kinds.append((verdict(post, "a", "c").kind, verdict(post, "a", "d").kind))
    found, null = zip(*kinds, strict=True)
    assert found.count("different") >= 4
    assert null.count("different") <= 1
