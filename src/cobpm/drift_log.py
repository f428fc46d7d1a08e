"""The log of a monitor: JSON lines, added whole."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cobpm.samples import Seen, bad_file


class DriftLog:
    """Records in a file, one per line; a last line that was cut off by a crash does not count.

    Args:
        path: The file, which need not exist; None to keep nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def records(self) -> list[dict[str, Any]]:
        """What the file holds."""
        if self.path is None or not self.path.exists():
            return []
        *lines, last = self.path.read_bytes().split(b"\n")
        found = [self._record(line, k + 1) for k, line in enumerate(lines) if line.strip()]
        return [*found, record] if (record := _parsed(last)) else found

    def _record(self, line: bytes, number: int) -> dict[str, Any]:
        record = _parsed(line)
        if record is None or "step" not in record:
            seen = Seen(f"something else in line {number}")
            way_out = "Name another file, or take the line out."
            raise bad_file(self.path, "be the log of a monitor", seen, way_out)
        return record

    def append(self, record: Mapping[str, Any]) -> None:
        """Add a line: all of it, or nothing if the disk is full."""
        if self.path is None:
            return
        line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
        with self.path.open("ab+", buffering=0) as file:
            end = self._mended(file)
            try:
                written = file.write(line)
                if written != len(line):
                    file.write(line[written:])  # says why it cannot
                os.fsync(file.fileno())
            except BaseException:
                file.truncate(end)
                raise

    def _mended(self, file: Any) -> int:
        """Cut off a half-written last line, or end a whole one; return where the file ends."""
        file.seek(0)
        text = file.read()
        last = text.rpartition(b"\n")[2]
        if last and _parsed(last) is None:
            file.truncate(len(text) - len(last))
        elif last:
            file.write(b"\n")
        return int(file.seek(0, os.SEEK_END))


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
