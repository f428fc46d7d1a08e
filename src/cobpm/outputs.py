"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from cobpm.samples import Seen, bad


def check_output(path: Any, *, parameter: str = "path", owner: str) -> Path:
    """Check that a file can be written there before any work is done for it."""
    try:
        target = Path(path)
    except TypeError:
        raise bad(parameter, owner, "be the path of a file", path) from None
    if not target.parent.is_dir():
        rule = "lie in a folder that exists"
        raise bad(parameter, owner, rule, str(target), "Create the folder first.")
    if target.is_dir():
        seen = Seen(f"the folder '{target}'")
        way_out = f"Add the name of a file, for example {target.name}/result."
        raise bad(parameter, owner, "name a file", seen, way_out)
    if not os.access(target.parent, os.W_OK):
        seen = Seen(f"'{target}', whose folder is read-only")
        raise bad(parameter, owner, "lie in a folder that can be written to", seen)
    return target


@contextmanager
def written_whole(target: Path) -> Iterator[Path]:
    """A path to write to, which takes the place of `target` in one step when all went well.

    An error or an interrupt on the way leaves what was there before. The path keeps the suffix of
    `target`, for writers that choose a format by it.
    """
    suffix = "".join(target.suffixes[-1:])
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=suffix)
    os.close(handle)
    beside = Path(name)
    try:
        yield beside
        with beside.open("rb+") as file:
            os.fsync(file.fileno())  # on the disk before the name points to it
        umask = os.umask(0)
        os.umask(umask)
        beside.chmod(0o666 & ~umask)  # as an ordinary new file would be
        os.replace(beside, target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


@contextmanager
def written_together(folder: Path) -> Iterator[Path]:
    """A folder to write files into, all of which move to `folder` when all went well.

    An error or an interrupt before that leaves `folder` as it was.
    """
    beside = Path(tempfile.mkdtemp(dir=folder, prefix=".writing."))
    try:
        yield beside
        files = sorted(beside.iterdir())
        for file in files:
            check_output(folder / file.name, owner="written_together")  # no surprise half-way
        with _uninterrupted():
            for file in files:
                os.replace(file, folder / file.name)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let an interrupt wait until the block is done."""
    if threading.current_thread() is not threading.main_thread():
        yield  # interrupts go to the main thread only
        return
    waiting: list[int] = []

    def later(number: int, _: FrameType | None) -> None:
        waiting.append(number)

    before = signal.signal(signal.SIGINT, later)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if waiting:
        raise KeyboardInterrupt
