"""What goes in, what is refused, and whether the refusals help."""

from __future__ import annotations

import subprocess
import sys
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cobpm.samples import (
    InputError,
    Samples,
    Seen,
    as_groups,
    as_points,
    as_samples,
    bad,
    check_bounds,
    check_choice,
    check_count,
    check_level,
    check_positive,
    check_rng,
)


def compare(x: Any, y: Any) -> Samples:
    return as_samples([x, y], owner="compare", names=("x", "y"), parameters=("x", "y"))


def refusal(x: Any, y: Any = (1.0, 2.0)) -> str:
    with pytest.raises(InputError) as caught:
        compare(x, y)
    return str(caught.value)


def frames(data: dict[str, list[Any]]) -> list[Any]:
    """The same table from every data frame library at hand."""
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    return [pd.DataFrame(data), pl.DataFrame(data), pa.table(data), pl.LazyFrame(data)]


# What is accepted


def test_message_has_one_format() -> None:
    error = bad("delta", "compare", "be a positive number", -1, "Try 0.5.")
    assert isinstance(error, ValueError)
    assert str(error) == (
        "The 'delta' parameter of compare() must be a positive number. Got -1 instead. Try 0.5."
    )
    assert str(bad("a", "f", "be short", "x" * 999)).count("x") < 100
    assert "Got many things instead." in str(bad("a", "f", "be one", Seen("many things")))
    assert "an array of shape (2, 3)" in str(bad("a", "f", "be a number", np.zeros((2, 3))))


def test_flat_input_is_one_column() -> None:
    samples = compare([1, 2, 3], np.array([4.0, 5.0]))
    assert samples.names == ("x", "y")
    assert samples.columns == ("c1",)
    assert samples.sizes == (3, 2)
    assert samples.d == 1
    assert samples.notices == ()
    assert [v.shape for v in samples.values] == [(3, 1), (2, 1)]


@pytest.mark.parametrize(
    "dtype", ["bool", "i1", "u2", "i8", "u8", "f2", "f4", ">f4", "f8", ">f8", "longdouble", "O"]
)
def test_any_real_dtype(dtype: str) -> None:
    given = np.array([[0, 1], [1, 1], [1, 0]]).astype(dtype)
    samples = compare(given, [[0.5, 0.5]])
    assert samples.values[0].dtype == np.dtype("float64")
    assert samples.values[0].flags.c_contiguous
    np.testing.assert_array_equal(samples.values[0], [[0, 1], [1, 1], [1, 0]])


def test_contiguous_float64_is_not_copied() -> None:
    x, flat = np.zeros((5, 2)), np.zeros(5)
    assert np.shares_memory(compare(x, x).values[0], x)
    assert np.shares_memory(compare(flat, flat).values[0], flat)
    assert compare(np.asfortranarray(np.ones((3, 2))), x).values[0].flags.c_contiguous


@pytest.mark.parametrize(
    "given",
    [
        [[1, 2], [3, 4]],
        ((1, 2), (3, 4)),
        [np.array([1, 2]), np.array([3, 4])],
        [[Fraction(1), Decimal(2)], [3, 4.0]],
        np.ma.masked_array([[1, 2], [3, 4]]),
    ],
)
def test_many_ways_to_write_a_matrix(given: Any) -> None:
    np.testing.assert_array_equal(compare(given, given).values[0], [[1, 2], [3, 4]])


def test_anything_with_array_protocol() -> None:
    class Tensor:
        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
            return np.array([[1.0, 2.0]], dtype=dtype)

    assert compare(Tensor(), [[3, 4]]).d == 2
    assert compare(range(4), [1]).sizes == (4, 1)


def test_names_of_sets() -> None:
    assert as_samples([[1], [2], [3]], owner="fit").names == ("1", "2", "3")
    assert as_samples({"a": [1], 2: [2]}, owner="fit").names == ("a", "2")
    assert as_samples([[1.0]], owner="fit").sizes == (1,)


@pytest.mark.parametrize(
    ("sets", "names", "words"),
    [
        ([], None, "hold 1 to"),
        ({}, None, "hold 1 to"),
        (np.zeros((3, 2)), None, "put it in a list"),
        ("abc", None, "list of samples"),
        ({1: [1], "1": [2]}, None, "'1' more than once"),
        ([[1], [2]], ["a", "a"], "'a' more than once"),
        ([[1], [2]], ["a"], "name each of the 2"),
        ([1.0, 2.0], None, "'samples[0]' parameter of fit()"),
        ({"a": [1], "b": []}, None, "'samples['b']' parameter"),
    ],
)
def test_bad_sets(sets: Any, names: Any, words: str) -> None:
    with pytest.raises(InputError, match=r"parameter of fit\(\) must") as caught:
        as_samples(sets, owner="fit", names=names)
    assert words in str(caught.value)


# What is refused


@pytest.mark.parametrize(
    ("x", "words"),
    [
        ([], "an empty sample (0 rows, 1 columns)"),
        (np.zeros((0, 3)), "an empty sample (0 rows, 3 columns)"),
        (np.zeros((3, 0)), "an empty sample (3 rows, 0 columns)"),
        (3.0, "Got 3.0 instead"),
        (np.float64(3), "Got 3.0 instead"),
        (None, "Got None instead"),
        ({"a": [1]}, "Got {'a': [1]} instead"),
        ("text", "Got 'text' instead"),
        (np.zeros((2, 3, 4)), "shape (2, 3, 4)"),
        (np.zeros((2, 3, 4)), "x.reshape(len(x), -1)"),
        ([[1, 2], [3]], "must be a sequence of numbers or a matrix"),
        ([1, "a"], "text in 'x'"),
        (np.array([1, "a"], dtype=object), "'a' in 'x'"),
        (np.array([1, "2"], dtype=object), "'2' in 'x'"),
        (np.array([1, object()], dtype=object), "something else in 'x'"),
        (np.array([1j]), "complex numbers in 'x'"),
        (np.array([1, 1j], dtype=object), "1j in 'x'"),
        (np.zeros(3, dtype="f8,i4"), "values of type"),
        (np.ma.masked_array([1.0, 2.0], [False, True]), "1 masked entries"),
        ([[1, 2, 3]], "have as many columns as 'x': 3. Got 1 column"),
        ([1, None], "1 missing (NaN) of 2 values"),
        ([10**400, 1], "something else in 'x'"),
    ],
)
def test_refusals(x: Any, words: str) -> None:
    message = refusal(x)
    assert message.startswith("The '")
    assert "parameter of compare() must" in message
    assert words in message


def test_missing_and_infinite_values_are_counted_and_placed() -> None:
    x = np.zeros((9, 3))
    x[4, 0], x[5, 2], x[7, 2] = np.nan, np.inf, -np.inf
    assert refusal(x, x) == (
        "The 'x' parameter of compare() must hold finite numbers only. Got 1 missing (NaN) and 2 "
        "infinite of 27 values (column 'c1', 'c3'; first in row 4) instead. Drop or fill them "
        "first, e.g. x[np.isfinite(x).all(axis=1)]."
    )
    assert "e.g. x[np.isfinite(x)]." in refusal([1.0, np.nan])
    assert "'y' parameter" in refusal([1.0], [np.inf])


def test_longdouble_too_large_for_float64() -> None:
    huge = np.array([1, 2], dtype=np.longdouble) * np.finfo(np.float64).max
    if np.isfinite(huge[1]):
        assert "1 infinite of 2 values" in refusal(huge)


def test_sparse_matrix() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    for made in (sparse.csr_array, sparse.coo_matrix):
        assert "x.toarray()" in refusal(made(np.eye(3)))


def test_large_integers_bring_a_notice() -> None:
    samples = compare([2**53 + 1, 1], [3, 4])
    assert samples.notices[0].startswith("In 'x': integers in 'x' reach 2^53")
    assert compare([2**53 - 1, 1], [1 - 2**53, 4]).notices == ()
    assert len(compare([2**70, 1], np.array([2**63], dtype=np.uint64)).notices) == 2


def test_times_become_seconds() -> None:
    times = np.array(["1970-01-02", "1970-01-01T00:00:01.5"], dtype="M8[ms]")
    samples = compare(times, np.array([2, 3], dtype="m8[m]"))
    np.testing.assert_array_equal(samples.values[0][:, 0], [86400, 1.5])
    np.testing.assert_array_equal(samples.values[1][:, 0], [120, 180])
    assert "read as seconds since the start of 1970 (UTC)" in samples.notices[0]
    assert "the durations in 'y' were read as seconds." in samples.notices[1]
    assert "1 missing (NaN)" in refusal(np.array(["NaT", 1], dtype="m8[s]"))


# Data frames


def test_frames_keep_their_column_names() -> None:
    for frame in frames({"a": [1, 2], "b": [0.5, 1.5], "c": [True, False]}):
        samples = compare(frame, frame)
        assert samples.columns == ("a", "b", "c")
        np.testing.assert_array_equal(samples.values[1], [[1, 0.5, 1], [2, 1.5, 0]])
        assert samples.notices == ()


def test_frames_mix_with_each_other_and_with_arrays() -> None:
    first, *others = frames({"a": [1, 2], "b": [3, 4]})
    for other in [*others, np.array([[1, 3], [2, 4]])]:
        for samples in (compare(first, other), compare(other, first)):
            assert samples.columns == ("a", "b")
            np.testing.assert_array_equal(samples.values[0], samples.values[1])
    assert "have as many columns as 'y': 2. Got 3 columns" in refusal(np.zeros((2, 3)), first)


def test_columns_in_another_order() -> None:
    one, two = frames({"a": [1], "b": [2]}), frames({"b": [2], "a": [1]})
    for x, y in zip(one, two, strict=True):
        samples = compare(x, y)
        np.testing.assert_array_equal(samples.values[1], [[1, 2]])
        assert samples.values[1].flags.c_contiguous
        assert samples.notices == ("In 'y': columns were put in the order 'a', 'b'.",)


def test_columns_that_differ() -> None:
    one, two = frames({"a": [1], "b": [2]}), frames({"b": [2], "c": [1]})
    for x, y in zip(one, two, strict=True):
        message = refusal(x, y)
        assert "same columns as 'x'. Got 'c' only in 'y' and 'a' only in 'x' instead." in message


def test_missing_values_in_frames() -> None:
    for frame in frames({"a": [1, 2, 3], "b": [1, None, 3], "n": [None, None, 1.5]}):
        message = refusal(frame, frame)
        assert "3 missing (NaN) of 9 values (column 'b', 'n'; first in row 0)" in message
        assert "drop_nulls" in message


def test_nullable_and_decimal_columns() -> None:
    pd = pytest.importorskip("pandas")
    for dtype in ("Int64", "Float32", "boolean"):
        column = pd.array([1, None, 0], dtype=dtype)
        assert "1 missing (NaN) of 3" in refusal(pd.DataFrame({"a": column}))
        assert compare(pd.DataFrame({"a": column[:1]}), [1]).values[0][0, 0] == 1
    for frame in frames({"a": [Decimal("1.5"), Decimal("2.5")]}):
        np.testing.assert_array_equal(compare(frame, frame).values[0][:, 0], [1.5, 2.5])


def test_text_columns_are_named() -> None:
    for frame in frames({"a": [1, 2], "t": ["u", "v"], "l": [[1], [2]]})[1:]:
        message = refusal(frame)
        assert "numeric columns only. Got 't (String)', 'l (List(" in message
        assert "Select numeric columns first" in message
    pd = pytest.importorskip("pandas")
    for values, dtype in ((["u"], None), (["u"], "category"), ([1], "category")):
        assert "Got 't (" in refusal(pd.DataFrame({"t": pd.Series(values, dtype=dtype)}))
    assert "'u' in column 't'" in refusal(pd.DataFrame({"t": [1, "u"]}))
    assert "in column 't'" in refusal(pd.DataFrame({"t": [date(2020, 1, 1), 3]}))


def test_time_columns_become_seconds() -> None:
    data: dict[str, list[Any]] = {"when": [datetime(1970, 1, 2)], "long": [timedelta(minutes=2)]}
    for frame in frames(data):
        samples = compare(frame, frame)
        np.testing.assert_array_equal(samples.values[0], [[86400, 120]])
        assert len(samples.notices) == 4
    for frame in frames({"day": [date(1970, 1, 2)]})[1:]:
        np.testing.assert_array_equal(compare(frame, frame).values[0], [[86400]])
    pd = pytest.importorskip("pandas")
    zoned = pd.DataFrame({"when": pd.to_datetime(["1970-01-02"]).tz_localize("Asia/Tokyo")})
    assert compare(zoned, zoned).values[0][0, 0] == 86400 - 9 * 3600
    missing = pd.DataFrame({"when": pd.to_datetime(["1970-01-02", None])})
    assert "1 missing (NaN)" in refusal(missing)


def test_series() -> None:
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    before, after = pd.Series([1.0, 2.0], name="before"), pl.Series("after", [1.0, 2.0])
    assert compare(before, before).columns == ("before",)
    assert compare(before, after).columns == ("c1",)
    assert compare(before, [1.0]).columns == ("before",)
    assert compare(pd.Series([1.0]), pl.Series([1.0])).columns == ("c1",)
    assert compare(after, pd.DataFrame({"a": [1.0]})).columns == ("a",)
    assert compare(pa.array([1.0]), pa.chunked_array([[1.0]])).columns == ("c1",)
    assert "column 'before'; first in row 1" in refusal(pd.Series([1, np.nan], name="before"))


def test_column_labels_of_pandas() -> None:
    pd = pytest.importorskip("pandas")
    assert compare(pd.DataFrame([[1, 2]]), pd.DataFrame([[1, 2]])).columns == ("0", "1")
    for labels in (["a", "a"], [1, "1"]):
        assert "more than once" in refusal(pd.DataFrame([[1, 2]], columns=labels))
    assert "an empty sample" in refusal(pd.DataFrame({"a": []}))
    assert "an empty sample (2 rows, 0 columns)" in refusal(pd.DataFrame(index=[0, 1]))


def test_large_integers_in_frames() -> None:
    for frame in frames({"id": [2**60, 1]}):
        assert "integers in column 'id' reach 2^53" in compare(frame, frame).notices[0]


def test_narwhals_is_only_loaded_for_other_types() -> None:
    code = (
        "import sys, numpy as np; from cobpm.samples import as_samples;"
        "as_samples([[1, 2], np.ones(3), (1,)], owner='fit');"
        "sys.exit('narwhals' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# Points


def test_points_follow_the_fitted_columns() -> None:
    for frame in frames({"b": [2], "a": [1]}):
        points = as_points(frame, ("a", "b"), parameter="points", owner="density")
        np.testing.assert_array_equal(points, [[1, 2]])
        by_place = as_points(frame, ("c1", "c2"), parameter="points", owner="density")
        np.testing.assert_array_equal(by_place, [[2, 1]])
        with pytest.raises(InputError, match="'b' only in 'points'"):
            as_points(frame, ("a",), parameter="points", owner="density")
    with pytest.raises(InputError, match="as many columns as the fitted samples: 2"):
        as_points([1.0, 2.0], ("a", "b"), parameter="points", owner="density")


# Parameters


def test_choices() -> None:
    options = ("exact", "pruned", "mcmc")
    assert check_choice("exact", options, parameter="engine", owner="compare") == "exact"
    with pytest.raises(InputError) as caught:
        check_choice("Exakt", options, parameter="engine", owner="compare")
    assert str(caught.value) == (
        "The 'engine' parameter of compare() must be one of 'exact', 'pruned', 'mcmc'. "
        "Got 'Exakt' instead. Did you mean 'exact'?"
    )
    with pytest.raises(InputError, match="Got None instead"):
        check_choice(None, options, parameter="engine", owner="compare")


@pytest.mark.parametrize("value", [0.5, 1, np.float32(0.5), np.int8(2), Fraction(1, 2)])
def test_positive(value: Any) -> None:
    number = check_positive(value, parameter="delta", owner="compare")
    assert type(number) is float
    assert number == value


@pytest.mark.parametrize(
    "value", [0, -1, np.nan, np.inf, True, np.True_, "1", None, 1j, [1], 10**400, Decimal(1)]
)
def test_not_positive(value: Any) -> None:
    with pytest.raises(InputError, match="must be a positive number"):
        check_positive(value, parameter="delta", owner="compare")


@pytest.mark.parametrize("value", [1, 3000, np.int32(7), np.uint8(3), 3000.0])
def test_count(value: Any) -> None:
    count = check_count(value, parameter="draws", owner="compare")
    assert type(count) is int
    assert count == value
    assert check_count(0, minimum=0, parameter="burn_in", owner="compare") == 0


@pytest.mark.parametrize("value", [0, -3, 1.5, True, np.True_, "3", None, np.nan, np.inf])
def test_not_a_count(value: Any) -> None:
    with pytest.raises(InputError, match="must be a whole number of at least 1"):
        check_count(value, parameter="draws", owner="compare")


def test_level() -> None:
    assert check_level(np.float32(0.5), owner="interval") == 0.5
    for level in (0, 1, -0.1, 1.1, np.nan, True, "0.9", None):
        with pytest.raises(InputError, match=r"0\.9 means a 90% interval"):
            check_level(level, owner="interval")
    with pytest.raises(InputError, match=r"Got 95 instead. Did you mean 0.95\?"):
        check_level(95, owner="interval")


def test_rng() -> None:
    generator = np.random.default_rng(1)
    assert check_rng(generator, owner="compare") is generator
    first = generator.random()
    for seed in (1, np.int64(1), np.random.SeedSequence(1), np.random.PCG64(1)):
        assert check_rng(seed, owner="compare").random() == first
    assert check_rng(None, owner="compare").random() != check_rng(None, owner="compare").random()


@pytest.mark.parametrize("rng", [-1, np.int64(-1), True, 1.5, "1", np.random, [1, 2]])
def test_bad_rng(rng: Any) -> None:
    with pytest.raises(InputError, match="be None, a non-negative integer"):
        check_rng(rng, owner="compare")


def test_legacy_rng() -> None:
    legacy = np.random.RandomState(1)
    with pytest.raises(InputError, match=r"np\.random\.default_rng\(seed\)"):
        check_rng(legacy, owner="compare")


# Bounds


def samples_of(d: int) -> Samples:
    values = np.linspace(0.0, 1.0, 4 * d).reshape(4, d)
    return compare(values, values[:2])


@pytest.mark.parametrize(
    ("d", "bounds", "expected"),
    [
        (1, (0, 2), [[0, 2]]),
        (1, [(0, 2)], [[0, 2]]),
        (1, ([0], [2]), [[0, 2]]),
        (3, (0, 2), [[0, 2]] * 3),
        (3, np.array([0, 2]), [[0, 2]] * 3),
        (3, (-1, [2, 3, 4]), [[-1, 2], [-1, 3], [-1, 4]]),
        (3, ((-1, -2, -3), (1, 2, 3)), [[-1, 1], [-2, 2], [-3, 3]]),
        (3, ((-1, 1), (-2, 2), (-3, 3)), [[-1, 1], [-2, 2], [-3, 3]]),
        (2, ((-1, 1), (-2, 2)), [[-1, 1], [-2, 2]]),
        (2, np.array([[-1, 1], [-2, 2]]), [[-1, 1], [-2, 2]]),
        (2, {"c2": (0, 2)}, [[np.nan, np.nan], [0, 2]]),
        (2, {"c2": np.array([0, 2]), "c1": [0, 1]}, [[0, 1], [0, 2]]),
        (2, {}, [[np.nan, np.nan]] * 2),
    ],
)
def test_bounds(d: int, bounds: Any, expected: Any) -> None:
    read = check_bounds(bounds, samples_of(d), owner="compare")
    assert isinstance(read, np.ndarray)
    np.testing.assert_array_equal(read, np.array(expected, dtype=float))


def test_bounds_left_to_the_data() -> None:
    assert check_bounds(None, samples_of(2), owner="compare") is None
    assert check_bounds("ranks", samples_of(2), owner="compare") == "ranks"


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ("rank", "be None, 'ranks'"),
        (3, "be None, 'ranks'"),
        ((0, 1, 2, 3), "be None, 'ranks'"),
        (("a", "b"), "be None, 'ranks'"),
        ((None, 1), "be None, 'ranks'"),
        ((np.nan, 1), "be None, 'ranks'"),
        ((False, True), "be None, 'ranks'"),
        (((0, 1), (0, 1)), "be None, 'ranks'"),
        ({"c1": 1, "c2": 2}, "be None, 'ranks'"),
        ({"c1": (0, 1, 2)}, "be None, 'ranks'"),
        ({"z": (0, 1)}, "name columns out of 'c1', 'c2', 'c3'. Got 'z' instead"),
        ((1, 0), "low < high. Got (1, 0) for column 'c1'"),
        ((1, 1), "low < high. Got (1, 1) for column 'c1'"),
        ((0, np.inf), "low < high. Got (0, inf) for column 'c1'"),
        ((-np.inf, np.inf), "low < high. Got (-inf, inf) for column 'c1'"),
        ({"c3": (2, -2)}, "low < high. Got (2, -2) for column 'c3'"),
    ],
)
def test_bad_bounds(bounds: Any, words: str) -> None:
    with pytest.raises(InputError, match="'bounds' parameter of compare") as caught:
        check_bounds(bounds, samples_of(3), owner="compare")
    assert words in str(caught.value)


def test_points_outside_bounds_are_counted() -> None:
    samples = compare([[0.0, 0.0], [2.0, 0.5], [-1.0, 1.0]], [[0.5, 0.5], [0.5, 9.0]])
    with pytest.raises(InputError) as caught:
        check_bounds((0, 1), samples, owner="compare")
    assert str(caught.value) == (
        "The 'bounds' parameter of compare() must contain every point. Got 2 of 3 points of 'x' "
        "outside [0, 1] in column 'c1' (range -1 to 2); 1 of 2 points of 'y' outside [0, 1] in "
        "column 'c2' (range 0.5 to 9) instead. Widen the bounds, clip or drop those points, or use "
        "bounds=None."
    )


def test_labels_that_are_na():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0], "site": pd.array(["x", None, "y"], "string")})
    with pytest.raises(InputError, match="1 of 3 rows without one"):
        as_groups(table, "site", owner="pairwise")
