"""Tables piece by piece, from files that need not fit into memory.

The first rows of every file decide which columns are used and how they are read, by the rules of
`cobpm.sets`. A file that keeps to them no longer further down is refused, with the place.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, BinaryIO

from cobpm.arrays import FloatArray
from cobpm.columns import read_values
from cobpm.files import (
    HEAD,
    STANDARD_INPUT,
    Dialect,
    Table,
    decoded,
    dialect_of,
    named_table,
    opened,
    parse_error,
    readable,
    records_of,
    table_of,
)
from cobpm.samples import InputError, Seen, bad_file
from cobpm.sets import Agreement, Choice, agree
from cobpm.threads import thread_count

if TYPE_CHECKING:
    import pyarrow as pa

FIRST_ROWS = 10_000  # which decide on the columns of binary files
FIRST_BYTES = 1 << 20  # the same for text
BLOCK = 1 << 22  # bytes of text that are read at a time
MOST_VALUES = 3 << 18  # of a piece, all columns together
MOST_ROWS = 1 << 18
LARGE_ROWS, LARGE_BYTES = 20_000_000, 2e9  # beyond which files are better not held in memory
LARGE_GROUP = 1 << 28  # bytes of a row group of Parquet that are not held at once
INFLATED = 4  # bytes of text, roughly, for a byte of gzip

# Some rows, and the share of the file that has been read with them.
Batches = Iterator[tuple["pa.Table | pa.RecordBatch", float]]


@dataclass(frozen=True, eq=False)
class Source:
    """A file to read piece by piece.

    Attributes:
        path: Where it is.
        beginning: Its first rows.
        size: Bytes on the disk.
        batches: Reads columns of these names, about so many rows at a time, of some parts or all.
        parts: Rows of each part that can be read by itself; none if the file has no parts.
        ends: Smallest and largest value of columns, as far as the file says.
    """

    path: str
    beginning: Table
    size: int
    batches: Callable[[Sequence[str], int, Sequence[int] | None], Batches]
    parts: tuple[int, ...] = ()
    ends: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Piece:
    """Some rows of a file.

    Attributes:
        path: The file.
        rows: Arrow's rows.
        names: Columns to take.
        readings: What they hold in this file.
        done: Share of all files that has been read with this piece.
    """

    path: str
    rows: pa.Table | pa.RecordBatch
    names: tuple[str, ...]
    readings: tuple[str, ...]
    done: float

    def columns(self) -> list[FloatArray]:
        """The columns as numbers, NaN where there is none."""
        import pyarrow as pa

        found = []
        for name, kind in zip(self.names, self.readings, strict=True):
            column = self.rows.column(name)
            chunks = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
            found.append(read_values(chunks, kind))
        return found


@dataclass(frozen=True, eq=False)
class Stream:
    """The rows of some files, one after another, as pieces of float columns.

    Attributes:
        sources: The files.
        agreement: The columns to use.
    """

    sources: tuple[Source, ...]
    agreement: Agreement

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.agreement.columns

    def pieces(self, rows: int | None = None, every: int = 1) -> Iterator[Piece]:
        """All rows, about so many at a time; of files in parts, every so-maniest part alone."""
        if rows is None:
            rows = max(1, min(MOST_ROWS, MOST_VALUES // len(self.columns)))
        total, before, part = sum(source.size for source in self.sources) or 1, 0, 0
        named = zip(self.sources, self.agreement.own, self.agreement.readings, strict=True)
        for source, own, readings in named:
            parts = None
            if source.parts:
                parts = [k for k in range(len(source.parts)) if (part + k) % every == 0]
                part += len(source.parts)
            with readable(source.path):
                for batch, share in source.batches(own, rows, parts):
                    done = (before + share * source.size) / total
                    yield Piece(source.path, batch, own, readings, min(done, 1.0))
            before += source.size

    def ends(self) -> list[tuple[float, float] | None]:
        """The smallest and the largest value of each column, as far as the files say."""
        found: list[tuple[float, float] | None] = []
        for k in range(len(self.columns)):
            named = zip(self.sources, self.agreement.own, strict=True)
            known = [source.ends[own[k]] for source, own in named if own[k] in source.ends]
            ends = [end for pair in known for end in pair]
            found.append((min(ends), max(ends)) if ends else None)
        return found


def open_streams(
    sets: Mapping[str, Sequence[str]], choice: Choice | None = None
) -> dict[str, Stream]:
    """Look at the first rows of some files and choose the columns that all of them have.

    Args:
        sets: Files by the name of the set whose rows they hold. Of a folder all files are taken, in
            the order of their names, but for those that begin with a dot or an underscore.
        choice: Which columns to use, and what to do about missing values.
    """
    sources = {name: [look(path) for path in files_in(paths)] for name, paths in sets.items()}
    found = agree([s.beginning for own in sources.values() for s in own], choice or Choice())
    streams, start = {}, 0
    for name, own in sources.items():
        here = slice(start, start + len(own))
        part = replace(found, own=found.own[here], readings=found.readings[here])
        streams[name] = Stream(tuple(own), part)
        start = here.stop
    return streams


def files_in(paths: Sequence[str]) -> list[str]:
    """The files named, and those of the folders named, in the order of their names."""
    found = []
    for path in paths:
        if not Path(path).is_dir():
            found.append(path)
            continue
        inside = [
            str(file)
            for file in sorted(Path(path).rglob("*"))
            if file.is_file() and not any(part[0] in "._" for part in file.relative_to(path).parts)
        ]
        if not inside:
            raise InputError(f"The folder '{path}' holds no files to read.")
        found += inside
    return found


def are_large(paths: Sequence[str]) -> bool:
    """Whether files together have more than 20 million rows or 2 GB of numbers; folders always."""
    rows = size = 0.0
    for path in paths:
        if Path(path).is_dir():
            return True
        more = _extent(path) if Path(path).is_file() else (0, 0)
        rows, size = rows + more[0], size + more[1]
    return rows > LARGE_ROWS or size > LARGE_BYTES


def _extent(path: str) -> tuple[float, float]:
    """Rows where a file says, and the bytes of its numbers, roughly; no trouble is taken."""
    with open(path, "rb") as file:
        head = file.read(4)
    on_disk = Path(path).stat().st_size
    if head == b"PAR1":
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            about = pq.read_metadata(path)
        except (pa.ArrowException, OSError):  # whoever reads it will say so
            return 0, 0
        return about.num_rows, 8 * about.num_rows * about.num_columns
    return 0, on_disk * (INFLATED if head[:2] == b"\x1f\x8b" else 1)


def look(path: str) -> Source:
    """Find out what a file is, and read its first rows."""
    if path == STANDARD_INPUT:
        way_out = "Name the file; gzip files are read as they are."
        raise InputError(f"Standard input cannot be read piece by piece. {way_out}")
    with readable(path), opened(path) as (stream, name):
        head = bytes(stream.peek(HEAD)[:HEAD])  # type: ignore[attr-defined]
        if not head:
            raise bad_file(path, "hold a table", Seen("an empty file"))
        if head[:4] == b"PAR1" or head[:6] == b"ARROW1":
            if isinstance(getattr(stream, "raw", None), gzip.GzipFile):
                way_out = "gunzip it first: it cannot be read piece by piece."
                raise bad_file(path, "not be gzipped", Seen("Parquet or Arrow in gzip"), way_out)
            source = _parquet(path) if head[:4] == b"PAR1" else _arrow(path)
        elif head[:6] == b"\x93NUMPY" or head[:4] in (b"PK\x03\x04", b"%PDF"):
            way_out = "Parquet, Feather, CSV, TSV and JSON lines can."
            rule = "be of a kind that can be read piece by piece"
            raise bad_file(path, rule, Seen("another"), way_out)
        elif head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in b"{[":
            source = _json(path, stream)
        else:
            source = _text(path, stream, head, name)
    if not source.beginning.columns or not source.beginning.rows:
        raise bad_file(path, "hold at least one row", Seen("none"), "Only a header was found.")
    return source


def _damaged(path: str, kind: str, error: Exception, rows: int | None = None) -> InputError:
    where = "" if rows is None else f" after row {rows:,}"
    seen = Seen(f"a damaged one{where} ({str(error).splitlines()[0][:120]})")
    return bad_file(path, f"be a complete {kind} file", seen, "Copy it again.")


# --- Parquet and Arrow ---------------------------------------------------------------------------


def _parquet(path: str) -> Source:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(
            path, buffer_size=1 << 16
        ) as file:  # so that it reads no more than this
            about = file.metadata
            if b"cobpm_sketch" in (about.metadata or {}):
                way_out = "cobpm merge puts sketches together."
                raise bad_file(path, "hold rows", Seen("a sketch of rows"), way_out)
            groups = [about.row_group(k) for k in range(about.num_row_groups)]
            first = next(file.iter_batches(FIRST_ROWS), None)
            begun = pa.Table.from_batches([] if first is None else [first], file.schema_arrow)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, "Parquet", error) from None
    return Source(
        path,
        table_of(begun, path),
        Path(path).stat().st_size,
        partial(_parquet_rows, path),
        tuple(group.num_rows for group in groups),
        _ends(groups),
    )


def _ends(groups: Sequence[Any]) -> dict[str, tuple[float, float]]:
    """Smallest and largest values that Parquet noted down for columns of plain numbers."""
    found: dict[str, tuple[float, float]] = {}
    for group in groups:
        for k in range(group.num_columns):
            chunk = group.column(k)
            kept = chunk.statistics if chunk.is_stats_set else None
            if kept is None or not kept.has_min_max or isinstance(kept.min, bool):
                continue
            if all(isinstance(end, int | float) and isfinite(end) for end in (kept.min, kept.max)):
                low, high = found.get(chunk.path_in_schema, (kept.min, kept.max))
                found[chunk.path_in_schema] = min(low, kept.min), max(high, kept.max)
    return found


def _parquet_rows(
    path: str, names: Sequence[str], size: int, parts: Sequence[int] | None
) -> Batches:
    import pyarrow as pa
    import pyarrow.parquet as pq

    done = 0
    try:
        about = pq.read_metadata(path)
        groups = [about.row_group(k).total_byte_size for k in range(about.num_row_groups)]
        # Whole columns of a row group at a time are quicker, if they are not too large to hold.
        buffer = 1 << 20 if max(groups, default=0) > LARGE_GROUP else 0
        with pq.ParquetFile(path, metadata=about, buffer_size=buffer) as file:
            parts = range(about.num_row_groups) if parts is None else parts
            total = sum(about.row_group(k).num_rows for k in parts) or 1
            settings = {
                "row_groups": list(parts),
                # A dot in a name would mean nesting.
                "columns": None if any("." in name for name in names) else list(names),
                "use_threads": thread_count() > 1,
            }
            for batch in file.iter_batches(size, **settings) if parts else ():
                done += len(batch)
                yield batch, done / total
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, "Parquet", error, done) from None


def _arrow(path: str) -> Source:
    import pyarrow as pa

    try:
        with pa.OSFile(path) as file, pa.ipc.open_file(file) as reader:
            parts = reader.num_record_batches
            first = [reader.get_batch(0).slice(0, FIRST_ROWS)] if parts else []
            beginning = table_of(pa.Table.from_batches(first, reader.schema), path)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, "Arrow", error) from None
    return Source(path, beginning, Path(path).stat().st_size, partial(_arrow_rows, path))


def _arrow_rows(path: str, names: Sequence[str], size: int, parts: None) -> Batches:
    import pyarrow as pa

    done = 0
    try:
        with pa.OSFile(path) as file:
            known = pa.ipc.open_file(file).schema.names
            wanted = pa.ipc.IpcReadOptions(included_fields=[known.index(name) for name in names])
            reader = pa.ipc.open_file(file, options=wanted)
            for k in range(reader.num_record_batches):
                batch = reader.get_batch(k)
                for start in range(0, len(batch), size):
                    yield batch.slice(start, size), (k + 1) / reader.num_record_batches
                done += len(batch)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, "Arrow", error, done) from None


# --- text ----------------------------------------------------------------------------------------


def _text(path: str, stream: BinaryIO, head: bytes, name: str) -> Source:
    import pyarrow as pa
    from pyarrow import csv

    dialect = dialect_of(head, name, path)
    bytes_read = stream.read(FIRST_BYTES)
    begun = bytes_read.decode(dialect.encoding, errors="ignore").lstrip("\ufeff")
    if len(bytes_read) == FIRST_BYTES:
        begun = begun[: begun.rfind("\n") + 1] or begun
    try:
        first = csv.read_csv(pa.BufferReader(begun.encode()), **dialect.options())
    except pa.ArrowInvalid as error:
        raise parse_error(path, str(error)) from None
    beginning = named_table(
        path, first.column_names, first.columns, dialect.notices, dialect.names is None
    )
    batches = partial(_text_rows, path, dialect, _lasting_types(first.schema))
    return Source(path, beginning, Path(path).stat().st_size, batches)


def _lasting_types(schema: pa.Schema) -> dict[str, Any]:
    """Types that what comes later is likely to have: numbers may get decimals, gaps be filled."""
    import pyarrow as pa
    from pyarrow import types

    found = {}
    for one in schema:
        kind = one.type
        if types.is_integer(kind) or types.is_floating(kind):
            kind = pa.float64()
        elif types.is_null(kind):
            kind = pa.string()
        found[one.name] = kind
    return found


def _text_rows(
    path: str,
    dialect: Dialect,
    kinds: dict[str, Any],
    names: Sequence[str],
    size: int,
    parts: None,
) -> Batches:
    import pyarrow as pa
    from pyarrow import csv

    done, total = 0, Path(path).stat().st_size or 1
    kept = {name: kinds[name] for name in names}
    block = min(BLOCK, max(1 << 12, 16 * size * len(kinds)))
    options = dialect.options(block, include_columns=list(names), column_types=kept)
    try:
        with (
            _text_for_arrow(path, dialect.encoding) as (stream, position),
            csv.open_csv(stream, **options) as reader,
        ):
            for batch in reader:
                done += len(batch)
                for start in range(0, len(batch), size):
                    yield batch.slice(start, size), min(position() / total, 1.0)
    except pa.ArrowInvalid as error:
        message = str(error).split("\n")[0]
        if "conversion error" not in message:
            raise parse_error(path, _with_place(message, done)) from None
        raise _changed(path, message, kept, done) from None


@contextmanager
def _text_for_arrow(path: str, encoding: str) -> Iterator[tuple[Any, Callable[[], int]]]:
    """A file of text that Arrow reads in UTF-8 without Python, and how far it has been read."""
    import pyarrow as pa

    if encoding != "utf-8":
        with opened(path) as (stream, _), TemporaryDirectory(prefix="cobpm-") as folder:
            plain = Path(folder) / "text"
            with plain.open("w", encoding="utf-8", newline="") as file:
                for text in decoded(iter(partial(stream.read, BLOCK), b""), encoding, path):
                    file.write(text)
            with pa.OSFile(str(plain)) as source:
                yield source, source.tell
        return
    with pa.OSFile(path) as source:
        packed = source.read(2) == b"\x1f\x8b"
        source.seek(0)
        if not packed:
            yield source, source.tell
            return
        try:
            with pa.CompressedInputStream(source, "gzip") as unpacked:
                yield unpacked, source.tell
        except OSError as error:
            raise EOFError(str(error).splitlines()[0][:120]) from None  # as Python's gzip does


def _with_place(message: str, rows: int) -> str:
    return message if "Row #" in message else f"{message}, after row {rows:,}"


def _changed(path: str, message: str, kinds: dict[str, Any], rows: int) -> InputError:
    """A column that holds something else from some row on; Arrow says which, by its name."""
    _, _, what = message.partition("conversion error to ")
    column = message.partition("In CSV column #")[2].partition(":")[0]
    name = next((n for n in kinds if f"'{n}'" in message), None)
    if name is None and column.isdigit() and int(column) < len(kinds):
        name = list(kinds)[int(column)]
    whose = "a column" if name is None else f"column '{name}'"
    seen = Seen(f"something else in {whose} after row {rows:,} ({what[:100].rstrip()})")
    way_out = f"Mend these rows, or leave the column out: --exclude '{name}'." if name else ""
    return bad_file(path, "hold the same kind of values all through", seen, way_out)


def _position(stream: Any) -> int:
    """How many bytes of the file on the disk were read."""
    raw = getattr(stream, "raw", None)
    try:
        return int(getattr(raw, "fileobj", stream).tell())
    except (ValueError, OSError):  # closed by now
        return 0


# --- JSON lines ----------------------------------------------------------------------------------


def _json(path: str, stream: BinaryIO) -> Source:
    import pyarrow as pa

    begun = stream.read(FIRST_BYTES)
    if begun.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"[":
        way_out = "A JSON array cannot be read piece by piece."
        raise bad_file(path, "have one JSON object per line", Seen("an array"), way_out)
    if len(begun) == FIRST_BYTES:
        begun = begun[: begun.rfind(b"\n") + 1] or begun
    first = _parsed(path, begun, None, 0)
    beginning = named_table(path, first.column_names, first.columns)
    schema = pa.schema(list(_lasting_types(first.schema).items()))
    batches = partial(_json_rows, path, schema)
    return Source(path, beginning, Path(path).stat().st_size, batches)


def _json_rows(
    path: str, schema: pa.Schema, names: Sequence[str], size: int, parts: None
) -> Batches:
    done, total, rest = 0, Path(path).stat().st_size or 1, b""  # lines, bytes
    wanted = schema.empty_table().select(list(names)).schema
    block = min(BLOCK, max(1 << 12, 32 * size * len(schema)))
    with opened(path) as (stream, _):
        while more := stream.read(block):
            lines, newline, rest = (rest + more).rpartition(b"\n")
            if lines.strip():
                table = _parsed(path, lines + newline, wanted, done)
                done += lines.count(b"\n") + 1
                for start in range(0, len(table), size):
                    yield table.slice(start, size), _position(stream) / total
    if rest.strip():
        yield _parsed(path, rest, wanted, done), 1.0


def _parsed(path: str, lines: bytes, schema: pa.Schema | None, before: int) -> pa.Table:
    import pyarrow as pa
    from pyarrow import json

    options = None
    if schema is not None:
        options = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    try:
        reading = json.ReadOptions(block_size=max(len(lines), 1))
        return json.read_json(pa.BufferReader(lines), reading, options)
    except pa.ArrowInvalid as error:
        records_of(lines, path, before)  # says which line is no JSON at all
        message = str(error).removeprefix("JSON parse error: ").splitlines()[0][:120]
        seen = Seen(f"something else after line {before:,} ({message})")
        way_out = "Mend these lines, or leave the column out: --exclude."
        raise bad_file(path, "hold the same kind of values all through", seen, way_out) from None
