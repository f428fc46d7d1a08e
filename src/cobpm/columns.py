"""Columns of a file as numbers: what text means, and what is left out because it means nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cobpm.arrays import BoolArray, FloatArray
from cobpm.files import MISSING
from cobpm.samples import LARGEST_EXACT

if TYPE_CHECKING:
    import pyarrow as pa

NUMBERS_AT_LEAST = 0.9  # of the entries of a text column that is read as numbers
TRUTH = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True, eq=False)
class Column:
    """A column as numbers.

    Attributes:
        values: NaN where there is none.
        kind: What they are, see `cobpm.units`; "text" or "nested" if they are no numbers.
        told: How the column was read, where that was not plain, to follow its name.
    """

    values: FloatArray
    kind: str
    told: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether the column has numbers."""
        return self.kind not in ("text", "nested")

    @property
    def missing(self) -> BoolArray:
        """Where there is no finite number."""
        return ~np.isfinite(self.values)

    def at(self, rows: Any) -> Column:
        """Some of the rows."""
        return replace(self, values=self.values[rows]) if self.usable else self


def read_column(name: str, array: pa.ChunkedArray) -> Column:
    """Read one of Arrow's columns."""
    column = _read(array)
    if column.kind == "integer" and _holds_timestamps(name, column.values):
        return replace(column, kind="moment", told=("holds seconds since 1970, shown as dates",))
    return column


def _read(array: pa.ChunkedArray) -> Column:
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import types

    if types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    kind = array.type
    if types.is_boolean(kind):
        return Column(_floats(array), "boolean")
    if types.is_integer(kind):
        values = _floats(array)
        told: tuple[str, ...] = ()
        if np.nanmax(np.abs(values), initial=0.0) >= LARGEST_EXACT:
            told = ("holds integers from 2^53 on, which were rounded to the nearest float64",)
        return Column(values, "integer", told)
    if types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind):
        values = _floats(array)
        return Column(values, "integer" if _whole(values) else "number")
    if types.is_date(kind):
        return Column(_seconds(array.cast(pa.timestamp("s"))), "date", ("holds dates",))
    if types.is_timestamp(kind):
        return Column(_seconds(array), *_dates(_seconds(array)))
    if types.is_duration(kind):
        micros = array.cast(pa.duration("us"), safe=False).cast(pa.int64())
        return Column(_floats(micros) / 1e6, "number", ("holds durations, read as seconds",))
    if types.is_time(kind):
        micros = array.cast(pa.time64("us")).cast(pa.int64())
        told = ("holds times of day, read as seconds after midnight",)
        return Column(_floats(micros) / 1e6, "number", told)
    if types.is_string(kind) or types.is_large_string(kind):
        text = pc.utf8_trim_whitespace(array)
        unknown = pc.is_in(text, pa.array(MISSING, text.type))
        return _read_text(pc.if_else(unknown, pa.scalar(None, text.type), text))
    if types.is_binary(kind) or types.is_large_binary(kind):
        return Column(np.empty(0), "text")
    return Column(np.empty(0), "nested")


def _holds_timestamps(name: str, values: FloatArray) -> bool:
    """Whether whole numbers in a column called so look like full minutes from 1980 to 2100.

    It only changes how they are shown.
    """
    known = values[np.isfinite(values)]
    if not any(word in name.lower() for word in ("time", "date", "stamp")) or not len(known):
        return False
    return bool(known.min() > 3.2e8 and known.max() < 4.2e9 and not (known % 60.0).any())


def labels_of(array: pa.ChunkedArray) -> list[str | None]:
    """The entries of a column as text, to name sets by; whole numbers without a point."""
    found = array.to_pylist()
    return [
        None
        if one is None or one != one
        else one.decode("latin-1")
        if isinstance(one, bytes)
        else f"{one:.15g}"
        if isinstance(one, float)
        else str(one)
        for one in found
    ]


def _floats(array: pa.ChunkedArray) -> FloatArray:
    import pyarrow as pa

    found = array.cast(pa.float64(), safe=False).to_numpy()
    return np.asarray(found, dtype=np.float64)


def _whole(values: FloatArray) -> bool:
    """Whether all numbers are whole, as integers beside missing values often come."""
    known = values[np.isfinite(values)]
    if not len(known) or np.abs(known).max() >= LARGEST_EXACT:
        return False
    return bool((known == np.floor(known)).all())


def _seconds(array: pa.ChunkedArray) -> FloatArray:
    """Seconds since the start of 1970."""
    import pyarrow as pa

    parts = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[array.type.unit]
    return _floats(array.cast(pa.int64())) / parts


def _dates(seconds: FloatArray) -> tuple[str, tuple[str, ...]]:
    known = seconds[np.isfinite(seconds)]
    if len(known) and not (known % 86400.0).any():
        return "date", ("holds dates",)
    return "moment", ("holds dates with times",)


def _read_text(text: pa.ChunkedArray) -> Column:
    """Numbers, dates, or true and false that were stored as text."""
    import pyarrow as pa

    nothing = Column(np.empty(0), "text")
    if text.null_count == len(text):
        return Column(np.full(len(text), np.nan), "number")
    for kind in (pa.float64(), pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            found = text.cast(kind)
        except pa.ArrowInvalid:
            continue
        if pa.types.is_timestamp(kind):
            seconds = _seconds(found)
            return Column(seconds, *_dates(seconds))
        values = _floats(found)
        kind_of = "integer" if _whole(values) else "number"
        return Column(values, kind_of, ("holds numbers stored as text",))
    distinct = text.unique().drop_null().to_pylist()
    if all(word.lower() in TRUTH for word in distinct):
        truth = [None if word is None else TRUTH[word.lower()] for word in text.to_pylist()]
        values = np.array(truth, dtype=np.float64)
        return Column(values, "boolean", ("holds true and false stored as text",))
    numbers = {word: _number(word) for word in distinct}
    if sum(number is not None for number in numbers.values()) < len(distinct) / 2:
        return nothing
    words = text.to_pylist()
    read = [None if word is None else numbers[word] for word in words]
    known, strange = len(words) - text.null_count, sum(map(_lost, words, read))
    if known - strange < NUMBERS_AT_LEAST * known:
        return replace(nothing, told=(f"mixes numbers and text, such as {_example(numbers)}",))
    values = np.array(read, dtype=np.float64)
    told = f"holds numbers, and {strange:,} entries such as {_example(numbers)} taken as missing"
    return Column(values, "integer" if _whole(values) else "number", (told,))


def _lost(word: str | None, number: float | None) -> bool:
    return word is not None and number is None


def _example(numbers: dict[str, float | None]) -> str:
    word = next(word for word, number in numbers.items() if number is None)
    return repr(word if len(word) <= 20 else f"{word[:20]}…")


def _number(word: str) -> float | None:
    if "_" in word:  # which Python allows inside numbers
        return None
    try:
        return float(word)
    except ValueError:
        return None
