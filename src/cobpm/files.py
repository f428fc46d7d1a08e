"""Tables from files: CSV and its kin, JSON lines, Parquet, Arrow, NumPy; gzipped or not.

What a file is follows from its first bytes, and from its name where these leave it open. PyArrow
reads all but NumPy's formats. It is loaded when a file is read. It is given buffers and files of
its own, never Python's: its threads may hold these at exit, when they can no longer be let go.
"""

from __future__ import annotations

import codecs
import gzip
import io
import json
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from cobpm.samples import InputError, Seen, bad_file, listed, repeated

if TYPE_CHECKING:
    import pyarrow as pa

STANDARD_INPUT = "-"
HEAD = 1 << 16  # bytes that decide on encoding, delimiter and header
DELIMITERS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars", " ": "spaces"}
# What stands for a missing value, beside PyArrow's own: the UCI repository's and SAS's signs.
MISSING = (
    *("", "?", ".", "-", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NULL", "null", "None", "none"),
    *("NaN", "nan", "NAN", "-NaN", "-nan", "1.#QNAN", "missing"),
)
ENDINGS = {".tsv": "\t", ".tab": "\t"}
JSON_ENDINGS = (".jsonl", ".ndjson", ".json")


@dataclass(frozen=True, eq=False)
class Table:
    """What a file holds.

    Attributes:
        path: Where it was, in the user's words.
        columns: Arrow's columns by name.
        notices: How the file was read, where that was not plain, to follow its name.
        named: Whether the columns have names of their own, or are called c1, c2, …
    """

    path: str
    columns: dict[str, pa.ChunkedArray]
    notices: tuple[str, ...] = ()
    named: bool = True

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values())))


def read_table(path: str) -> Table:
    """Read a file, or standard input if the path is "-".

    Raises:
        InputError: If there is no such file, or it cannot be read as a table.
    """
    shown = "standard input" if path == STANDARD_INPUT else path
    with readable(shown), opened(path) as (stream, name):
        table = _read(stream, name, shown)
    if not table.columns or not table.rows:
        raise bad_file(shown, "hold at least one row", Seen("none"), "Only a header was found.")
    return table


@contextmanager
def readable(shown: str) -> Iterator[None]:
    """Say in our words what is wrong with a file that cannot be read."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        seen = Seen(f"a damaged one ({str(error).rstrip('.').lower()})")
        raise bad_file(shown, "be a complete gzip file", seen, "Copy it again.") from None
    except IsADirectoryError:
        raise bad_file(shown, "be a file", Seen("a folder")) from None
    except PermissionError:
        raise bad_file(shown, "be readable", Seen("no permission to read it")) from None


@contextmanager
def opened(path: str) -> Iterator[tuple[BinaryIO, str]]:
    """The bytes of a file after gunzipping, with its name without `.gz`."""
    if path == STANDARD_INPUT:  # all of it: a pipe hands out its first bytes as it likes
        source: Any = io.BytesIO(sys.stdin.buffer.read())
    elif Path(path).exists():
        source = Path(path).open("rb", buffering=0)  # noqa: SIM115 - closed below
    else:
        way_out = f"Relative paths start from '{Path.cwd()}'."
        raise bad_file(path, "exist", Seen("nothing there"), way_out)
    name = "" if path == STANDARD_INPUT else path.lower()
    with source, io.BufferedReader(source, HEAD) as buffered:
        if buffered.peek(2)[:2] == b"\x1f\x8b":
            with gzip.GzipFile(fileobj=buffered) as unzipped:
                yield io.BufferedReader(unzipped, HEAD), name.removesuffix(".gz")
        else:
            yield buffered, name


def _read(stream: BinaryIO, name: str, shown: str) -> Table:
    head = _head(stream)
    if not head:
        raise bad_file(shown, "hold a table", Seen("an empty file"))
    if head[:4] == b"PAR1" or head[:6] == b"ARROW1":
        return _read_arrow(stream, shown, parquet=head[:4] == b"PAR1")
    if head[:6] == b"\x93NUMPY" or (head[:4] == b"PK\x03\x04" and name.endswith(".npz")):
        return _read_numpy(stream, shown)
    for magic, what in ((b"PK\x03\x04", "a zip archive or a spreadsheet"), (b"%PDF", "a PDF")):
        if head.startswith(magic):
            way_out = "CSV, TSV, JSON lines, Parquet, Feather and NumPy files can be read."
            raise bad_file(shown, "be a table", Seen(what), way_out)
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start == b"{" or (start == b"[" and name.endswith(JSON_ENDINGS)):
        return _read_json(stream, shown)
    return _read_text(stream, head, name, shown)


def _head(stream: Any) -> bytes:
    """The first bytes, which stay in the stream."""
    return bytes(stream.peek(HEAD)[:HEAD])


def named_table(
    shown: str,
    names: list[str],
    columns: list[Any],
    notices: Sequence[str] = (),
    named: bool = True,
) -> Table:
    """A table whose columns have different names."""
    if twice := repeated(names):
        seen = Seen(f"{listed(twice)} more than once")
        way_out = "Rename one of them in the file."
        raise bad_file(shown, "have columns with different names", seen, way_out)
    return Table(shown, dict(zip(names, columns, strict=True)), tuple(notices), named)


# --- CSV and its kin -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Dialect:
    """How a file of text writes its table.

    Attributes:
        encoding: Of its characters.
        delimiter: What divides columns.
        decimal: The mark before decimals.
        names: Names for columns that have none; None if there is a header.
        notices: What was not plain, to follow the name of the file.
    """

    encoding: str
    delimiter: str
    decimal: str
    names: tuple[str, ...] | None
    notices: tuple[str, ...]

    def options(self, block: int | None = None, **convert: Any) -> dict[str, Any]:
        """What PyArrow's readers of CSV take, beside text in UTF-8."""
        from pyarrow import csv

        names = None if self.names is None else list(self.names)
        return {
            "read_options": csv.ReadOptions(column_names=names, block_size=block),
            "parse_options": csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            "convert_options": csv.ConvertOptions(
                null_values=list(MISSING),
                strings_can_be_null=True,
                decimal_point=self.decimal,
                **convert,
            ),
        }


def dialect_of(head: bytes, name: str, shown: str) -> Dialect:
    """See from its first bytes how a file of text is written."""
    encoding, notices = _encoding(head), []
    text = head.decode(encoding, errors="ignore").lstrip("\ufeff")
    if "\x00" in text:
        seen = Seen("binary data of an unknown kind")
        way_out = "CSV, TSV, JSON lines, Parquet, Feather and NumPy files can be read."
        raise bad_file(shown, "be a table", seen, way_out)
    if encoding == "latin-1":
        notices.append("is no UTF-8 and was read as Latin-1")
    delimiter = _delimiter(text, name)
    usual = ENDINGS.get(Path(name).suffix, ",")
    one_column = delimiter not in text.split("\n", 1)[0]
    if delimiter != usual and not one_column:
        notices.append(f"has columns divided by {DELIMITERS[delimiter]}")
    names, decimal = None, "."
    first = _fields(text, delimiter, 0)
    if first and all(_is_number(field, ".,") for field in first):
        names = tuple(f"c{k + 1}" for k in range(len(first)))
        notices.append("has numbers in its first row, so its columns were named c1, c2, …")
    if delimiter == ";" and _has_decimal_commas(text):
        decimal = ","
        notices.append("has decimal commas")
    return Dialect(encoding, delimiter, decimal, names, tuple(notices))


def _read_text(stream: BinaryIO, head: bytes, name: str, shown: str) -> Table:
    import pyarrow as pa
    from pyarrow import csv

    dialect = dialect_of(head, name, shown)
    text = stream.read()
    if dialect.encoding != "utf-8":
        text = "".join(decoded([text], dialect.encoding, shown)).encode()
    try:
        found = csv.read_csv(pa.BufferReader(text), **dialect.options())
    except pa.ArrowInvalid as error:
        raise parse_error(shown, str(error)) from None
    return named_table(
        shown, found.column_names, found.columns, dialect.notices, dialect.names is None
    )


def decoded(pieces: Iterable[bytes], encoding: str, shown: str) -> Iterator[str]:
    """The text of a file that comes in pieces."""
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for piece in pieces:
            yield decoder.decode(piece)
        yield decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise bad_file(shown, f"be text in {encoding.upper()}", Seen("other bytes")) from None


def _encoding(head: bytes) -> str:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def _lines(text: str) -> list[str]:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[:20] if len(lines) > 20 or len(text) < HEAD // 4 else lines[:-1] or lines


def _delimiter(text: str, name: str) -> str:
    """What divides the header, and the same number of times the lines below it."""
    if (known := ENDINGS.get(Path(name).suffix)) and known in text:
        return known
    lines = _lines(text)
    found: dict[str, tuple[float, int]] = {}
    for mark in DELIMITERS:
        counts = [_count(line, mark) for line in lines]
        if counts and counts[0]:
            found[mark] = (sum(count == counts[0] for count in counts) / len(counts), counts[0])
    # Spaces only if nothing else will do, since names may have them, and commas after the others,
    # since numbers may.
    if len(found) > 1 or found.get(" ", (1.0,))[0] < 0.8:
        found.pop(" ", None)
    return max(found, key=lambda mark: (found[mark][0], mark != ",", found[mark][1]), default=",")


def _count(line: str, mark: str) -> int:
    """Occurrences of a mark outside quotes."""
    return sum(part.count(mark) for part in line.split('"')[::2])


def _fields(text: str, delimiter: str, row: int) -> list[str]:
    lines = _lines(text)
    return [part.strip(' "') for part in lines[row].split(delimiter)] if len(lines) > row else []


def _is_number(field: str, points: str) -> bool:
    for point in points:
        try:
            float(field.replace(point, "."))
        except ValueError:
            continue
        return True
    return False


def _has_decimal_commas(text: str) -> bool:
    fields = [field for row in range(1, 20) for field in _fields(text, ";", row)]
    with_comma = [field for field in fields if "," in field and _is_number(field, ",")]
    with_point = [field for field in fields if "." in field and _is_number(field, ".")]
    return len(with_comma) > len(with_point)


def parse_error(shown: str, message: str) -> InputError:
    """PyArrow's message in our words."""
    message = message.removeprefix("CSV parse error: ").split("\n")[0]
    if "Empty CSV" in message:
        return bad_file(shown, "hold at least one row", Seen("none"), "Only a header was found.")
    if message.startswith("Row #") or "Expected" in message:
        row = f" ({message[:100].rstrip(': ')}{'…' * (len(message) > 100)})"
        way_out = "A value that holds the delimiter needs quotes around it."
        return bad_file(
            shown,
            "have the same number of columns in every row",
            Seen(f"another number in some row{row}"),
            way_out,
        )
    return bad_file(shown, "be a table of text", Seen(f"something else ({message[:120]})"))


# --- other formats -------------------------------------------------------------------------------


def _read_arrow(stream: BinaryIO, shown: str, *, parquet: bool) -> Table:
    import pyarrow as pa

    kind = "Parquet" if parquet else "Arrow"
    try:
        source = pa.BufferReader(stream.read())
        if parquet:
            import pyarrow.parquet as pq

            found = pq.ParquetFile(source).read()
        else:
            found = pa.ipc.open_file(source).read_all()
    except (pa.ArrowException, OSError) as error:
        seen = Seen(f"a damaged one ({str(error).splitlines()[0][:120]})")
        raise bad_file(shown, f"be a complete {kind} file", seen, "Copy it again.") from None
    return table_of(found, shown)


def table_of(found: pa.Table, shown: str) -> Table:
    """One of Arrow's tables, without the row labels that pandas adds."""
    kept = [
        (name, column)
        for name, column in zip(found.column_names, found.columns, strict=True)
        if not name.startswith("__index_level_")
    ]
    return named_table(shown, [name for name, _ in kept], [column for _, column in kept])


def _read_json(stream: BinaryIO, shown: str) -> Table:
    import pyarrow as pa
    from pyarrow import json as lines

    text = stream.read()
    if text.lstrip()[:1] == b"{":
        try:
            found = lines.read_json(pa.BufferReader(text))
            return named_table(shown, found.column_names, found.columns)
        except pa.ArrowInvalid:
            pass  # mixed types, or a line that is no JSON: Python's reader knows which
    records = records_of(text, shown)
    names = dict.fromkeys(name for record in records for name in record)
    columns = [_column_of([record.get(name) for record in records]) for name in names]
    return named_table(shown, list(names), columns)


def records_of(text: bytes, shown: str, before: int = 0) -> list[dict[str, Any]]:
    """Objects of a JSON array, or one per line, after some lines that were read before."""
    rule = "have one JSON object per line"
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise bad_file(shown, "be JSON in UTF-8", Seen("other bytes")) from None
    array = decoded.lstrip().startswith("[")
    number = before
    try:
        records: list[Any] = json.loads(decoded) if array else []
        for line in () if array else decoded.split("\n"):
            number += 1
            if line.strip():
                records.append(json.loads(line))
    except json.JSONDecodeError as error:
        seen = Seen(f"something else in line {number or error.lineno} ({error.msg})")
        raise bad_file(shown, rule, seen) from None
    if not all(isinstance(record, dict) for record in records):
        raise bad_file(shown, rule, Seen("other values"))
    return records


def _column_of(values: list[Any]) -> Any:
    import pyarrow as pa

    try:
        return pa.chunked_array([pa.array(values)])
    except (pa.ArrowException, OverflowError):
        mixed = [None if v is None else v if isinstance(v, str) else json.dumps(v) for v in values]
        return pa.chunked_array([pa.array(mixed, pa.string())])


def _read_numpy(stream: BinaryIO, shown: str) -> Table:
    import numpy as np
    import pyarrow as pa

    try:
        found = np.load(io.BytesIO(stream.read()), allow_pickle=False)
        arrays = {n: found[n] for n in found.files} if hasattr(found, "files") else {"": found}
    except Exception as error:  # a foreign or damaged file can fail at any point
        if "pickle" in str(error):
            seen = Seen("pickled Python objects, which could run code when they are loaded")
            way_out = "Save plain numbers: np.save(path, array.astype(float))."
            raise bad_file(shown, "hold arrays of numbers", seen, way_out) from None
        seen = Seen(f"a damaged one ({str(error)[:120]})")
        raise bad_file(shown, "be a complete NumPy file", seen, "Copy it again.") from None
    shapes = ", ".join(f"{name} {array.shape}".strip() for name, array in arrays.items())
    if any(array.ndim not in (1, 2) for array in arrays.values()):
        way_out = "A row holds one point."
        raise bad_file(shown, "hold matrices or flat arrays", Seen(f"shape {shapes}"), way_out)
    if len({len(array) for array in arrays.values()}) != 1:
        rule, way_out = "hold one array, or several with as many rows", "Save each in its own file."
        raise bad_file(shown, rule, Seen(f"shapes {shapes}" if shapes else "none"), way_out)
    columns: dict[str, Any] = {}
    for name, array in arrays.items():
        columns |= _columns_of(array, name if len(arrays) > 1 else "")
    try:
        chunks = {name: pa.chunked_array([pa.array(one)]) for name, one in columns.items()}
    except pa.ArrowException:
        kinds = ", ".join(sorted({str(array.dtype) for array in columns.values()}))
        raise bad_file(shown, "hold real numbers", Seen(f"values of type {kinds}")) from None
    return Table(shown, chunks, named=any(name.rstrip("0123456789") != "c" for name in chunks))


def _columns_of(array: Any, name: str) -> dict[str, Any]:
    """Columns of a matrix, a flat array, or an array of records."""
    if array.dtype.names:
        return {f"{name} {field}".strip(): array[field].copy() for field in array.dtype.names}
    if array.ndim == 1:
        return {name or "c1": array}
    return {f"{name or 'c'}{k + 1}": array[:, k].copy() for k in range(array.shape[1])}
