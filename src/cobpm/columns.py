"""Columns of a file as numbers: what text means, and what is left out because it means nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from cobpm.arrays import BoolArray, FloatArray, IntArray
from cobpm.files import MISSING
from cobpm.samples import LARGEST_EXACT

if TYPE_CHECKING:
    import pyarrow as pa

NUMBERS_AT_LEAST = 0.9  # of the entries of a text column that is read as numbers
FEW = 200  # words that decide what a column may hold
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
    if str(kind) in ("string", "large_string", "string_view"):
        return _read_text(array.cast(pa.string()))
    return Column(np.empty(0), "nested" if types.is_nested(kind) else "text")


def read_values(array: pa.ChunkedArray, kind: str) -> FloatArray:
    """More rows of a column whose kind is known; NaN for what is not of it."""
    from pyarrow import types

    if types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if types.is_string(array.type) or types.is_large_string(array.type):
        entries, codes = encoded(array)
        words = [word.strip() for word in entries]
        read = {"boolean": _truth, "date": _moment, "moment": _moment}.get(kind, _number)
        return _spread(["" if word in MISSING else word for word in words], codes, read)
    if types.is_temporal(array.type):
        return _read(array).values
    return _floats(array)


def _holds_timestamps(name: str, values: FloatArray) -> bool:
    """Whether whole numbers in a column called so look like full minutes from 1980 to 2100.

    It only changes how they are shown.
    """
    known = values[np.isfinite(values)]
    if not any(word in name.lower() for word in ("time", "date", "stamp")) or not len(known):
        return False
    return bool(known.min() > 3.2e8 and known.max() < 4.2e9 and not (known % 60.0).any())


def encoded(array: pa.ChunkedArray) -> tuple[list[Any], IntArray]:
    """The distinct entries of a column, and which of them each row has; -1 for none."""
    found = array.dictionary_encode().unify_dictionaries()
    codes = [as_numpy(part.indices, np.int32, -1) for part in found.chunks]
    return found.chunk(0).dictionary.to_pylist(), np.concatenate(codes)


def label(entry: Any) -> str | None:
    """An entry as text, to name a set by; whole numbers without a point."""
    if entry is None or entry != entry:
        return None
    if isinstance(entry, bytes):
        return entry.decode("latin-1")
    return f"{entry:.15g}" if isinstance(entry, float) else str(entry)


def as_numpy(array: Any, dtype: Any, missing: float) -> Any:
    """One of Arrow's arrays, with a value for nulls. Its own `to_numpy` would load pandas."""
    validity, data = array.buffers()
    here = slice(array.offset, array.offset + len(array))
    values = np.frombuffer(data, dtype)[here] if len(array) else np.empty(0, dtype)
    if not array.null_count:
        return values
    valid = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")[here]
    return np.where(valid, values, dtype(missing))


def _floats(array: pa.ChunkedArray) -> FloatArray:
    import pyarrow as pa

    if array.type != pa.float64():  # or else Arrow would load all of its functions for nothing
        array = array.cast(pa.float64(), safe=False)
    chunks = array.chunks
    parts: list[FloatArray] = [as_numpy(part, np.float64, np.nan) for part in chunks]
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0), *parts])


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


def _read_text(array: pa.ChunkedArray) -> Column:
    """Numbers, dates, or true and false that were stored as text."""
    entries, codes = encoded(array)
    words = [word.strip() for word in entries]
    words = ["" if word in MISSING else word for word in words]
    known = [word for word in words if word]
    if not known:
        return Column(np.full(len(codes), np.nan), "number")
    if all(word.lower() in TRUTH for word in known):
        values = _spread(words, codes, lambda word: TRUTH[word.lower()])
        return Column(values, "boolean", ("holds true and false stored as text",))
    if sum(np.isfinite(_number(word)) for word in known[:FEW]) >= len(known[:FEW]) / 2:
        return _read_numbers(words, codes)
    if all(np.isfinite(_moment(word)) for word in known[:FEW]):
        seconds = _spread(words, codes, _moment)
        strange = [word for word in known if np.isnan(_moment(word))]
        if not strange:
            return Column(seconds, *_dates(seconds))
    return Column(np.empty(0), "text")


def _read_numbers(words: list[str], codes: IntArray) -> Column:
    values = _spread(words, codes, _number)
    kind = "integer" if _whole(values) else "number"
    given = _spread(words, codes, lambda word: 0.0) == 0.0  # whether there is a word at all
    strange = int((given & np.isnan(values)).sum())
    if not strange:
        return Column(values, kind, ("holds numbers stored as text",))
    example = next(word for word in words if word and np.isnan(_number(word)))
    example = repr(example if len(example) <= 20 else f"{example[:20]}…")
    if strange > (1 - NUMBERS_AT_LEAST) * given.sum():
        return Column(np.empty(0), "text", (f"mixes numbers and text, such as {example}",))
    told = f"holds numbers, and {strange:,} entries such as {example} taken as missing"
    return Column(values, kind, (told,))


def _spread(words: list[str], codes: IntArray, read: Callable[[str], float]) -> FloatArray:
    """What each row's word means; NaN for rows without one."""
    meanings = [read(word) if word else np.nan for word in words]
    return np.array([*meanings, np.nan])[codes]  # the code -1 is the last


def _number(word: str) -> float:
    try:
        return np.nan if "_" in word else float(word)  # Python allows it inside numbers
    except ValueError:
        return np.nan


def _truth(word: str) -> float:
    return TRUTH.get(word.lower(), np.nan)


def _moment(word: str) -> float:
    """Seconds since the start of 1970 of a date in ISO format."""
    try:
        found = datetime.fromisoformat(word)
    except ValueError:
        return np.nan
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
