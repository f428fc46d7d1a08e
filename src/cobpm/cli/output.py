"""What commands print, and the files they write."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cobpm.outputs import check_output, written_whole
from cobpm.progress import Progress, shown
from cobpm.samples import InputError

STANDARD_OUTPUT = "-"
PIPED_WIDTH = 100


def console() -> Console:
    """Standard output. What is printed is plain text: names of the user's may look like markup."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal that knows no ≤ shows a question mark
    out = Console(markup=False, highlight=False, emoji=False)
    if not out.is_terminal and "COLUMNS" not in out._environ:
        out.width = PIPED_WIDTH
    return out


def plain(text: str) -> str:
    """Text with control characters made visible, so that no name breaks a table."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


@contextmanager
def progress(quiet: bool) -> Iterator[Progress]:
    """A bar on standard error if someone is looking, and after a second."""
    with shown(not quiet and sys.stderr.isatty()) as report:
        yield report or (lambda stage, fraction: None)


class Outputs:
    """The files to write: checked before the work, each whole or not at all.

    Args:
        sources: Files that are read, which must not be overwritten.
        files: The files to write by option, None where there is none; "-" is standard output.
    """

    def __init__(self, sources: Sequence[str], files: Mapping[str, str | None]) -> None:
        asked = {option: path for option, path in files.items() if path is not None}
        read = {Path(path).resolve() for path in sources}
        self.piped = [option for option, path in asked.items() if path == STANDARD_OUTPUT]
        self.paths: dict[str, Path] = {}
        if len(self.piped) > 1:
            raise InputError(f"Only one of --{' and --'.join(self.piped)} can be written to '-'.")
        for option, path in asked.items():
            if option in self.piped:
                if option not in ("json", "csv"):
                    raise InputError(f"--{option} cannot be written to standard output.")
                continue
            target = check_output(path, parameter=option, owner="compare")
            if target.resolve() in read:
                raise InputError(f"--{option} would overwrite '{path}', which is read.")
            if target.resolve() in {other.resolve() for other in self.paths.values()}:
                raise InputError(f"--{option} would overwrite another output, '{path}'.")
            self.paths[option] = target
        if "plot" in self.paths:
            _check_picture(self.paths["plot"])

    def write(self, option: str, text: str) -> None:
        """Write text to where an option says, if it was given."""
        if option in self.piped:
            sys.stdout.write(text)
            sys.stdout.flush()
        elif option in self.paths:
            with written_whole(self.paths[option]) as beside:
                beside.write_text(text, encoding="utf-8", newline="")

    def draw(self, drawn: Any) -> None:
        """Save a figure, or the one that axes belong to, by themselves or by name."""
        if isinstance(drawn, Mapping):
            drawn = next(iter(drawn.values()))
        figure = getattr(drawn, "figure", None) or drawn
        with written_whole(self.paths["plot"]) as beside:
            figure.savefig(beside, dpi=150)


def _check_picture(path: Path) -> None:
    """Load matplotlib without a screen, and see that it knows the format."""
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError("--plot needs matplotlib: pip install 'cobpm[plot]'") from error
    matplotlib.use("Agg")
    from matplotlib.backend_bases import FigureCanvasBase

    known = FigureCanvasBase.filetypes
    if path.suffix.lower().removeprefix(".") not in known:
        raise InputError(f"--plot must end in one of {', '.join(sorted(known))}. Got '{path}'.")


def as_json(found: Mapping[str, Any]) -> str:
    """JSON that every reader takes: what is no finite number becomes null."""
    return json.dumps(_finite(found), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table with commas."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table whose first column is text and whose others are numbers."""
    found = Table(title=Text(plain(title)), title_justify="left", title_style="bold")
    for k, name in enumerate(columns):
        found.add_column(Text(plain(name)), justify="right" if k else "left")
    for row in rows:
        found.add_row(*(Text(plain(cell)) for cell in row))
    return found


def say(out: Console, sentence: str, style: str = "") -> None:
    """Print a sentence, wrapped at the width of the terminal."""
    out.print(Text(plain(sentence), style=style))
