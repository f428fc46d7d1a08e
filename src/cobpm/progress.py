"""Telling the user how far long work has come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer

Progress = Callable[[str, float], None]  # what is being done, and the fraction done

SHOWN_AFTER = 1.0  # seconds


@contextmanager
def shown(progress: bool | Progress) -> Iterator[Progress | None]:
    """What the engines report to: nothing, the caller's function, or a bar on standard error."""
    if callable(progress):
        yield progress
    elif not progress:
        yield None
    else:
        with _bar() as bar:
            yield bar


@contextmanager
def _bar() -> Iterator[Progress]:
    # Loaded here because few calls show a bar.
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    console = Console(stderr=True)
    # A terminal shows the bar while it lasts; a log file gets one line in the end.
    bar = Progress(*columns, console=console, transient=console.is_terminal)
    task = bar.add_task("", total=1.0)
    # Work that is over in a moment needs no bar, and a stage that reports nothing still shows one.
    delay = Timer(SHOWN_AFTER, bar.start)
    delay.daemon = True

    def report(stage: str, fraction: float) -> None:
        bar.update(task, description=escape(stage), completed=fraction)

    if console.is_terminal:
        delay.start()
    else:
        bar.start()
    try:
        yield report
    finally:
        delay.cancel()
        if delay.is_alive():
            delay.join()
        bar.stop()
