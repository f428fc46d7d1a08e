"""What must hold for every data set: order, inverse, range, dyadic atoms, even spread."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from cobpm.arrays import FloatArray
from cobpm.domain import BITS, Domain
from cobpm.samples import as_samples

TOP = 2**BITS
fixed = settings(derandomize=True, deadline=None, database=None)  # the same cases every time

KINDS = st.sampled_from([None, "ranks", "wide"])

moderate = st.floats(-1e6, 1e6, width=32)
few_values = st.integers(-5, 5).map(float)
anything = st.floats(allow_nan=False, allow_infinity=False)
columns = st.one_of(
    st.lists(moderate, min_size=2, max_size=60),
    st.lists(few_values, min_size=2, max_size=200),
    st.lists(st.one_of(few_values, moderate), min_size=2, max_size=200),
    st.lists(anything, min_size=2, max_size=30),
)


def fit(column: FloatArray, kind: str | None, sets: int = 1) -> tuple[Domain, Any]:
    parts = [part for part in np.array_split(column, sets) if len(part)]
    samples = as_samples(parts, owner="fit")
    bounds: Any = kind
    if kind == "wide":
        low, high, largest = float(column.min()), float(column.max()), sys.float_info.max
        room = 1.0 + (high / 2 - low / 2) / 4
        bounds = np.array([[max(low - room, -largest), min(high + room, largest)]])
    return Domain.fit(samples, bounds), samples


@fixed
@given(columns, KINDS, st.integers(1, 3))
def test_codes_keep_the_order_and_stay_in_range(values: Any, kind: Any, sets: int) -> None:
    column = np.array(values)
    assume(column.min() < column.max())
    domain, samples = fit(column, kind, sets)
    codes = domain.encode(samples).codes[0]
    assert (codes < TOP).all()
    order = np.lexsort((codes, column))
    assert (np.diff(codes[order].astype(np.int64)) >= 0).all()


@fixed
@given(columns, KINDS, st.lists(moderate, max_size=20))
def test_unit_is_monotone_and_below_one(values: Any, kind: Any, queries: Any) -> None:
    column = np.array(values)
    assume(column.min() < column.max())
    domain, _ = fit(column, kind)
    points = np.sort(np.concatenate([column, queries]))[:, np.newaxis]
    u = domain.unit(points)[:, 0]
    assert (np.diff(u) >= 0).all()
    assert ((u >= 0) & (u < 1)).all()


@fixed
@given(columns, KINDS)
def test_mapping_back_undoes_mapping(values: Any, kind: Any) -> None:
    column = np.array(values)
    assume(column.min() < column.max())
    domain, _ = fit(column, kind)
    points = column[:, np.newaxis]
    assert domain.inside(points).all()
    u = domain.unit(points)[:, 0]
    low, high = domain.interval(0, u, u)
    whole_low, whole_high = domain.interval(0, 0.0, 1.0)
    close = 1e-14 * max(abs(whole_low), abs(whole_high)) + 1e-323
    assert (np.abs(low - column) <= close).all()
    assert (np.abs(high - column) <= close).all()


@fixed
@given(columns, KINDS)
def test_factor_is_the_slope(values: Any, kind: Any) -> None:
    """The density factor times the length of a piece is the piece's room in the unit interval."""
    column = np.array(values)
    assume(column.min() < column.max())
    assume(np.abs(column).max() < 1e100)
    domain, _ = fit(column, kind)
    one = domain.maps[0]
    length = np.where(one.low == one.high, 1.0, one.high - one.low)
    middle = one.low / 2 + one.high / 2
    usable = (one.low == one.high) | ((one.low < middle) & (middle < one.high))
    usable &= length > 1e-300
    factor = domain.log_density_factor(middle[:, np.newaxis])
    room = np.log(np.diff(one.edges))
    np.testing.assert_allclose((factor + np.log(length))[usable], room[usable], atol=1e-9)


@fixed
@given(columns, KINDS)
def test_atoms_own_dyadic_intervals(values: Any, kind: Any) -> None:
    column = np.array(values)
    assume(column.min() < column.max())
    domain, samples = fit(column, kind)
    one, codes = domain.maps[0], domain.encode(samples).codes[0]
    distinct, counts = np.unique(column, return_counts=True)
    atoms = np.flatnonzero(one.low == one.high)
    assert set(distinct[counts > np.sqrt(len(column))]) <= set(one.low[atoms])
    for i in atoms:
        start, width = one.edges[i], one.edges[i + 1] - one.edges[i]
        assert np.frexp(width)[0] == 0.5
        assert np.mod(start, width) == 0
        inside = (codes >= start * TOP) & (codes < (start + width) * TOP)
        np.testing.assert_array_equal(inside, column == one.low[i])
        assert domain.interval(0, start, start + width) == (one.low[i], one.low[i])


@fixed
@given(st.lists(st.integers(-50, 50), min_size=2, max_size=99), st.integers(-9, 9), st.booleans())
def test_units_of_measurement_do_not_matter(values: Any, power: int, shift: bool) -> None:
    column = np.array(values, dtype=float)
    assume(np.ptp(column) > 0)
    moved = column * 2.0**power + 64.0 * shift
    for kind in (None, "ranks"):
        (one, samples), (two, others) = fit(column, kind, 2), fit(moved, kind, 2)
        np.testing.assert_array_equal(one.encode(samples).codes, two.encode(others).codes)


@fixed
@given(st.lists(moderate, min_size=2, max_size=60), st.floats(0.1, 10), moderate)
def test_affine_maps_change_codes_by_rounding_only(values: Any, factor: float, by: float) -> None:
    column = np.array(values)
    moved = column * factor + by
    assume(np.ptp(column) > 1)
    assume(len(np.unique(moved)) == len(np.unique(column)))
    (one, samples), (two, others) = fit(column, None), fit(moved, None)
    before = one.encode(samples).codes[0] / float(TOP)
    after = two.encode(others).codes[0] / float(TOP)
    np.testing.assert_allclose(after, before, atol=1e-7)


@fixed
@given(columns, KINDS)
def test_save_and_load(values: Any, kind: Any) -> None:
    column = np.array(values)
    assume(column.min() < column.max())
    domain, _ = fit(column, kind)
    assert Domain.from_arrays(domain.to_arrays()) == domain


@fixed
@given(st.integers(1, 4), st.integers(1, 5), st.sampled_from([2, 3, 10, 1000]))
def test_spread_stays_distinct(sets: int, d: int, size: int) -> None:
    values = np.tile(np.repeat([[0.0], [1.0]], size, axis=0), (1, d))
    samples = as_samples([values] * sets, owner="fit")
    codes = Domain.fit(samples).encode(samples).codes
    assert len(np.unique(codes)) == codes.size


# The spread is a fixed function, so these are fixed numbers; the thresholds are those at which a
# truly random spread would fail once in 10,000 times.
LEVEL = 1e-4


def spread_of(values: FloatArray, sets: int) -> list[FloatArray]:
    """Place of each point in the interval of its atom, as a number in [0, 1), set by set."""
    samples = as_samples([values] * sets, owner="fit")
    domain = Domain.fit(samples)
    u = domain.encode(samples).codes / float(TOP)
    return np.split(np.mod(u * 2, 1), sets, axis=1)


@pytest.fixture(scope="module")
def spread() -> list[FloatArray]:
    rng = np.random.default_rng(20)
    return spread_of(rng.integers(0, 2, (20_000, 3)).astype(float), 3)


def test_spread_is_uniform(spread: list[FloatArray]) -> None:
    for row in np.concatenate(spread):
        assert stats.kstest(row, "uniform").pvalue > LEVEL / 9
        counts, _ = np.histogram(row, bins=256, range=(0, 1))
        assert stats.chisquare(counts).pvalue > LEVEL / 9


def test_spread_is_the_same_for_all_sets(spread: list[FloatArray]) -> None:
    for a, b in ((0, 1), (0, 2), (1, 2)):
        for j in range(3):
            assert stats.ks_2samp(spread[a][j], spread[b][j]).pvalue > LEVEL / 9


def test_spread_is_independent_between_columns_sets_and_rows(spread: list[FloatArray]) -> None:
    rows = np.concatenate(spread)
    pairs = [(rows[i], rows[j]) for i in range(9) for j in range(i)]
    pairs += [(row[1:], row[:-1]) for row in rows]
    for one, two in pairs:
        table, _, _ = np.histogram2d(one, two, bins=8, range=((0, 1), (0, 1)))
        assert stats.chisquare(table.ravel()).pvalue > LEVEL / len(pairs)


def test_light_ties_are_spread_uniformly() -> None:
    values = np.repeat(np.arange(1001.0), 200)
    samples = as_samples([values], owner="fit")
    codes = Domain.fit(samples).encode(samples).codes[0]
    place = codes[200:-200] / float(TOP) * 1000 - values[200:-200] + 0.5
    assert stats.kstest(place, "uniform").pvalue > LEVEL
