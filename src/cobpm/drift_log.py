"""The log of a monitor: JSON lines, added whole, by one monitor at a time."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar

from cobpm.samples import Seen, bad_file

BEGINNING = b'{"step": '  # of every line that was written here
Record = TypeVar("Record")


class DriftLog(Generic[Record]):
    """Records in a file, one per line; a last line that was cut off by a crash does not count.

    Args:
        path: The file, which need not exist; None to keep nothing.
        read: Makes a record of what a line holds, or raises ValueError with the reason.
    """

    def __init__(self, path: Path | None, read: Callable[[Mapping[str, Any]], Record]) -> None:
        self.path = path
        self._read = read

    def records(self) -> list[Record]:
        """What the file holds."""
        if self.path is None or not self.path.exists():
            return []
        return self._records(self.path.read_bytes())

    def _records(self, text: bytes) -> list[Record]:
        *lines, last = text.split(b"\n")
        found = [self._record(line, k + 1) for k, line in enumerate(lines) if line.strip()]
        if last.strip() and not self._is_cut_off(last):
            found.append(self._record(last, len(lines) + 1))
        return found

    def _is_cut_off(self, last: bytes) -> bool:
        """Whether a line without an end is the beginning of one that was written here."""
        begins = last.startswith(BEGINNING) or BEGINNING.startswith(last)
        return begins and _parsed(last) is None

    def _record(self, line: bytes, number: int) -> Record:
        try:
            record = _parsed(line)
            if record is None:
                raise ValueError("no JSON object")
            return self._read(record)
        except (ValueError, TypeError, OverflowError) as error:
            seen = Seen(f"something else in line {number} ({str(error)[:120]})")
            way_out = "Name another file, or take the line out."
            raise bad_file(self.path, "be the log of a monitor", seen, way_out) from None

    def add(self, record: Mapping[str, Any], same: Callable[[Record], bool]) -> Record | None:
        """Add a line: all of it, or nothing if the disk is full.

        Args:
            record: What the line is to hold.
            same: Whether a record says what the line would. If there is one by now, from another
                monitor with the same log, nothing is added.

        Returns:
            The record that was there.
        """
        if self.path is None:
            return None
        line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
        with self.path.open("ab+", buffering=0) as file, _alone(file):
            file.seek(0)
            text = file.read()
            if there := next(filter(same, self._records(text)), None):
                return there
            end = self._mended(file, text)
            try:
                written = file.write(line)
                if written != len(line):
                    file.write(line[written:])  # says why it cannot
                os.fsync(file.fileno())
            except BaseException:
                file.truncate(end)
                raise
        return None

    def _mended(self, file: BinaryIO, text: bytes) -> int:
        """Cut off a half-written last line, or end a whole one; return where the file ends."""
        last = text.rpartition(b"\n")[2]
        if last and self._is_cut_off(last):
            file.truncate(len(text) - len(last))
        elif last:
            file.write(b"\n")
        return int(file.seek(0, os.SEEK_END))


@contextmanager
def _alone(file: BinaryIO) -> Iterator[None]:
    """Wait until no other process adds to a file; where there are no such locks, do not."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    with suppress(OSError):  # of a file system without locks
        fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed
    yield


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
