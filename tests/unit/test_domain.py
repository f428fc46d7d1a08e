"""Maps onto the unit cube: layout of atoms, spread of ties, extreme numbers, saving."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cobpm import _core
from cobpm.arrays import FloatArray
from cobpm.cells import Cells
from cobpm.column_map import dyadic_edges
from cobpm.domain import BITS, ColumnMap, Domain
from cobpm.samples import Samples, as_samples, check_bounds

TOP = 2**BITS


def fitted(*sets: Any, bounds: Any = None) -> tuple[Domain, Samples, Cells]:
    samples = as_samples(list(sets), owner="fit")
    domain = Domain.fit(samples, check_bounds(bounds, samples, owner="fit"))
    return domain, samples, domain.encode(samples)


def pieces(column: ColumnMap) -> list[tuple[float, float, float, float]]:
    rows = zip(column.low, column.high, column.edges[:-1], column.edges[1:], strict=True)
    return [(float(a), float(b), float(c), float(d)) for a, b, c, d in rows]


def units(cells: Cells) -> FloatArray:
    return cells.codes / float(TOP)


# Range


def test_pooled_range_is_the_default() -> None:
    domain, _, cells = fitted([[0.0, 1.0], [1.0, 5.0]], [[4.0, 3.0]])
    assert domain.active == (0, 1)
    assert domain.d == cells.d == 2
    assert cells.n == 3
    assert cells.codes.dtype == np.uint64
    assert cells.codes.flags.c_contiguous
    assert cells.codes.tolist() == [[0, TOP // 4, TOP - 1], [0, TOP - 1, TOP // 2]]
    assert cells.sets.dtype == np.uint16
    assert cells.sets.tolist() == [0, 0, 1]
    assert cells.sizes.dtype == np.int64
    assert cells.sizes.tolist() == [2, 1]
    assert domain.notices == ()


def test_given_bounds() -> None:
    domain, _, cells = fitted([1.0, 2.0], [3.0], bounds=(0, 4))
    assert units(cells).tolist() == [[0.25, 0.5, 0.75]]
    assert domain.interval(0, 0.25, 0.75) == (1.0, 3.0)
    points = np.array([[-0.1], [0.0], [4.0], [4.1], [np.nan], [np.inf]])
    assert domain.inside(points).tolist() == [False, True, True, False, False, False]
    assert domain.unit(points[:4])[:, 0].tolist() == [0, 0, 1 - 2.0**-53, 1 - 2.0**-53]
    expected = [-math.inf, -math.log(4), -math.log(4), -math.inf, -math.inf, -math.inf]
    assert domain.log_density_factor(points).tolist() == expected


def test_bounds_for_some_columns() -> None:
    domain, _, _ = fitted([[0.0, 0.0], [1.0, 1.0]], bounds={"c2": (-1, 3)})
    assert [pieces(m) for m in domain.maps] == [[(0, 1, 0, 1)], [(-1, 3, 0, 1)]]


def test_ranks_ignore_the_scale() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.lognormal(size=(500, 2)), rng.lognormal(1, 2, size=(300, 2)).round(1) + 0.05
    domain, _, cells = fitted(x, y, bounds="ranks")
    _, _, logged = fitted(np.log(x), np.log(y), bounds="ranks")
    np.testing.assert_array_equal(cells.codes, logged.codes)
    counts, _ = np.histogram(units(cells)[0], bins=16, range=(0, 1))
    assert np.ptp(counts[8:]) <= 4  # no atoms up there, so nearly as many points in every bin
    assert domain.notices == ()


def test_ranks_of_distinct_values() -> None:
    domain, _, cells = fitted([1.0, 10.0], [100.0, 1e9], bounds="ranks")
    assert units(cells)[0].tolist() == [0, 0.375, 0.625, 1 - 2.0**-52]
    assert domain.interval(0, 0.0, 0.625) == (1.0, 100.0)


def test_ranks_keep_few_knots() -> None:
    values = np.random.default_rng(2).normal(size=50_000)
    domain, _, cells = fitted(values, bounds="ranks")
    assert len(domain.maps[0].low) < 2**16
    order = np.argsort(values)
    assert (np.diff(cells.codes[0][order].astype(np.int64)) > 0).all()
    ranks = np.empty(len(values))
    ranks[order] = (np.arange(len(values)) + 0.5) / len(values)
    assert np.abs(units(cells)[0] - ranks).max() < 2.0**-15


# Repeated values


def test_binary_column_becomes_two_halves() -> None:
    domain, _, cells = fitted([0, 1] * 50, [True] * 10)
    assert pieces(domain.maps[0]) == [(0, 0, 0, 0.5), (1, 1, 0.5, 1)]
    halves = cells.codes[0] >> np.uint64(BITS - 1)
    assert halves.tolist() == [0, 1] * 50 + [1] * 10
    assert len(np.unique(cells.codes[0])) == 110
    assert domain.interval(0, 0.0, 0.5) == (0.0, 0.0)
    assert domain.interval(0, 0.5, 1.0) == (1.0, 1.0)
    assert domain.interval(0, 0.625, 0.75) == (1.0, 1.0)
    assert domain.interval(0, 0.0, 1.0) == (0.0, 1.0)
    points = np.array([[0.0], [0.5], [1.0], [2.0]])
    assert domain.unit(points)[[0, 2], 0].tolist() == [0.25, 0.75]
    assert domain.inside(points).tolist() == [True, False, True, False]
    assert domain.log_density_factor(points).tolist() == [
        math.log(0.5), -math.inf, math.log(0.5), -math.inf,
    ]  # fmt: skip


def test_small_integers_get_one_cell_each() -> None:
    values = np.repeat([2, 3, 5, 7], [40, 10, 30, 20])
    domain, _, _ = fitted(values, values)
    assert pieces(domain.maps[0]) == [
        (2, 2, 0, 0.25), (3, 3, 0.25, 0.5), (5, 5, 0.5, 0.75), (7, 7, 0.75, 1),
    ]  # fmt: skip
    assert not domain.maps[0].ties


def test_lone_value_among_atoms_is_an_atom() -> None:
    domain, _, cells = fitted([0] * 50 + [1] * 50 + [7, 7])
    assert pieces(domain.maps[0]) == [(0, 0, 0, 0.5), (1, 1, 0.5, 0.75), (7, 7, 0.75, 1)]
    assert (units(cells)[0, -2:] >= 0.75).all()


def test_zero_inflated_column() -> None:
    rng = np.random.default_rng(3)
    positive = rng.gamma(2, size=60)
    domain, samples, cells = fitted(np.concatenate([np.zeros(40), positive]))
    assert pieces(domain.maps[0]) == [(0, 0, 0, 0.5), (0, positive.max(), 0.5, 1)]
    u = units(cells)[0]
    assert (u[:40] < 0.5).all()
    np.testing.assert_allclose(u[40:], 0.5 + positive / positive.max() / 2, rtol=1e-15)
    assert domain.interval(0, 0.5, 0.75) == (0.0, positive.max() / 2)
    tiny = np.array([[1e-3]])  # closer to zero than any point, but it has its place
    assert domain.inside(tiny).all()
    np.testing.assert_allclose(
        domain.log_density_factor(tiny), math.log(0.5 / positive.max()), rtol=1e-15
    )
    assert samples.values[0][0, 0] == 0


def test_atom_in_the_middle() -> None:
    rng = np.random.default_rng(4)
    values = np.concatenate([rng.uniform(-1, 0, 30), np.zeros(40), rng.uniform(0, 1, 30)])
    for bounds in (None, "ranks"):
        domain, _, cells = fitted(values, bounds=bounds)
        u, at_zero = units(cells)[0], domain.unit(np.zeros((1, 1)))[0, 0]
        assert u[:30].max() <= u[30:70].min()
        assert u[30:70].max() < u[70:].min()
        assert u[30:70].min() < at_zero < u[30:70].max()


def test_empty_stretches_within_given_bounds() -> None:
    domain, _, _ = fitted([0, 1] * 50, bounds=(-1, 3))
    assert pieces(domain.maps[0]) == [
        (-1, 0, 0, 0.25), (0, 0, 0.25, 0.5), (1, 1, 0.5, 0.75), (1, 3, 0.75, 1),
    ]  # fmt: skip
    points = np.array([[-0.5], [0.5], [2.0]])
    assert domain.inside(points).tolist() == [True, False, True]
    assert domain.unit(points)[[0, 2], 0].tolist() == [0.125, 0.875]


def test_few_points_with_a_pair() -> None:
    domain, _, cells = fitted([1.0, 1.0], [2.0, 3.0])  # two of four are not more than sqrt(4)
    assert pieces(domain.maps[0]) == [(1, 3, 0, 1)]
    assert domain.maps[0].ties
    u = units(cells)[0]
    assert (u[:2] < 0.25).all()  # half-way from 1 to 2
    assert u[0] != u[1]
    assert u[2:].tolist() == [0.5, 1 - 2.0**-52]


def test_light_ties_fill_their_gaps() -> None:
    values = np.repeat(np.arange(50.0), 20)  # 20 copies each, less than sqrt(1000)
    domain, _, cells = fitted(values, bounds=(-10, 59))
    assert pieces(domain.maps[0]) == [(-10, 59, 0, 1)]
    spread = -10 + units(cells)[0] * 69
    assert (np.abs(spread - values) <= 0.5).all()
    assert np.abs(spread - values).max() > 0.45
    assert len(np.unique(cells.codes)) == len(values)


def test_light_ties_next_to_an_atom_reach_up_to_it() -> None:
    values = np.concatenate([np.zeros(900), np.repeat([10.0, 11.0, 12.0], 25)])
    domain, _, cells = fitted(values)
    assert pieces(domain.maps[0]) == [(0, 0, 0, 0.5), (0, 12, 0.5, 1)]
    u = (units(cells)[0, 900:].reshape(3, 25) - 0.5) * 2 * 12
    assert u[0].min() < 2
    assert u[0].max() < 10.5 < u[1].min()
    assert u[1].max() < 11.5 < u[2].min()


def test_neighbouring_floats_can_be_spread() -> None:
    step = np.spacing(1e12)
    values = 1e12 + step * np.repeat([0, 1, 2, 3], 3)
    _, _, cells = fitted(values, values + 4 * step)
    assert len(np.unique(cells.codes)) == cells.n
    assert (np.diff(np.floor(units(cells)[0].reshape(8, 3).mean(axis=1) * 7 + 0.5)) >= 1).all()


def test_spread_depends_on_set_row_and_column_only() -> None:
    x = np.zeros((6, 2))
    x[3:] = 1
    _, _, cells = fitted(x, x)
    _, _, again = fitted(x * 7 - 2, x * 7 - 2)
    np.testing.assert_array_equal(cells.codes, again.codes)
    assert len(np.unique(cells.codes)) == cells.codes.size


def test_identical_sets() -> None:
    x = np.random.default_rng(5).normal(size=(100, 2))
    domain, _, cells = fitted(x, x)
    assert all(len(m.low) == 1 and m.ties for m in domain.maps)
    assert len(np.unique(cells.codes[0])) == 200
    order = np.argsort(x[:, 0])
    first, second = cells.codes[0][:100][order], cells.codes[0][100:][order]
    assert (np.maximum(first, second)[:-1] < np.minimum(first, second)[1:]).all()


# Layout


def test_layout_is_dyadic_and_shallow() -> None:
    rng = np.random.default_rng(6)
    for masses in (
        [5],
        [1, 1],
        rng.integers(0, 3, 200),
        2 ** np.arange(30),
        np.where(np.arange(999) % 2, 1001, 0),
        [0] * 100,
        [0, 0, 7, 0, 0],
    ):
        edges = dyadic_edges(np.asarray(masses).tolist())
        widths = np.diff(edges)
        assert edges[0] == 0
        assert edges[-1] == 1
        assert (widths >= 2.0**-40).all()
        assert (np.frexp(widths)[0] == 0.5).all()  # powers of two ...
        assert (np.mod(edges[:-1], widths) == 0).all()  # ... at multiples of themselves


def test_heavy_segments_get_room() -> None:
    np.testing.assert_array_equal(np.diff(dyadic_edges([8, 4, 2, 2])), [0.5, 0.25, 0.125, 0.125])
    np.testing.assert_array_equal(np.diff(dyadic_edges([1, 1, 2, 4])), [0.125, 0.125, 0.25, 0.5])


# Notices


def test_constant_columns_are_left_out() -> None:
    domain, _, cells = fitted([[1.0, 5.0, 0.0], [2.0, 5.0, 0.5]], [[3.0, 5.0, 1.0]])
    assert domain.active == (0, 2)
    assert cells.codes.shape == (2, 3)
    assert domain.notices == ("Column 'c2' is constant (always 5) and was left out.",)
    points = np.array([[2.0, 5.0, 0.5], [2.0, 5.1, 0.5]])
    assert domain.inside(points).tolist() == [True, False]
    assert domain.log_density_factor(points).tolist() == [-math.log(2), -math.inf]
    assert domain.unit(points).tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert domain.interval(1, 0.0, 0.5) == (0.0, 0.5)


@pytest.mark.parametrize("bounds", [None, "ranks", (0, 9)])
def test_all_points_equal_or_one_row(bounds: Any) -> None:
    for sets in ([[[1.0, 2.0]]], [[[1.0, 2.0]] * 4, [[1.0, 2.0]]]):
        domain, _, cells = fitted(*sets, bounds=bounds)
        assert domain.active == ()
        assert cells.codes.shape == (0, sum(len(s) for s in sets))
        assert len(domain.notices) == 2
        assert domain.unit(np.array([[1.0, 2.0]])).shape == (1, 0)
        assert domain.log_density_factor(np.array([[1.0, 2.0]])).tolist() == [0.0]


def test_an_outlier_brings_a_notice() -> None:
    values = np.random.default_rng(7).normal(size=(50, 2))
    values[0, 1] = 1e12
    domain, _, _ = fitted(values)
    assert len(domain.notices) == 1
    assert "column 'c2'" in domain.notices[0]
    assert "bounds='ranks'" in domain.notices[0]
    assert fitted(values, bounds="ranks")[0].notices == ()
    values[0, 1] = 1e4
    assert fitted(values)[0].notices == ()
    zeros = np.concatenate([np.zeros(5000), np.random.default_rng(8).normal(size=50)])
    assert fitted(zeros)[0].notices == ()  # zero has its own interval


# Extreme numbers


@pytest.mark.parametrize(
    "values",
    [
        [-1e300, 0.0, 1e300],
        [-1.7e308, 1.0, 1.7e308],
        [-np.finfo(float).max, 0.0, np.finfo(float).max],
        [1e-300, 2e-300, 3e-300],
        [0.0, 5e-324, 1e-323],
        [-5e-324, 0.0, 5e-324],
        [1e300, 1e300 * (1 + 2.0**-52), 1e300 * (1 + 2.0**-51)],
        [0.0, 1.0, 1e12],
        [-1e300, 1e-300, 1e300],
    ],
)
@pytest.mark.parametrize("bounds", [None, "ranks"])
@pytest.mark.parametrize("copies", [1, 2, 40])
def test_extreme_values(values: list[float], bounds: Any, copies: int) -> None:
    column = np.repeat(values, copies)
    domain, samples, cells = fitted(column, column[:1], bounds=bounds)
    u = units(cells)[0]
    assert (u[:copies].max(), u[copies : 2 * copies].max()) <= (
        u[copies : 2 * copies].min(),
        u[2 * copies :].min(),
    )
    assert (cells.codes < TOP).all()
    assert domain.interval(0, 0.0, 1.0) == (values[0], values[2])
    points = np.array(values)[:, np.newaxis]
    assert domain.inside(points).all()
    assert np.isfinite(domain.log_density_factor(points)).all()
    low, high = domain.interval(0, domain.unit(points)[:, 0], domain.unit(points)[:, 0])
    span = values[2] / 2 - values[0] / 2
    assert (np.abs(low / 2 - points[:, 0] / 2) <= 1e-14 * span).all()
    assert (low <= high).all()
    assert Domain.fit(samples, None).columns == ("c1",)


def test_float32_ties_stay_in_order() -> None:
    values = np.random.default_rng(9).normal(size=20_000).astype(np.float32)
    domain, _, cells = fitted(values)
    assert domain.maps[0].ties
    order = np.lexsort((cells.codes[0], values))
    assert (np.diff(cells.codes[0][order].astype(np.int64)) > 0).all()


def test_threads_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(10).normal(size=(60_000, 3)).round(3)
    codes = []
    for count in ("1", "3"):
        monkeypatch.setenv("COBPM_THREADS", count)
        codes.append(fitted(values)[2].codes)
    np.testing.assert_array_equal(codes[0], codes[1])


# Saving


@pytest.mark.parametrize("bounds", [None, "ranks", {"c1": (-9, 9)}])
def test_round_trip_through_a_file(bounds: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(11)
    x = np.column_stack([rng.normal(size=99), rng.integers(0, 3, 99), np.ones(99)])
    domain, samples, cells = fitted(x, bounds=bounds)
    saved: dict[str, Any] = domain.to_arrays()
    np.savez(tmp_path / "domain.npz", **saved)
    with np.load(tmp_path / "domain.npz") as arrays:
        again = Domain.from_arrays(arrays)
    assert again == domain
    assert again.active == domain.active
    assert again.notices == domain.notices != ()
    np.testing.assert_array_equal(again.encode(samples).codes, cells.codes)
    assert domain != fitted(x + 1)[0]
    assert domain != "domain"


def test_columns_named_by_data_frames() -> None:
    pd = pytest.importorskip("pandas")
    samples = as_samples([pd.DataFrame({"größe": [1.0, 2.0], "b": [0, 0]})], owner="fit")
    domain = Domain.fit(samples)
    assert Domain.from_arrays(domain.to_arrays()).columns == ("größe", "b")
    assert "Column 'b' is constant" in domain.notices[0]


@pytest.mark.parametrize("size", [0, 1, 2, 3, 5, 8, 17, 257])
def test_counting_numbers_up_to_others(size):
    rng = np.random.default_rng(size)
    ascending = np.sort(np.round(rng.normal(size=size), 1))
    values = np.concatenate([np.round(rng.normal(size=333), 1), [np.inf, -np.inf]])
    expected = np.searchsorted(ascending, values, side="right")
    np.testing.assert_array_equal(_core.count_up_to(ascending, values), expected)
