"""Telling the user how far long work has come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str, float], None]  # what is being done, and the fraction done


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
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    console = Console(stderr=True)
    # A terminal shows the bar while it lasts; a log file gets one line in the end.
    with Progress(*columns, console=console, transient=console.is_terminal) as bar:
        task = bar.add_task("", total=1.0)

        def report(stage: str, fraction: float) -> None:
            bar.update(task, description=stage, completed=fraction)

        yield report
