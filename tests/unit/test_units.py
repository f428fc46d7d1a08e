"""Values in words."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest

import cobpm
from cobpm.samples import as_samples
from cobpm.units import common_kind, in_words, value_in_words

DAY = 86400.0


def words(kind, low, high, has_low=True, has_high=False, cut_low=True, cut_high=True):
    return in_words(
        "x",
        kind,
        low,
        high,
        has_low=has_low,
        has_high=has_high,
        cut_low=cut_low,
        cut_high=cut_high,
    )


def at(*moment):
    return dt.datetime(*moment, tzinfo=dt.UTC).timestamp()


def test_whole_numbers():
    assert words("integer", 2.5, 7.25) == "3 ≤ x ≤ 7"
    assert words("integer", 2.0, 7.0) == "2 ≤ x ≤ 6"
    assert words("integer", 2.0, 7.0, has_low=False, has_high=True) == "3 ≤ x ≤ 7"
    assert words("integer", 2.5, 9.0, cut_high=False) == "x ≥ 3"
    assert words("integer", -3.0, 2.5, cut_low=False) == "x ≤ 2"
    assert words("integer", 2.1, 2.4) == "x = 2"
    assert words("integer", 2.5, 3.5) == "x = 3"
    assert words("integer", 1234567890.5, 1234567990.5) == "1234567891 ≤ x ≤ 1234567990"
    assert words("integer", 0.0, 1e300) == "0 ≤ x ≤ 1e+300"
    assert words("number", 0.0, 1e300, cut_low=False, cut_high=False) == ""


def test_true_and_false():
    assert words("boolean", 0.0, 0.0, has_high=True) == "x = false"
    assert words("boolean", 1.0, 1.0, has_high=True) == "x = true"


def test_dates():
    assert words("date", at(2024, 2, 28) + 7, at(2024, 3, 2) - 7) == "2024-02-29 ≤ x ≤ 2024-03-01"
    assert words("date", at(1960, 1, 1), at(1960, 1, 2)) == "x = 1960-01-01"
    long = words("moment", at(2013, 1, 1, 5), at(2014, 1, 1))
    assert long == "2013-01-01 ≤ x < 2014-01-01"
    assert words("moment", at(2013, 1, 1, 5), at(2013, 1, 9)) == (
        "2013-01-01 05:00 ≤ x < 2013-01-09 00:00"
    )
    assert words("moment", at(2013, 1, 1, 5), at(2013, 1, 1, 5, 9)) == (
        "2013-01-01 05:00:00 ≤ x < 2013-01-01 05:09:00"
    )
    assert value_in_words(at(2013, 1, 1, 5) + 0.25, "moment") == "2013-01-01 05:00:00.250000"
    assert "1970" in value_in_words(1e13, "moment")


def test_common_kind():
    assert common_kind(["integer", "integer"]) == "integer"
    assert common_kind(["integer", "boolean"]) == "integer"
    assert common_kind(["date", "moment"]) == "moment"
    assert common_kind(["date", "integer"]) == "number"


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "numpy"])
def test_dates_in_regions(library, tmp_path):
    start = np.datetime64("2020-01-01T00:00:00")
    early = start + np.arange(400) * np.timedelta64(1, "h")
    late = start + np.arange(300, 700) * np.timedelta64(1, "h")
    frames = [pd.DataFrame({"when": early}), pd.DataFrame({"when": late})]
    if library == "polars":
        frames = [pytest.importorskip("polars").from_pandas(frame) for frame in frames]
    if library == "pyarrow":
        frames = [pytest.importorskip("pyarrow").Table.from_pandas(frame) for frame in frames]
    if library == "numpy":
        frames = [early, late]
    post = cobpm.compare(*frames, rng=1)
    told = post.regions()["where"].tolist()
    assert all("2020-01-" in words for words in told), told
    post.save(tmp_path / "post.npz")
    assert cobpm.load(tmp_path / "post.npz").regions()["where"].tolist() == told


def test_kinds_of_columns():
    frame = pd.DataFrame(
        {
            "a": [1, 2],
            "b": [0.5, 1.0],
            "c": [True, False],
            "d": pd.to_datetime(["2020-01-01", "2020-01-02"]),
        }
    )
    other = frame[["d", "c", "b", "a"]]
    found = as_samples([frame, other], owner="fit")
    assert found.kinds == ("integer", "number", "boolean", "moment")
    assert as_samples([frame[["b"]], frame[["b"]]], owner="fit").kinds == ()
    assert as_samples([[1, 2], [1.5]], owner="fit").kinds == ()
    assert as_samples([[1, 2], [1]], owner="fit").kinds == ("integer",)
    assert as_samples(found, owner="fit") is found
