"""What people pass in, checked once and turned into named float matrices.

Every check of the library's input lives here and every refusal has one shape: it names the
parameter, the rule, what was seen, and a way out. The rest of the library can then trust its data.
"""

from __future__ import annotations

import difflib
import math
import numbers
import reprlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cobpm.arrays import FloatArray
from cobpm.units import common_kind, row_numbers

LARGEST_EXACT = 2**53  # from here on, float64 cannot tell neighbouring integers apart
LARGEST_COUNT = 2**31 - 1  # products of two still fit into 64 bits
MOST_SETS = 2**16  # the index of a set is stored in 16 bits
ARRAY_KINDS = {"b": "boolean", "i": "integer", "u": "integer", "M": "moment"}  # of NumPy's


class InputError(ValueError):
    """Something passed to the library cannot be used; the message says what and how to mend it."""


class Seen(str):
    """Words that describe a bad value, to be printed as they are instead of quoted."""

    __slots__ = ()


_short = reprlib.Repr()
_short.maxstring = _short.maxother = 80


def _shown(value: object) -> str:
    if isinstance(value, Seen):
        return str(value)
    if isinstance(value, np.ndarray) and value.ndim:
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    return _short.repr(value.item() if isinstance(value, np.generic) else value)


def listed(names: Iterable[object], most: int = 8) -> str:
    """Names in quotes, the first few of them if there are many."""
    quoted = [f"'{name}'" for name in names]
    more = [f"and {len(quoted) - most} more"] if len(quoted) > most else []
    return ", ".join(quoted[:most] + more)


def bad(parameter: str, owner: str, rule: str, value: object, way_out: str = "") -> InputError:
    """Build the error for a parameter that breaks a rule.

    Args:
        parameter: Name of the parameter.
        owner: Name of the function it was passed to, without parentheses.
        rule: What the parameter must do or be, to follow the word "must".
        value: What was seen, shortened if long; pass `Seen(...)` to describe it in words.
        way_out: One or two sentences on what to do instead.
    """
    text = f"The '{parameter}' parameter of {owner}() must {rule}. Got {_shown(value)} instead."
    return InputError(f"{text} {way_out}".rstrip())


def bad_file(path: object, rule: str, value: object, way_out: str = "") -> InputError:
    """The same for a file that breaks a rule."""
    return InputError(f"The file '{path}' must {rule}. Got {_shown(value)}. {way_out}".rstrip())


@dataclass(frozen=True, eq=False)
class Samples:
    """Sample sets that passed every check.

    Attributes:
        names: One name per set.
        columns: One name per column, the same for all sets.
        values: One C-contiguous, finite float64 matrix (n_s, d) per set. It may share memory with
            what the user passed in, so it must never be written to.
        notices: Sentences for the user about what was changed on the way.
        kinds: What each column holds, see `cobpm.units`; empty if all hold numbers.
    """

    names: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[FloatArray, ...]
    notices: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of points of each set."""
        return tuple(len(values) for values in self.values)

    @property
    def d(self) -> int:
        """Number of columns."""
        return len(self.columns)

    def only(self, *which: int) -> Samples:
        """Some of the sets, given by their numbers."""
        names = tuple(self.names[k] for k in which)
        return replace(self, names=names, values=tuple(self.values[k] for k in which))


@dataclass(frozen=True, eq=False)
class _Table:
    """One sample on its way in."""

    values: FloatArray
    columns: tuple[str, ...] | None = None  # data frames only
    label: str | None = None  # the name of a series, which need not agree between sets
    notices: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()  # of the columns; empty if all hold numbers


def as_samples(
    sets: Samples | Mapping[Any, Any] | Sequence[Any],
    *,
    owner: str,
    names: Sequence[str] | None = None,
    parameters: Sequence[str] | None = None,
) -> Samples:
    """Check the sample sets and bring them into one form.

    Args:
        sets: The samples, in order or by name. Each is a number sequence, a matrix with a row per
            point, anything that NumPy reads as one of these, or a data frame or series. Or samples
            that passed already, as those from files have.
        owner: The function that the user called, for messages.
        names: Names of the sets; by default the keys of `sets`, or "1", "2", ...
        parameters: What the user calls each set, for messages; by default `samples[...]`.
    """
    if isinstance(sets, Samples):
        return sets
    if isinstance(sets, Mapping):
        keys, samples = list(sets), list(sets.values())
        names = [str(key) for key in keys] if names is None else names
    elif isinstance(sets, list | tuple):
        keys, samples = list(range(len(sets))), list(sets)
        names = [str(key + 1) for key in keys] if names is None else names
    else:
        rule = "be a list of samples or a dictionary {name: sample}"
        seen = Seen(f"one object of type {type(sets).__name__}")
        way_out = "For a single sample, put it in a list: [sample]."
        if owner == "pairwise":
            way_out = "For one table of all sets, say which rows belong together with groups=."
        raise bad("samples", owner, rule, seen, way_out)
    _check_names(names, len(samples), owner)
    parameters = [f"samples[{key!r}]" for key in keys] if parameters is None else parameters

    tables = [_read(sample, p, owner) for sample, p in zip(samples, parameters, strict=True)]
    columns = _common_columns(tables, parameters, owner)
    notices: list[str] = []
    for parameter, table in zip(parameters, tables, strict=True):
        notices += [f"In '{parameter}': {notice}" for notice in table.notices]
        if table.columns not in (None, columns):
            notices.append(f"In '{parameter}': columns were put in the order {listed(columns)}.")
    values = tuple(_ordered(table, columns) for table in tables)
    kinds = _common_kinds(tables, columns)
    return Samples(tuple(names), columns, values, tuple(notices), kinds)


def as_groups(table: Any, groups: Any, *, owner: str) -> Samples:
    """Divide the rows of one table into sample sets by their labels.

    Args:
        table: A data frame, or a matrix with a row per point.
        groups: Name of the column of `table` that holds the labels, or a label for each row. The
            sets are named by their labels, in ascending order where these have one.
        owner: The function that the user called, for messages.
    """
    labels = groups
    if isinstance(groups, str):
        table, labels = _without_column(table, groups, owner)
    elif hasattr(groups, "to_list") or hasattr(groups, "tolist"):  # series and arrays
        labels = groups.to_list() if hasattr(groups, "to_list") else groups.tolist()
    labels, members = _by_label(labels, owner)
    read = _read(table, "samples", owner)
    if len(labels) != len(read.values):
        seen = Seen(f"{len(labels)} labels for {len(read.values)} rows")
        raise bad("groups", owner, "have one label per row", seen)
    try:
        order = sorted(members)
    except TypeError:  # labels that cannot be compared keep the order they come in
        order = list(members)
    names = [str(label) for label in order]
    _check_names(names, len(names), owner)
    columns = read.columns or _default_columns(read.values.shape[1])
    values = tuple(read.values[members[label]] for label in order)
    return Samples(tuple(names), columns, values, read.notices, read.kinds)


def as_group_chunk(
    rows: Any, groups: str, columns: Sequence[str] | None, *, owner: str
) -> tuple[dict[str, Chunk], Chunk]:
    """The same for some of the rows of a data frame that comes in pieces; a piece may be empty.

    Args:
        rows: The piece.
        groups: Name of the column that holds the labels.
        columns: Names of the other columns; None if this is the first piece.
        owner: The function that the user called, for messages.

    Returns:
        The rows of each set by its name, and all of them.
    """
    table, labels = _without_column(rows, groups, owner)
    chunk = as_chunk(table, columns, missing="error", parameter="samples", owner=owner)
    _, members = _by_label(labels, owner)
    sets = {
        str(label): chunk._replace(values=chunk.values[chosen]) for label, chosen in members.items()
    }
    return sets, chunk


def _by_label(labels: Iterable[Any], owner: str) -> tuple[list[Any], dict[Any, list[int]]]:
    """The labels of all rows, and the rows of each label."""
    members: dict[Any, list[int]] = {}
    try:
        labels = list(labels)
        for row, label in enumerate(labels):
            members.setdefault(label, []).append(row)
    except TypeError:
        rule = "be the name of a column, or one label per row"
        raise bad("groups", owner, rule, labels) from None
    if missing := sum(len(rows) for label, rows in members.items() if _is_missing(label)):
        seen = Seen(f"{missing} of {len(labels)} rows without one")
        raise bad("groups", owner, "label every row", seen, "Drop or label these rows first.")
    return labels, members


def _is_missing(label: Any) -> bool:
    # Comparing pandas' NA has no truth value, so it is known by its type first.
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return True
    return bool(label != label)


def _without_column(table: Any, name: str, owner: str) -> tuple[Any, list[Any]]:
    """A data frame without one of its columns, and that column."""
    import narwhals as nw

    frame: Any = nw.from_native(table, pass_through=True)
    frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    if not isinstance(frame, nw.DataFrame):
        seen = Seen(f"a name, {name!r}, and samples of type {type(table).__name__}")
        way_out = "Give one label per row instead, or pass a data frame."
        raise bad("groups", owner, "name a column of a data frame", seen, way_out)
    if name not in frame.columns:
        way_out = f"The columns are {listed(frame.columns)}."
        raise bad("groups", owner, "name a column of the data frame", name, way_out)
    return frame.drop(name).to_native(), frame.get_column(name).to_list()


def as_points(points: Any, columns: Sequence[str], *, parameter: str, owner: str) -> FloatArray:
    """Check points at which a result is asked for; put their columns in the order of `columns`."""
    table, other = _read(points, parameter, owner, columns), "the fitted samples"
    made_up = tuple(columns) == _default_columns(len(columns))
    if table.columns is not None and not made_up:
        _check_same_names(table.columns, columns, other, parameter, owner)
        return _ordered(table, columns)
    _check_width(table, len(columns), other, parameter, owner)
    return table.values


class Chunk(NamedTuple):
    """Some of the rows of a table.

    Attributes:
        values: The rows with their columns in order.
        columns: Names of the columns.
        dropped: Rows that were left out.
        kinds: What the columns hold; empty if all hold numbers.
    """

    values: FloatArray
    columns: tuple[str, ...]
    dropped: int
    kinds: tuple[str, ...]


def as_chunk(
    rows: Any, columns: Sequence[str] | None, *, missing: str, parameter: str, owner: str
) -> Chunk:
    """Check some of the rows of a table that comes in pieces; a piece may be empty.

    Args:
        rows: The piece: an array or a data frame.
        columns: The columns of the table; None if this is the first piece.
        missing: "error" to refuse values that are missing or infinite, "drop" to leave out rows
            that have one.
        parameter: What the user calls the piece, for messages.
        owner: The function that the user called, for messages.
    """
    table, other = _read_table(rows, parameter, owner, columns or ()), "the rows before"
    own = table.columns or ((table.label,) if table.label else None)
    if columns is None:
        columns = own or _default_columns(table.values.shape[1])
    elif table.columns is not None and tuple(columns) != _default_columns(len(columns)):
        _check_same_names(table.columns, columns, other, parameter, owner)
    else:
        _check_width(table, len(columns), other, parameter, owner)
    dropped = 0
    if missing == "drop":
        whole = np.asarray(np.isfinite(table.values).all(axis=1))
        dropped = len(whole) - int(np.count_nonzero(whole))
        table = replace(table, values=table.values[whole]) if dropped else table
    _check_finite(table, parameter, owner)
    if table.columns is None or set(table.columns) != set(columns):
        return Chunk(table.values, tuple(columns), dropped, table.kinds)
    kinds = _common_kinds([table], tuple(columns))
    return Chunk(_ordered(table, columns), tuple(columns), dropped, kinds)


def check_missing(missing: Any, *, owner: str) -> str:
    """What to do with rows that have missing values."""
    return check_choice(missing, ("error", "drop"), parameter="missing", owner=owner)


def check_limits(bounds: Any, columns: Sequence[str], *, owner: str) -> FloatArray:
    """Read limits of all columns, which points may lie beyond; forms as in `check_bounds`."""
    pairs = _read_bounds(bounds, columns, "bounds", owner)
    for column, (low, high) in zip(columns, pairs, strict=True):
        if not -math.inf < low < high < math.inf:
            seen = Seen(f"({low:g}, {high:g}) for column '{column}'")
            way_out = "Values beyond the bounds will count at their ends."
            if math.isnan(low):
                seen = Seen(f"none for column '{column}'")
            raise bad("bounds", owner, "be finite pairs with low < high", seen, way_out)
    return pairs


def _check_names(names: Sequence[str], count: int, owner: str) -> None:
    if not 1 <= count <= MOST_SETS:
        raise bad("samples", owner, f"hold 1 to {MOST_SETS} samples", Seen(f"{count} samples"))
    if len(names) != count:
        raise bad("names", owner, f"name each of the {count} samples", Seen(f"{len(names)} names"))
    if twice := repeated(names):
        seen = Seen(f"{listed(twice)} more than once")
        raise bad("samples", owner, "have names that differ as text", seen, "Rename one of them.")


def repeated(names: Iterable[str]) -> list[str]:
    """Names that come more than once."""
    return [name for name, count in Counter(names).items() if count > 1]


def _default_columns(d: int) -> tuple[str, ...]:
    return tuple(f"c{j + 1}" for j in range(d))


def _common_columns(tables: list[_Table], parameters: Sequence[str], owner: str) -> tuple[str, ...]:
    """Find the column names that all sets share, or say where they disagree."""
    # The first data frame names the columns; without one, the first set says how many there are.
    leader = next((i for i, table in enumerate(tables) if table.columns is not None), 0)
    columns, other = tables[leader].columns, f"'{parameters[leader]}'"
    for table, parameter in zip(tables, parameters, strict=True):
        if table.columns is not None and columns is not None:
            _check_same_names(table.columns, columns, other, parameter, owner)
        _check_width(table, tables[leader].values.shape[1], other, parameter, owner)
    if columns is not None:
        return columns
    # Comparing df["before"] with df["after"] is fine: their shared column just has no name.
    labels = {table.label for table in tables if table.label is not None}
    return (labels.pop(),) if len(labels) == 1 else _default_columns(tables[0].values.shape[1])


def _common_kinds(tables: list[_Table], columns: Sequence[str]) -> tuple[str, ...]:
    found = []
    for j, name in enumerate(columns):
        own = [t.columns.index(name) if t.columns is not None else j for t in tables]
        pairs = zip(tables, own, strict=True)
        found.append(common_kind(t.kinds[k] if t.kinds else "number" for t, k in pairs))
    return tuple(found) if set(found) != {"number"} else ()


def _check_width(table: _Table, d: int, other: str, parameter: str, owner: str) -> None:
    width = table.values.shape[1]
    if width != d:
        rule = f"have as many columns as {other}: {d}"
        way_out = "A row holds one point; a flat sequence is read as many points in one column."
        raise bad(parameter, owner, rule, Seen(f"{width} column{'s' * (width != 1)}"), way_out)


def _check_same_names(
    names: Sequence[str], wanted: Sequence[str], other: str, parameter: str, owner: str
) -> None:
    extra = [name for name in names if name not in wanted]
    missing = [name for name in wanted if name not in names]
    if extra or missing:
        parts = [f"{listed(extra)} only in '{parameter}'"] if extra else []
        parts += [f"{listed(missing)} only in {other}"] if missing else []
        rule = f"have the same columns as {other}"
        way_out = "Select or rename columns so that the names agree; their order does not matter."
        raise bad(parameter, owner, rule, Seen(" and ".join(parts)), way_out)


def _ordered(table: _Table, columns: Sequence[str]) -> FloatArray:
    if table.columns in (None, tuple(columns)):
        return table.values
    return np.ascontiguousarray(table.values[:, [table.columns.index(name) for name in columns]])


def _read(sample: Any, parameter: str, owner: str, wanted: Iterable[str] = ()) -> _Table:
    """Turn one sample into a finite float64 matrix, with its column names if it has any."""
    table = _read_table(sample, parameter, owner, wanted)
    if table.values.size == 0:
        seen = Seen("an empty sample ({} rows, {} columns)".format(*table.values.shape))
        way_out = "Check the filter or selection that produced it."
        raise bad(parameter, owner, "hold at least one point and one column", seen, way_out)
    _check_finite(table, parameter, owner)
    return table


def _read_table(sample: Any, parameter: str, owner: str, wanted: Iterable[str] = ()) -> _Table:
    """The same for a sample that may be empty or have values that are not finite."""
    if isinstance(sample, np.ndarray | list | tuple | numbers.Number | str | bytes):
        return _read_array(sample, parameter, owner)
    if hasattr(sample, "toarray") and hasattr(sample, "nnz"):
        seen = Seen(f"a sparse {type(sample).__name__}")
        way_out = f"Convert it first: {parameter}.toarray()."
        raise bad(parameter, owner, "be a dense array or a data frame", seen, way_out)
    return _read_frame(sample, parameter, owner, wanted) or _read_array(sample, parameter, owner)


def _read_array(sample: Any, parameter: str, owner: str) -> _Table:
    rule = "be a sequence of numbers or a matrix with one row per point"
    try:
        array = np.asanyarray(sample)
    except (TypeError, ValueError, RuntimeError) as error:
        seen = Seen(f"{_shown(sample)} ({str(error).rstrip('.')})")
        raise bad(parameter, owner, rule, seen) from None
    if np.ma.is_masked(array):
        seen = Seen(f"{np.count_nonzero(np.ma.getmaskarray(array))} masked entries")
        way_out = f"Drop or fill them first, e.g. {parameter}.filled(value)."
        raise bad(parameter, owner, "have no missing values", seen, way_out)
    if array.ndim == 0:
        raise bad(parameter, owner, rule, sample)
    if array.ndim > 2:
        seen = Seen(f"an array of shape {array.shape}")
        way_out = f"Bring it to shape (n, d) first, e.g. {parameter}.reshape(len({parameter}), -1)."
        raise bad(parameter, owner, rule, seen, way_out)
    values, notices = _as_float(np.asarray(array), f"'{parameter}'", parameter, owner)
    matrix = values[:, np.newaxis] if values.ndim == 1 else values
    kind = ARRAY_KINDS.get(np.asarray(array).dtype.kind, "number")
    kinds = (kind,) * matrix.shape[1] if kind != "number" else ()
    return _Table(np.ascontiguousarray(matrix), notices=notices, kinds=kinds)


def _as_float(
    array: NDArray[Any], where: str, parameter: str, owner: str
) -> tuple[FloatArray, tuple[str, ...]]:
    """Convert real numbers of any kind to float64; `where` names the array in messages."""
    rule, kind, way_out = "hold real numbers only", array.dtype.kind, "Convert to numbers first."
    notices: tuple[str, ...] = ()
    if kind in "mM":
        notices = (_time_notice(where, kind == "M"),)
        zero = np.zeros((), array.dtype) if kind == "m" else np.datetime64(0, "us")
        array = (array - zero) / np.timedelta64(1, "s")  # not-a-time becomes NaN
    elif kind == "O":
        wrong = next((v for v in array.flat if isinstance(v, str | bytes | complex)), None)
        if wrong is not None:
            raise bad(parameter, owner, rule, Seen(f"{_shown(wrong)} in {where}"), way_out)
    elif kind not in "biuf":
        names = {"c": "complex numbers", "U": "text", "S": "text", "T": "text"}
        seen = Seen(f"{names.get(kind, f'values of type {array.dtype}')} in {where}")
        way_out = "Pass real and imaginary parts as two columns." if kind == "c" else way_out
        raise bad(parameter, owner, rule, seen, way_out)
    try:
        with np.errstate(over="ignore"):  # what is too large becomes inf, which is refused later
            values = np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        seen = Seen(f"something else in {where} ({str(error).rstrip('.')})")
        raise bad(parameter, owner, rule, seen, way_out) from None
    whole = kind in "iu" or (kind == "O" and all(isinstance(v, int) for v in array.flat))
    return values, notices + _rounding_notice(values, where, whole)


def _time_notice(where: str, dated: bool) -> str:
    kind, since = ("dates", " since the start of 1970 (UTC)") if dated else ("durations", "")
    return f"the {kind} in {where} were read as seconds{since}."


def _rounding_notice(values: FloatArray, where: str, whole: bool) -> tuple[str, ...]:
    if not whole or np.nanmax(np.abs(values), initial=0.0) < LARGEST_EXACT:
        return ()
    return (
        f"integers in {where} reach 2^53 and were rounded to the nearest float64. "
        "Subtract a common offset first if their last digits matter.",
    )


def _check_finite(table: _Table, parameter: str, owner: str) -> None:
    finite = np.isfinite(table.values)
    if finite.all():
        return
    width, nan = finite.shape[1], int(np.isnan(table.values).sum())
    infinite = int((~finite).sum()) - nan
    counts = [f"{nan} missing (NaN)"] * (nan > 0) + [f"{infinite} infinite"] * (infinite > 0)
    names = table.columns or ((table.label,) if table.label else _default_columns(width))
    rows, columns = np.nonzero(~finite)
    place = f"column {listed(names[j] for j in np.unique(columns))}; first in row {rows[0]}"
    seen = Seen(f"{' and '.join(counts)} of {finite.size} values ({place})")
    cure = f"{parameter}[np.isfinite({parameter}){'.all(axis=1)' * (width > 1)}]"
    if table.columns or table.label:
        cure = f"{parameter}.dropna() in pandas or {parameter}.drop_nulls().drop_nans() in polars"
    way_out = f"Drop or fill them first, e.g. {cure}."
    raise bad(parameter, owner, "hold finite numbers only", seen, way_out)


def _read_frame(sample: Any, parameter: str, owner: str, wanted: Iterable[str]) -> _Table | None:
    """Read a data frame or series of any library that narwhals knows; None if it is neither.

    Row numbers are left out unless they are wanted.
    """
    import narwhals as nw  # only here and below: most input is arrays, and imports take time

    try:
        frame: Any = nw.from_native(sample, allow_series=True, pass_through=True)
        frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
        if not isinstance(frame, nw.Series | nw.DataFrame):
            return None
    except nw.exceptions.DuplicateError:
        frame = sample  # with repeated column names; refused below
    if isinstance(frame, nw.Series):
        label = None if frame.name in (None, "") else str(frame.name)
        names, series, left_out = [label or "c1"], [frame], []
    else:
        names = [str(name) for name in frame.columns]
    if twice := repeated(names):
        seen = Seen(f"{listed(twice)} more than once")
        raise bad(parameter, owner, "have distinct column names", seen, "Rename or drop columns.")
    if isinstance(frame, nw.DataFrame):
        series = [frame.get_column(name) for name in frame.columns]
        whole = {n: s.dtype.is_integer() for n, s in zip(names, series, strict=True)}
        left_out = row_numbers(whole, wanted)
        series = [s for n, s in zip(names, series, strict=True) if n not in left_out]
        names = [name for name in names if name not in left_out]

    readable = (nw.Boolean, nw.Date, nw.Datetime, nw.Duration, nw.Object, nw.Unknown)
    wrong = [
        f"{name} ({column.dtype})"
        for name, column in zip(names, series, strict=True)
        if not (column.dtype.is_numeric() or isinstance(column.dtype, readable))
    ]
    if wrong:
        way_out = "Select numeric columns first, or encode the others as numbers."
        raise bad(parameter, owner, "have numeric columns only", Seen(listed(wrong)), way_out)

    values = np.empty((len(frame), len(names)))
    notices = [f"row numbers in {listed(left_out)} were left out."] if left_out else []
    for j, (name, column) in enumerate(zip(names, series, strict=True)):
        values[:, j], said = _read_column(column, f"column '{name}'", parameter, owner)
        notices += said
    kinds = tuple(_kind(column.dtype) for column in series)
    if isinstance(frame, nw.Series):
        return _Table(values, label=label, notices=tuple(notices), kinds=kinds)
    return _Table(values, columns=tuple(names), notices=tuple(notices), kinds=kinds)


def _kind(dtype: Any) -> str:
    """What a column of a data frame holds."""
    import narwhals as nw

    if dtype.is_integer():
        return "integer"
    kinds = {nw.Boolean: "boolean", nw.Date: "date", nw.Datetime: "moment"}
    return next((kind for one, kind in kinds.items() if isinstance(dtype, one)), "number")


def _read_column(
    column: Any, where: str, parameter: str, owner: str
) -> tuple[FloatArray, tuple[str, ...]]:
    import narwhals as nw

    if isinstance(column.dtype, nw.Object | nw.Unknown):
        return _as_float(np.asarray(column.to_numpy(), dtype=object), where, parameter, owner)
    if isinstance(column.dtype, nw.Duration):
        return column.dt.total_microseconds().to_numpy() / 1e6, (_time_notice(where, False),)
    if isinstance(column.dtype, nw.Date | nw.Datetime):
        times = column.cast(nw.Datetime) if isinstance(column.dtype, nw.Date) else column
        return times.dt.timestamp("us").to_numpy() / 1e6, (_time_notice(where, True),)
    # Arrow refuses to cast integers that float64 cannot hold exactly; NumPy rounds them.
    exact = isinstance(column.dtype, nw.Int64 | nw.UInt64)
    values = np.asarray((column if exact else column.cast(nw.Float64)).to_numpy(), dtype=np.float64)
    return values, _rounding_notice(values, where, column.dtype.is_integer())


def _real(value: Any) -> float:
    """Read a real number; anything else, booleans included, becomes NaN and fails every check."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def check_choice(value: object, choices: Iterable[str], *, parameter: str, owner: str) -> str:
    """Return `value` if it is one of `choices`."""
    choices = list(choices)
    if isinstance(value, str) and value in choices:
        return value
    close = difflib.get_close_matches(value.lower(), choices, 1) if isinstance(value, str) else []
    rule = f"be one of {listed(choices, most=len(choices))}"
    raise bad(parameter, owner, rule, value, f"Did you mean '{close[0]}'?" if close else "")


def check_positive(value: Any, *, parameter: str, owner: str, way_out: str = "") -> float:
    """Return a finite number above zero as a float."""
    if 0 < _real(value) < math.inf:
        return float(value)
    raise bad(parameter, owner, "be a positive number", value, way_out)


def check_count(
    value: Any, *, minimum: int = 1, parameter: str, owner: str, way_out: str = ""
) -> int:
    """Return a whole number of at least `minimum` as an int."""
    if minimum <= _real(value) <= LARGEST_COUNT and value == int(value):
        return int(value)
    if math.inf > _real(value) > LARGEST_COUNT:
        raise bad(parameter, owner, f"be at most {LARGEST_COUNT:,}", value, way_out)
    raise bad(parameter, owner, f"be a whole number of at least {minimum}", value, way_out)


def check_level(level: Any, *, parameter: str = "level", owner: str) -> float:
    """Return the probability that an interval is to hold, strictly between 0 and 1."""
    if 0 < _real(level) < 1:
        return float(level)
    percent = 50 <= _real(level) < 100
    way_out = f"Did you mean {level / 100:g}?" if percent else "0.9 means a 90% interval."
    raise bad(parameter, owner, "be a number between 0 and 1, both excluded", level, way_out)


def check_rng(rng: Any, *, parameter: str = "rng", owner: str) -> np.random.Generator:
    """Return the random generator that `rng` is or seeds."""
    is_seed = isinstance(rng, int | np.integer) and not isinstance(rng, bool) and rng >= 0
    kinds = np.random.SeedSequence | np.random.BitGenerator | np.random.Generator
    if rng is None or is_seed or isinstance(rng, kinds):
        return np.random.default_rng(rng)
    rule = "be None, a non-negative integer, a SeedSequence, a BitGenerator or a Generator"
    raise bad(parameter, owner, rule, rng, "np.random.default_rng(seed) makes a Generator.")


def check_bounds(
    bounds: Any, samples: Samples, *, parameter: str = "bounds", owner: str
) -> Literal["ranks"] | FloatArray | None:
    """Read the limits of the space that the points live in.

    `bounds` is None (the pooled range of each column), "ranks", or one of:

    * a pair `(low, high)` of numbers, for every column, or of sequences with a number per column;
    * a sequence of one pair `(low, high)` per column. With two columns a 2 x 2 nested sequence is
      read this way: `((low1, high1), (low2, high2))`;
    * a dictionary from column names to pairs; columns left out keep their pooled range.

    Returns:
        None, "ranks", or an array (d, 2) in which NaN stands for the pooled range.
    """
    if bounds is None:
        return None
    if isinstance(bounds, str) and bounds == "ranks":
        return "ranks"
    pairs = _read_bounds(bounds, samples.columns, parameter, owner)
    for column, (low, high) in zip(samples.columns, pairs, strict=True):
        if not math.isnan(low) and not -math.inf < low < high < math.inf:
            seen = Seen(f"({low:g}, {high:g}) for column '{column}'")
            way_out = "bounds=None takes the range of the points; bounds='ranks' needs no range."
            raise bad(parameter, owner, "be finite pairs with low < high", seen, way_out)
    outside = []
    for name, values in zip(samples.names, samples.values, strict=True):
        lowest, highest = values.min(axis=0), values.max(axis=0)
        for j in np.flatnonzero((lowest < pairs[:, 0]) | (highest > pairs[:, 1])):
            low, high = pairs[j]
            count = np.count_nonzero((values[:, j] < low) | (values[:, j] > high))
            outside.append(
                f"{count} of {len(values)} points of '{name}' outside [{low:g}, {high:g}] in column"
                f" '{samples.columns[j]}' (range {lowest[j]:g} to {highest[j]:g})"
            )
    if outside:
        seen = Seen("; ".join(outside[:4]) + "; ..." * (len(outside) > 4))
        way_out = "Widen the bounds, clip or drop those points, or use bounds=None."
        raise bad(parameter, owner, "contain every point", seen, way_out)
    return pairs


def _read_bounds(bounds: Any, columns: Sequence[str], parameter: str, owner: str) -> FloatArray:
    d, by_name = len(columns), isinstance(bounds, Mapping)
    if unknown := [key for key in bounds if str(key) not in columns] if by_name else []:
        rule = f"name columns out of {listed(columns)}"
        raise bad(parameter, owner, rule, Seen(listed(unknown)), "Columns may be left out.")
    chosen = [columns.index(str(key)) for key in bounds] if by_name else list(range(d))
    pairs = np.full((d, 2), np.nan)
    try:
        rows = [np.asarray(row) for row in (bounds.values() if by_name else bounds)]
        if not by_name and (len(rows) != d or any(row.shape != (2,) for row in rows)):
            low, high = rows  # one pair for all, or a sequence of lows and one of highs
            rows = list(np.stack([np.broadcast_to(low, d), np.broadcast_to(high, d)], axis=1))
        for j, (low, high) in zip(chosen, rows, strict=True):
            pairs[j] = [_real(np.asarray(end).item()) for end in (low, high)]
        if np.isnan(pairs[chosen]).any():
            raise ValueError
    except (TypeError, ValueError):
        rule = f"be None, 'ranks', (low, high), {d} such pairs, or pairs by column name"
        way_out = "Did you mean 'ranks'?" if isinstance(bounds, str) else "Every end is a number."
        raise bad(parameter, owner, rule, bounds, way_out) from None
    return pairs


def check_priors(priors: Any, count: int, *, parameter: str = "priors", owner: str) -> FloatArray:
    """Return the probabilities of `count` classes."""
    try:
        values = np.array([_real(prior) for prior in priors])
    except TypeError:
        values = np.array([])
    if len(values) == count and (values >= 0).all() and math.isclose(values.sum(), 1.0):
        return values
    seen = priors if len(values) != count else Seen(f"{priors!r}, whose sum is {values.sum():g}")
    raise bad(parameter, owner, f"hold {count} probabilities that sum to 1", seen, "One per class.")


def check_random_state(
    random_state: Any, *, parameter: str = "random_state", owner: str
) -> np.random.Generator:
    """Return the generator that `random_state` is or seeds; a RandomState gives a seed."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return check_rng(random_state, parameter=parameter, owner=owner)


def check_sets(sets: Any, *, parameter: str = "X", owner: str) -> list[Any]:
    """Return a list of sample sets; a single table of numbers is none."""
    shape = getattr(sets, "shape", None)
    is_list = isinstance(sets, list | tuple) or (shape is not None and len(shape) in (1, 3))
    if is_list and len(sets) > 0 and not isinstance(sets[0], numbers.Number | str):
        return list(sets)
    seen = Seen(f"a {type(sets).__name__}" + (f" of shape {shape}" if shape is not None else ""))
    way_out = "An observation is a whole set here: an array or a data frame with a row per point."
    raise bad(parameter, owner, "be a list of sample sets", seen, way_out)
