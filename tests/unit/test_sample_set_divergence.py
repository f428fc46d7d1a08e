"""Divergences of sample sets as scikit-learn's transformers have it."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_checks

import cobpm
from cobpm import SampleSetDivergence

RNG = np.random.default_rng(21)
SETS = [RNG.normal([k % 3, 0], 1, (60 + 10 * k, 2)) for k in range(12)]
NEW = [RNG.normal([k % 3, 0], 1, (150, 2)) for k in range(4)]


def fitted(**settings):
    return SampleSetDivergence(**{"random_state": 1, "draws": 200, **settings}).fit(SETS)


@pytest.fixture(scope="module")
def joint():
    return fitted()


@pytest.mark.parametrize("partition", ["joint", "pair"])
@pytest.mark.parametrize("divergence", ["renyi:0.5", "kl", "tv"])
def test_square_matrix(partition, divergence):
    settings = {"divergence": divergence, "partition": partition, "draws": 50}
    matrix = SampleSetDivergence(**settings, random_state=1).fit_transform(SETS)
    assert matrix.shape == (12, 12)
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_array_equal(np.diag(matrix), 0)
    assert (matrix >= 0).all()
    assert (matrix[0::3, 2::3] > 0).all()  # sets two apart
    model = fitted(**settings)
    np.testing.assert_array_equal(model.transform(SETS), matrix)
    assert model.transform(NEW[:1]).shape == (1, 12)
    assert (model.transform(NEW[:1]) >= 0).all()


def test_square_matrix_is_that_of_the_library(joint):
    seed = int(np.random.default_rng(1).integers(0, 2**63))
    found = cobpm.pairwise(SETS, symmetric=True, draws=200, rng=seed)
    np.testing.assert_array_equal(joint.divergences_, found.matrix)
    assert joint.posterior_.names == found.names


def test_new_sets_lie_near_their_own_kind(joint):
    rows = joint.transform(NEW)
    for k, row in enumerate(rows):
        kinds = [row[kind::3].mean() for kind in range(3)]
        assert np.argmin(kinds) == k % 3
    # A set that is new but for one point is about as far from the others as the set itself.
    almost = np.vstack([SETS[0], SETS[0][:1]])
    others = np.arange(1, 12)
    row = joint.transform([almost])[0, others]
    np.testing.assert_allclose(row, joint.divergences_[0, others], rtol=0.3, atol=0.05)


def test_rows_do_not_depend_on_each_other(joint):
    rows = joint.transform(NEW)
    np.testing.assert_array_equal(joint.transform(NEW[::-1]), rows[::-1])
    np.testing.assert_array_equal(joint.transform(NEW[2:3]), rows[2:3])


def test_direction():
    # In the first set a tail is missing that the second one has.
    wide, narrow = RNG.uniform(0, 1, 400), RNG.uniform(0, 0.5, 400)
    model = SampleSetDivergence("kl", symmetric=False, bounds=(0, 1), random_state=0)
    matrix = model.fit_transform([wide, narrow])
    assert matrix[0, 1] > 2 * matrix[1, 0]  # KL(wide ‖ narrow)
    rows = model.transform([RNG.uniform(0, 1, 400), RNG.uniform(0, 0.5, 400)])
    assert rows[0, 1] > 2 * rows[1, 0]


@pytest.mark.parametrize("affinity", ["median", "local", 0.3])
@pytest.mark.parametrize("divergence", ["renyi:0.5", "hellinger"])
def test_affinity(affinity, divergence):
    settings = {"divergence": divergence, "draws": 50, "random_state": 1}
    model = SampleSetDivergence(affinity=affinity, **settings)
    matrix = model.fit_transform(SETS)
    seed = int(np.random.default_rng(1).integers(0, 2**63))
    pairs = cobpm.pairwise(SETS, divergence, symmetric=True, draws=50, rng=seed)
    np.testing.assert_array_equal(matrix, pairs.affinity(affinity))
    np.testing.assert_array_equal(model.transform(SETS), matrix)
    rows, plain = model.transform(NEW), SampleSetDivergence(**settings).fit(SETS).transform(NEW)
    assert ((rows > 0) & (rows < 1)).all()
    squared = plain**2 if divergence == "hellinger" else plain
    if affinity == 0.3:
        np.testing.assert_allclose(rows, np.exp(-squared / 0.3))
    if affinity == "median":
        np.testing.assert_allclose(np.log(rows) / squared, np.log(rows[0, 0]) / squared[0, 0])
    # A set that is almost the first one has almost its affinities.
    almost = np.vstack([SETS[0], SETS[0][:1]])
    np.testing.assert_allclose(model.transform([almost])[0, 1:], matrix[0, 1:], atol=0.1)


def test_copies(joint):
    again = pickle.loads(pickle.dumps(joint))
    np.testing.assert_array_equal(again.transform(NEW), joint.transform(NEW))
    fresh = clone(joint)
    assert fresh.get_params() == joint.get_params()
    with pytest.raises(NotFittedError):
        fresh.transform(NEW)
    np.testing.assert_array_equal(fresh.fit(SETS).transform(NEW), joint.transform(NEW))
    each = pickle.loads(pickle.dumps(fitted(partition="pair", draws=100)))
    assert each.transform(NEW[:1]).shape == (1, 12)


def test_random_state(joint):
    other = fitted(random_state=2)
    assert (other.divergences_ != joint.divergences_).any()
    assert (other.transform(NEW) != joint.transform(NEW)).any()


def test_data_frames(joint):
    frames = [pd.DataFrame(values, columns=["height", "weight"]) for values in SETS]
    model = SampleSetDivergence(random_state=1, draws=200).fit(frames)
    assert model.columns_ == ("height", "weight")
    np.testing.assert_array_equal(model.divergences_, joint.divergences_)
    swapped = [
        pd.DataFrame(values, columns=["height", "weight"])[["weight", "height"]] for values in NEW
    ]
    np.testing.assert_array_equal(model.transform(swapped), joint.transform(NEW))
    table = model.set_output(transform="pandas").transform(NEW)
    assert table.shape == (4, 12)
    assert table.columns[0] == "samplesetdivergence0"


def test_lists_of_many_kinds():
    equal = RNG.random((5, 40, 2))
    settings = {"random_state": 0, "draws": 50}
    matrix = SampleSetDivergence(**settings).fit_transform(equal)
    for sets in (list(equal), tuple(equal), equal.tolist()):
        found = SampleSetDivergence(**settings).fit_transform(sets)
        np.testing.assert_array_equal(found, matrix)
    ragged = np.empty(3, dtype=object)
    ragged[:] = [RNG.random(20), RNG.random(30), RNG.random(40)]
    assert SampleSetDivergence(**settings).fit_transform(ragged).shape == (3, 3)


@pytest.mark.parametrize(
    "wrong", [np.ones((20, 2)), pd.DataFrame({"a": [1.0, 2.0]}), [1.0, 2.0], [], "sets", 3]
)
def test_tables_are_no_lists_of_sets(wrong, joint):
    for call in (SampleSetDivergence().fit, joint.transform):
        with pytest.raises(cobpm.InputError, match=r"'X' parameter .* be a list of sample sets"):
            call(wrong)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"divergence": "kll"}, "divergence"),
        ({"partition": "none"}, "partition"),
        ({"affinity": "far"}, "affinity"),
        ({"affinity": -1.0}, "affinity"),
        ({"read_out": "mode"}, "read_out"),
        ({"divergence": "chi2", "read_out": "mean"}, "does not exist"),
        ({"draws": 0}, "draws"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_settings_are_checked_when_fitting(settings, message):
    model = SampleSetDivergence(**settings)
    with pytest.raises(cobpm.InputError, match=message):
        model.fit(SETS)


def test_what_it_refuses(joint):
    with pytest.raises(cobpm.InputError, match="at least two sets"):
        SampleSetDivergence().fit(SETS[:1])
    with pytest.raises(cobpm.InputError, match=r"'X\[1\]' parameter .* as many columns"):
        joint.transform([NEW[0], NEW[1][:, :1]])
    with pytest.raises(cobpm.InputError, match="missing"):
        joint.transform([np.full((3, 2), np.nan)])


@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_parameters_default_constructible,
        estimator_checks.check_get_params_invariance,
        estimator_checks.check_set_params,
        estimator_checks.check_estimator_cloneable,
        estimator_checks.check_estimator_repr,
        estimator_checks.check_estimator_tags_renamed,
        estimator_checks.check_valid_tag_types,
        estimator_checks.check_mixin_order,
    ],
)
def test_scikit_learn(check):
    """Its checks that need no data; the others pass tables of numbers."""
    check("SampleSetDivergence", SampleSetDivergence())
