"""From tables to sample sets: which columns, which rows, and what happens to missing values."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from cobpm.arrays import BoolArray, IntArray
from cobpm.columns import Column, encoded, label, read_column
from cobpm.files import STANDARD_INPUT, Table, read_table
from cobpm.samples import InputError, Samples, Seen, bad, bad_file, listed
from cobpm.units import common_kind, row_numbers

if TYPE_CHECKING:
    import pyarrow as pa

MOSTLY_MISSING = 0.2  # a column that lacks more of its values is left out
MOST_DROPPED = 0.5  # rows of a set that may go for missing values
LITTLE = ("true", "false", "yes", "no", "on", "off")  # labels that say little by themselves
BACKWARDS = 0.01  # steps against the rest, in a column that is still in order


@dataclass(frozen=True)
class Choice:
    """What to take from tables.

    Attributes:
        columns: Names of the columns to use; all if there are none.
        exclude: Names of the columns to leave out.
        missing: "drop" rows with missing values, or treat them as an "error".
    """

    columns: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    missing: str = "drop"


@dataclass(frozen=True, eq=False)
class RawSet:
    """Some rows of a table, with gaps."""

    name: str
    columns: dict[str, Column]
    rows: int


# --- from files to sets --------------------------------------------------------------------------


def from_files(
    paths: Sequence[str], choice: Choice, said: Callable[[str], None] = lambda path: None
) -> Samples:
    """One set per file, of the columns that all have.

    Args:
        paths: The files; "-" is standard input.
        choice: Which columns, and what to do about missing values.
        said: Told the path of each file before it is read.
    """
    if paths.count(STANDARD_INPUT) > 1:
        raise InputError("Standard input ('-') can be read only once.")
    tables = []
    for path in paths:
        said(path)
        tables.append(read_table(path))
    tables = _with_names(tables)
    choice = _checked(tables, choice)
    notices = _file_notices(tables)
    chosen = _chosen(tables, choice, notices)
    names = set_names([Path(path) for path in paths])
    raw = [
        RawSet(name, {c: read_column(c, table.columns[c]) for c in chosen}, table.rows)
        for name, table in zip(names, tables, strict=True)
    ]
    return complete(raw, choice, notices)


@dataclass(frozen=True)
class Agreement:
    """What tables that are read piece by piece have in common.

    Attributes:
        columns: The columns to use.
        kinds: What they hold, see `cobpm.units`.
        own: For each table, what it calls them.
        readings: For each table, what each of them holds there.
        notices: Sentences for the user.
    """

    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    own: tuple[tuple[str, ...], ...]
    readings: tuple[tuple[str, ...], ...]
    notices: tuple[str, ...]


def agree(beginnings: Sequence[Table], choice: Choice) -> Agreement:
    """Choose columns by the first rows of each table.

    The rules are those of `from_files`, but for dates: these are left out unless they were asked
    for, since rows that come day by day would differ in them and in nothing else.
    """
    tables = _with_names(list(beginnings))
    choice = _checked(tables, choice)
    notices = _file_notices(tables)
    chosen = _chosen(tables, choice, notices)
    raw = [
        RawSet(table.path, {c: read_column(c, table.columns[c]) for c in chosen}, table.rows)
        for table in tables
    ]
    names = _without_gaps(raw, _numbers_only(raw, choice, notices), choice, notices)
    kinds = {name: common_kind(one.columns[name].kind for one in raw) for name in names}
    dates = [n for n in names if kinds[n] in ("date", "moment") and n not in choice.columns]
    if dates and len(dates) < len(names):
        them = _them(dates)
        notices.append(f"Dates, left out: {listed(dates)}. --columns can name {them}.")
        names = [name for name in names if name not in dates]
    for name in names:
        for told in dict.fromkeys(told for one in raw for told in one.columns[name].told):
            if "entries such as" not in told:  # these are counted as they come
                notices.append(f"Column '{name}' {told}.")
    places = [[list(table.columns).index(name) for name in names] for table in tables]
    return Agreement(
        tuple(names),
        tuple(kinds[name] for name in names),
        tuple(
            tuple(list(table.columns)[k] for k in own)
            for table, own in zip(beginnings, places, strict=True)
        ),
        tuple(tuple(one.columns[name].kind for name in names) for one in raw),
        tuple(notices),
    )


def from_groups(
    table: Table,
    column: str,
    choice: Choice,
    *,
    option: str = "group-by",
    between: tuple[str, str] | None = None,
) -> Samples:
    """One set per value of a column.

    Args:
        table: The table.
        column: The column with the labels, which is used for nothing else.
        choice: Which columns, and what to do about missing values.
        option: What the user calls the column. With "split-by" there must be two sets.
        between: Labels of two sets, to use these alone.
    """
    _known([column], list(table.columns), option, table)
    choice = _checked([table], choice)
    rows = _rows_by_label(table.columns[column])
    notices = _file_notices([table])
    if unlabelled := table.rows - sum(map(len, rows.values())):
        notices.append(f"Left out because '{column}' is missing: {_rows(unlabelled)}.")
    if between is not None:
        for name in between:
            if name not in rows:
                way_out = f"Its values are {_counted(rows)}."
                raise bad("between", "compare", f"name values of '{column}'", name, way_out)
        rows = {name: rows[name] for name in between}
    if len(rows) < 2 or (len(rows) > 2 and option == "split-by"):
        counted = "exactly two" if option == "split-by" else "at least two"
        seen = Seen(f"{len(rows):,} in '{column}': {_counted(rows)}")
        two = " ".join(f"'{name}'" for name in list(rows)[:2])
        way_out = f"Choose two with --between {two}, or see all pairs: cobpm pairwise --group-by."
        way_out = way_out if len(rows) > 2 else "One set cannot be compared."
        raise bad(option, "compare", f"name a column with {counted} values", seen, way_out)
    chosen = _chosen([table], replace(choice, exclude=(*choice.exclude, column)), notices)
    whole = {name: read_column(name, table.columns[name]) for name in chosen}
    named = option == "split-by" and all(map(_says_little, rows))
    raw = [
        RawSet(
            f"{column} {value}" if named else value,
            {name: one.at(own) for name, one in whole.items()},
            len(own),
        )
        for value, own in rows.items()
    ]
    return complete(raw, choice, notices)


def _says_little(value: str) -> bool:
    """Whether a label needs the name of its column beside it: a number, true, yes, m."""
    return value.lower() in LITTLE or len(value) == 1 or value.replace(".", "").isdigit()


def _rows_by_label(column: pa.ChunkedArray) -> dict[str, IntArray]:
    """The numbers of the rows with each label, in the order of the labels."""
    entries, codes = encoded(column)
    labels = [label(entry) for entry in entries]
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(len(labels) + 1))
    spans = zip(labels, ends[:-1], ends[1:], strict=True)
    rows = {name: order[first:last] for name, first, last in spans if name is not None}
    try:
        names = sorted(rows, key=float)
    except ValueError:
        names = sorted(rows)
    return {name: rows[name] for name in names}


def from_row(table: Table, at: float, choice: Choice) -> Samples:
    """The rows before a row, and those from it on.

    Args:
        table: The table.
        at: The number of rows in the first set, or below 1 the share of them.
        choice: Which columns, and what to do about missing values. Columns in ascending or
            descending order throughout, such as a row number or the time, are left out unless they
            were asked for: they would tell any two such sets apart. A step in a hundred may go
            the other way.
    """
    choice = _checked([table], choice)
    first = round(at * table.rows) if 0 < at < 1 else int(at)
    if not 0 < first < table.rows or (at >= 1 and at != first):
        rule = f"be a row from 1 to {table.rows - 1:,}, or a share between 0 and 1"
        raise bad("split-at", "compare", rule, Seen(f"{at:.12g}"))
    notices = _file_notices([table])
    chosen = _chosen([table], choice, notices)
    whole = {name: read_column(name, table.columns[name]) for name in chosen}
    sorted_ones = [
        name for name, one in whole.items() if name not in choice.columns and _in_order(one)
    ]
    if sorted_ones and len(sorted_ones) < sum(column.usable for column in whole.values()):
        notices.append(
            f"{_columns(sorted_ones)} in order from the first row to the last, which tells any two "
            f"parts of a file apart, and left out. To keep {_them(sorted_ones)}, name all columns "
            "to use with --columns."
        )
        whole = {name: one for name, one in whole.items() if name not in sorted_ones}
    names = ("first half", "second half")
    if at != 0.5:
        names = f"rows 1 to {first:,}", f"rows {first + 1:,} to {table.rows:,}"
    parts = slice(0, first), slice(first, table.rows)
    raw = [
        RawSet(name, {c: one.at(part) for c, one in whole.items()}, part.stop - part.start)
        for name, part in zip(names, parts, strict=True)
    ]
    return complete(raw, choice, notices)


def _in_order(column: Column) -> bool:
    """Whether nearly all steps from row to row go the same way, as those of a clock do."""
    if not column.usable:
        return False
    steps = np.diff(column.values[~column.missing])
    up, down = np.count_nonzero(steps > 0), np.count_nonzero(steps < 0)
    return bool(max(up, down) > 0 and min(up, down) <= BACKWARDS * max(up, down))


def _with_names(tables: list[Table]) -> list[Table]:
    """Give columns without names those of another file with as many."""
    leader = next((table for table in tables if table.named), tables[0])
    names, found = list(leader.columns), []
    for table in tables:
        if not table.named:
            if len(table.columns) != len(names):
                rule = f"have as many columns as '{leader.path}': {len(names)}"
                raise bad_file(table.path, rule, Seen(f"{len(table.columns)}"))
            if leader.named:
                said = (*table.notices, f"has its columns named as those of '{leader.path}'")
                columns = dict(zip(names, table.columns.values(), strict=True))
                table = replace(table, columns=columns, notices=said)
        found.append(table)
    return found


def _file_notices(tables: Sequence[Table]) -> list[str]:
    return [f"'{table.path}' {told}." for table in tables for told in table.notices]


def set_names(paths: Sequence[Path]) -> list[str]:
    """File names without endings, or as much of the paths as makes them differ."""
    if len(paths) > 1 and len({str(path) for path in paths}) < len(paths):
        raise InputError("The same file was given twice; two sets need two files.")
    for name in (_stem, lambda path: path.name, str):
        names = [name(path) for path in paths]
        if len(set(names)) == len(names):
            break
    return names


def _stem(path: Path) -> str:
    return "standard input" if str(path) == STANDARD_INPUT else path.name.split(".")[0] or path.name


def _rows(count: int) -> str:
    return f"{count:,} row{'s' * (count != 1)}"


def _counted(rows: dict[str, IntArray], most: int = 8) -> str:
    shown = [f"'{name}' ({_rows(len(own))})" for name, own in list(rows.items())[:most]]
    more = [f"and {len(rows) - most:,} more"] if len(rows) > most else []
    return ", ".join(shown + more)


# --- columns -------------------------------------------------------------------------------------


def _known(names: Sequence[str], known: Sequence[str], option: str, table: Table) -> None:
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f"Did you mean '{close[0]}'? " if close else ""
            rule = f"name columns of '{table.path}'"
            raise bad(option, "compare", rule, name, f"{hint}It has {listed(known, most=20)}.")


def _checked(tables: Sequence[Table], choice: Choice) -> Choice:
    """Take lists of names apart, "a,b", and check them against the tables."""
    anywhere = list(dict.fromkeys(name for table in tables for name in table.columns))

    def names(given: Sequence[str]) -> tuple[str, ...]:
        parts = [[item] if item in anywhere else item.split(",") for item in given]
        return tuple(name if name in anywhere else name.strip() for part in parts for name in part)

    chosen = replace(choice, columns=names(choice.columns), exclude=names(choice.exclude))
    for table in tables:
        _known(chosen.columns, list(table.columns), "columns", table)
    _known([n for n in chosen.exclude if n not in anywhere], anywhere, "exclude", tables[0])
    return chosen


def _chosen(tables: Sequence[Table], choice: Choice, notices: list[str]) -> list[str]:
    """The columns that all tables have and the user wants."""
    anywhere = list(dict.fromkeys(name for table in tables for name in table.columns))
    everywhere = [name for name in anywhere if all(name in table.columns for table in tables)]
    if not everywhere:
        _refuse_strangers(tables)
    alone = [n for n in anywhere if n not in everywhere and n not in choice.exclude]
    if alone and not choice.columns:
        notices.append(f"Left out because not every file has {_them(alone)}: {listed(alone)}.")
    chosen = [name for name in choice.columns or everywhere if name not in choice.exclude]
    whole = {name: all(_is_whole(table.columns[name]) for table in tables) for name in chosen}
    if numbers := row_numbers(whole, choice.columns):
        notices.append(f"Row numbers, left out: {listed(numbers)}.")
        chosen = [name for name in chosen if name not in numbers]
    if not chosen:
        raise bad("exclude", "compare", "leave at least one column", Seen("none left"))
    return list(dict.fromkeys(chosen))


def _is_whole(column: pa.ChunkedArray) -> bool:
    from pyarrow import types

    return bool(types.is_integer(column.type))


def _refuse_strangers(tables: Sequence[Table]) -> NoReturn:
    """Name the first file that has no column which all before it have."""
    common = list(tables[0].columns)
    for k, table in enumerate(tables[1:]):
        if not (kept := [name for name in common if name in table.columns]):
            before = f"'{tables[0].path}'" if k == 0 else "the files before it"
            seen = Seen(f"{listed(table.columns)} instead of {listed(common)}")
            rule = f"have columns in common with {before}"
            raise bad_file(table.path, rule, seen, "Rename columns so that they agree.")
        common = kept
    raise AssertionError("the tables have columns in common")


def _them(names: Sequence[str]) -> str:
    return "it" if len(names) == 1 else "them"


def _columns(names: Sequence[str]) -> str:
    return f"Column {listed(names)} is" if len(names) == 1 else f"Columns {listed(names)} are"


# --- rows ----------------------------------------------------------------------------------------


def complete(raw: list[RawSet], choice: Choice, notices: list[str]) -> Samples:
    """Leave out what is no number or mostly missing, then the rows that still have gaps."""
    names = _numbers_only(raw, choice, notices)
    names = _without_gaps(raw, names, choice, notices)
    keep = [_complete_rows(one, names) for one in raw]
    if choice.missing == "error":
        _refuse_gaps(raw, names, keep)
    _tell_dropped(raw, names, keep, notices)
    names = _without_giveaways(raw, names, keep, choice, notices)
    kinds = [common_kind(one.columns[name].kind for one in raw) for name in names]
    for name in names:
        for told in dict.fromkeys(told for one in raw for told in one.columns[name].told):
            notices.append(f"Column '{name}' {told}.")
    values = tuple(
        np.column_stack([one.columns[name].values[rows] for name in names])
        for one, rows in zip(raw, keep, strict=True)
    )
    return Samples(
        tuple(one.name for one in raw), tuple(names), values, tuple(notices), tuple(kinds)
    )


def _numbers_only(raw: list[RawSet], choice: Choice, notices: list[str]) -> list[str]:
    kinds = {name: [one.columns[name].kind for one in raw] for name in raw[0].columns}
    text = [name for name, found in kinds.items() if set(found) & {"text"}]
    nested = [n for n, found in kinds.items() if set(found) & {"nested"} and n not in text]
    mixed = []
    for name in text:
        told = [told for one in raw for told in one.columns[name].told]
        numeric = [one.name for one in raw if one.columns[name].usable]
        if told or numeric:
            mixed.append(name)
            why = told[0] if told else f"is text, though not in '{numeric[0]}'"
            notices.append(f"Column '{name}' {why}, and was left out.")
    plain = [name for name in text if name not in mixed]
    for names, what in ((plain, "Text"), (nested, "Nested values")):
        if names:
            notices.append(f"{what}, left out: {listed(names)}.")
    usable = [name for name in kinds if name not in text and name not in nested]
    dated = [n for n in usable if 0 < sum(k in ("date", "moment") for k in kinds[n]) < len(raw)]
    if dated:
        notices.append(f"Dates in one set and numbers in another, left out: {listed(dated)}.")
    usable = [name for name in usable if name not in dated]
    if asked := [name for name in choice.columns if name not in usable]:
        raise bad("columns", "compare", "name columns of numbers", Seen(listed(asked)))
    if not usable:
        way_out = "Encode text as numbers first."
        raise InputError(f"There is no column of numbers to compare. {way_out}")
    return usable


def _without_gaps(
    raw: list[RawSet], names: list[str], choice: Choice, notices: list[str]
) -> list[str]:
    """Columns that are mostly there."""
    kept = []
    for name in names:
        shares = {one.name: float(one.columns[name].missing.mean()) for one in raw}
        if max(shares.values()) <= MOSTLY_MISSING or name in choice.columns:
            kept.append(name)
        elif choice.missing == "drop":
            notices.append(f"Column '{name}' was left out: missing in {_shares(shares)}.")
        else:
            kept.append(name)
    if not kept:
        way_out = "Choose the columns yourself with --columns."
        raise InputError(f"Every column is missing in a fifth of the rows or more. {way_out}")
    return kept


def _shares(shares: dict[str, float], most: int = 3) -> str:
    worst = sorted(shares.items(), key=lambda item: -item[1])[:most]
    return " and ".join(f"{share:.0%} of {name}" for name, share in worst) + (
        " …" * (len(shares) > most)
    )


def _complete_rows(one: RawSet, names: list[str]) -> BoolArray:
    keep = np.ones(one.rows, dtype=np.bool_)
    for name in names:
        keep &= ~one.columns[name].missing
    return keep


def _gaps(one: RawSet, names: list[str]) -> dict[str, int]:
    """Missing values in each column that has any, most first."""
    counts = {name: int(one.columns[name].missing.sum()) for name in names}
    return {n: c for n, c in sorted(counts.items(), key=lambda item: -item[1]) if c}


def _refuse_gaps(raw: list[RawSet], names: list[str], keep: list[BoolArray]) -> None:
    for one, rows in zip(raw, keep, strict=True):
        if not rows.all():
            gaps = ", ".join(f"{count:,} in '{name}'" for name, count in _gaps(one, names).items())
            raise InputError(
                f"'{one.name}' has missing or infinite values: {gaps}. --missing drop leaves out "
                "columns that mostly miss theirs and the other rows with gaps."
            )


def _tell_dropped(
    raw: list[RawSet], names: list[str], keep: list[BoolArray], notices: list[str]
) -> None:
    parts = []
    for one, rows in zip(raw, keep, strict=True):
        dropped = one.rows - int(rows.sum())
        if dropped > MOST_DROPPED * one.rows or dropped == one.rows:
            worst = ", ".join(f"'{n}' ({c:,})" for n, c in list(_gaps(one, names).items())[:4])
            raise InputError(
                f"{dropped:,} of {one.rows:,} rows of '{one.name}' have missing or infinite values,"
                f" most of them in {worst}. Leave out columns with --exclude, or fill the gaps."
            )
        if dropped:
            parts.append(f"{dropped:,} of {one.rows:,} rows of '{one.name}'")
    if parts:
        infinite = any(np.isinf(one.columns[name].values).any() for one in raw for name in names)
        what = "missing or infinite" if infinite else "missing"
        more = f" and of {len(parts) - 4} other sets" if len(parts) > 4 else ""
        notices.append(f"Dropped for {what} values: {', '.join(parts[:4])}{more}.")


def _without_giveaways(
    raw: list[RawSet],
    names: list[str],
    keep: list[BoolArray],
    choice: Choice,
    notices: list[str],
) -> list[str]:
    """Say which columns tell two sets apart by themselves; leave out dates that do."""
    if len(raw) != 2:
        return names
    apart = []
    for name in names:
        a, b = (o.columns[name].values[rows] for o, rows in zip(raw, keep, strict=True))
        if a.max() < b.min() or b.max() < a.min():
            apart.append(name)
    kinds = {name: raw[0].columns[name].kind for name in apart}
    dates = [n for n in apart if kinds[n] in ("date", "moment") and n not in choice.columns]
    if dates and len(dates) < len(names):
        notices.append(
            f"{_columns(dates)} all earlier in one set than in the other, which is no finding, and "
            "left out. Name columns with --columns to keep one."
        )
        names = [name for name in names if name not in dates]
        apart = [name for name in apart if name not in dates]
    for name in apart:
        notices.append(
            f"Column '{name}' alone tells the two apart: all its values in one set are below those "
            f"in the other. To see other differences, use --exclude '{name}'."
        )
    return names
