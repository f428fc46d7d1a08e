"""Columns of files as numbers."""

import datetime as dt
import decimal

import numpy as np
import pyarrow as pa
import pytest

from cobpm.columns import encoded, label, read_column

DAY = dt.datetime(2024, 2, 29, tzinfo=dt.UTC)


def column(values, kind=None, name="x"):
    """A column in two pieces, the second of which begins inside its buffer."""
    whole = pa.array(values, kind)
    if isinstance(whole, pa.ChunkedArray):
        (whole,) = whole.chunks
    return read_column(name, pa.chunked_array([whole[:1], whole[1:]]))


@pytest.mark.parametrize(
    ("values", "kind", "expected", "what"),
    [
        ([1, None, 3], pa.int16(), [1, np.nan, 3], "integer"),
        ([1, 2, 255], pa.uint8(), [1, 2, 255], "integer"),
        ([0.5, None, np.inf], pa.float32(), [0.5, np.nan, np.inf], "number"),
        ([1.0, None, 3.0], pa.float64(), [1, np.nan, 3], "integer"),
        ([True, None, False], pa.bool_(), [1, np.nan, 0], "boolean"),
        ([decimal.Decimal("0.25"), None], pa.decimal128(5, 2), [0.25, np.nan], "number"),
        ([None, None], pa.null(), [np.nan, np.nan], "number"),
        ([DAY.date(), None], pa.date32(), [DAY.timestamp(), np.nan], "date"),
        ([DAY, None], pa.timestamp("ns", "Europe/Berlin"), [DAY.timestamp(), np.nan], "date"),
        ([dt.timedelta(seconds=90), None], pa.duration("ms"), [90, np.nan], "number"),
        ([dt.time(1), None], pa.time32("s"), [3600, np.nan], "number"),
        (["1", " 2.5", None], pa.string(), [1, 2.5, np.nan], "number"),
        (["1e3", "?", "-4"], pa.large_string(), [1000, np.nan, -4], "integer"),
        (["True", "FALSE", ""], pa.string(), [1, 0, np.nan], "boolean"),
        (["2024-02-29", "NA"], pa.string(), [DAY.timestamp(), np.nan], "date"),
        (["2024-02-29T01:00:00+01:00", "2024-02-29 00:00:01"], None, None, "moment"),
        (["", "n/a"], pa.string(), [np.nan, np.nan], "number"),
    ],
)
def test_numbers(values, kind, expected, what):
    found = column(values, kind)
    assert (found.kind, found.usable) == (what, True)
    if expected is not None:
        np.testing.assert_array_equal(found.values, expected)


@pytest.mark.parametrize(
    ("values", "kind", "what"),
    [
        (["a", "b"], pa.string(), "text"),
        (["1", "b"], pa.string(), "text"),
        (["1_000", "2_000"], pa.string(), "text"),
        (["29/02/2024", "2024-02-29"], pa.string(), "text"),
        ([b"\xff", b"a"], pa.binary(), "text"),
        ([[1], [2]], pa.list_(pa.int8()), "nested"),
        ([{"a": 1}, None], pa.struct([("a", pa.int8())]), "nested"),
    ],
)
def test_what_is_left_out(values, kind, what):
    found = column(values, kind)
    assert (found.kind, found.usable) == (what, False)


def test_dictionaries():
    found = column(pa.array(["3", "5", "3"]).dictionary_encode())
    np.testing.assert_array_equal(found.values, [3, 5, 3])


def test_strange_entries_are_missing_if_few():
    few = column([*map(str, range(30)), "n.d.", "n.d."])
    assert np.isnan(few.values).sum() == 2
    assert few.told == ("holds numbers, and 2 entries such as 'n.d.' taken as missing",)
    many = column([*map(str, range(30)), *["n.d."] * 9])
    assert (many.kind, many.told) == ("text", ("mixes numbers and text, such as 'n.d.'",))


def test_large_integers():
    assert "2^53" in column([2**60, 1]).told[0]


def test_time_stamps_are_shown_as_dates():
    stamps = [1357020000, 1357023600]
    assert column(stamps, name="time_hour").kind == "moment"
    assert column(stamps, name="customer").kind == "integer"
    assert column([1357020001, 1357023607], name="time").kind == "integer"
    assert column([60, 120], name="time").kind == "integer"


def test_labels():
    entries, codes = encoded(pa.chunked_array([["b", None], ["a", "b"]]))
    assert entries == ["b", "a"]
    assert codes.tolist() == [0, -1, 1, 0]
    shown = [label(one) for one in (None, np.nan, 3, 3.0, 0.5, b"\xe9", True)]
    assert shown == [None, None, "3", "3", "0.5", "é", "True"]
