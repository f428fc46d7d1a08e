"""What experiments share: settings, results, and the files a result becomes.

An experiment ends up as a picture (NAME.png), all its numbers (NAME.json) and a page that puts them
beside the paper's (NAME.md). The three appear together or not at all.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from math import ceil, floor, log10
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

import cobpm
from cobpm.experiments import MODULES
from cobpm.outputs import written_together
from cobpm.progress import Progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 130  # of the pictures
INDEX = "index.md"
FILES = ("png", "json", "md")  # of an experiment


class Unavailable(Exception):
    """An experiment cannot be run here; the message says what is missing and how to get it."""


@dataclass(frozen=True)
class Settings:
    """What the command line chooses.

    Attributes:
        quick: A small version that shows that everything works, with larger errors.
        data: Folder with data that does not come with the package, for experiments that need it.
        seed: Of data and draws. Fixed, so that everybody gets the same numbers.
    """

    quick: bool = False
    data: Path | None = None
    seed: int = 2014

    def choose(self, full: Any, quick: Any) -> Any:
        """The value for the full or for the quick version."""
        return quick if self.quick else full

    def rng(self, *labels: int) -> np.random.Generator:
        """A generator of its own for every list of labels."""
        return np.random.default_rng([self.seed, *labels])


@dataclass(frozen=True, eq=False)
class Result:
    """What came out.

    Attributes:
        numbers: Everything that was computed, and the paper's numbers under "paper". Dictionaries
            with words as keys, lists, numbers and arrays. Seconds go under keys that end in
            "seconds", all else must be the same in every run.
        figure: The picture, in the layout of the paper.
        caption: One sentence on what the picture shows.
        sections: The text of the page in Markdown, without its title, picture and provenance.
        verdict: One sentence that compares with the paper, for the index.
    """

    numbers: Mapping[str, Any]
    figure: Figure
    caption: str
    sections: Sequence[str]
    verdict: str


class Experiment(Protocol):
    """A module of this package that reproduces one table or figure.

    It may have a function `check` of the settings, which raises Unavailable where `run` would, but
    in no time.
    """

    NAME: str
    TITLE: str

    def run(self, settings: Settings, progress: Progress) -> Result:
        """Compute everything."""
        ...


@dataclass(frozen=True)
class Outcome:
    """One line of the index: an experiment that was run, or why it was not."""

    name: str
    title: str
    verdict: str
    done: bool = True
    seconds: float = field(default=0.0, compare=False)


def load(name: str) -> Experiment:
    """The module of an experiment, by its name on the command line."""
    return cast(Experiment, import_module(MODULES[name]))


def check_files(files: Iterable[str], folder: Path) -> None:
    """Refuse a folder that has folders where files are to go."""
    for file in files:
        if (folder / file).is_dir():
            taken = f"'{folder / file}' is a folder, and a file is to go there."
            raise Unavailable(f"{taken} Move it away, or name another --out.")


def check_all(names: Sequence[str], folder: Path, settings: Settings) -> None:
    """Refuse data that cannot be used, and files that cannot be written, before any work.

    A missing library is left to the run that needs it.
    """
    check_files([INDEX, *(f"{name}.{kind}" for name in names for kind in FILES)], folder)
    for name in names:
        with suppress(ImportError):
            if settings.data is not None and (check := getattr(load(name), "check", None)):
                check(settings)


def reproduce(name: str, folder: Path, settings: Settings, progress: Progress) -> Outcome:
    """Run one experiment and write its files into a folder that exists."""
    progress(f"{name}: loading", 0.0)
    experiment = load(name)
    check_files([f"{name}.{kind}" for kind in FILES], folder)
    began = perf_counter()
    result = experiment.run(settings, lambda stage, done: progress(f"{name}: {stage}", done))
    seconds = perf_counter() - began
    progress(f"{name}: writing", 1.0)
    write(experiment, result, folder, settings, seconds)
    return Outcome(name, experiment.TITLE, result.verdict, seconds=seconds)


def write(
    experiment: Experiment, result: Result, folder: Path, settings: Settings, seconds: float
) -> None:
    """The three files of an experiment."""
    origin = provenance(experiment.NAME, settings, seconds)
    content = {
        "experiment": experiment.NAME,
        "title": experiment.TITLE,
        "verdict": result.verdict,
        "numbers": _plain(result.numbers),
        "provenance": origin,
    }
    text = json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False)
    with written_together(folder) as beside:
        result.figure.savefig(beside / f"{experiment.NAME}.png", dpi=DPI)
        (beside / f"{experiment.NAME}.json").write_text(text + "\n", encoding="utf-8")
        page = _page(experiment, result, origin)
        (beside / f"{experiment.NAME}.md").write_text(page, encoding="utf-8")


def write_index(outcomes: Sequence[Outcome], folder: Path, settings: Settings) -> None:
    """A page that lists all experiments."""
    rows = [
        [
            f"[{outcome.title}]({outcome.name}.md)" if outcome.done else outcome.title,
            f"`{command(outcome.name, settings)}`",
            outcome.verdict if outcome.done else f"Not run: {outcome.verdict}",
            f"{outcome.seconds:.0f}" if outcome.done else "",
        ]
        for outcome in outcomes
    ]
    head = ["table or figure", "command", "beside the paper", "seconds"]
    parts = [
        "# The paper's tables and figures",
        f"`{command('all', settings)}` makes all of these pages.{_warning(settings)}",
        table(head, rows),
    ]
    with written_together(folder) as beside:
        (beside / INDEX).write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def command(name: str, settings: Settings) -> str:
    """What to type to get these numbers. Where the data are is nobody's business."""
    data = ["--data DIR"] * (settings.data is not None)
    return " ".join(["cobpm reproduce", name, *data, *["--quick"] * settings.quick])


def provenance(name: str, settings: Settings, seconds: float) -> dict[str, Any]:
    """What is needed to tell later how the numbers came about."""
    import matplotlib
    import scipy

    return {
        "command": command(name, settings),
        "cobpm": cobpm.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "matplotlib": matplotlib.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "settings": {"quick": settings.quick, "seed": settings.seed},
        "seconds": round(seconds, 2),
    }


# --- parts of a page ---------------------------------------------------------------------------


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *([str(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def upper_bound(value: float) -> str:
    """A number of one digit that is not below the value: what errors are said to be at most."""
    if value <= 0:
        return "0"
    power = floor(log10(value))
    digit = ceil(round(value / 10**power, 9))
    return f"{digit * 10.0**power:.0e}" if power < -4 else f"{digit * 10.0**power:.{-power}f}"


def _page(experiment: Experiment, result: Result, origin: Mapping[str, Any]) -> str:
    quick = _warning(Settings(quick=origin["settings"]["quick"]))
    parts = [
        f"# {experiment.TITLE}",
        f"`{origin['command']}`: {origin['seconds']:.0f} s with cobpm {origin['cobpm']}, "
        f"NumPy {origin['numpy']}, Python {origin['python']}, {origin['platform']}.{quick}",
        f"![{result.caption}]({experiment.NAME}.png)",
        *result.sections,
        f"All numbers: [{experiment.NAME}.json]({experiment.NAME}.json).",
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _warning(settings: Settings) -> str:
    if not settings.quick:
        return ""
    return " This is the quick version: fewer repetitions and draws than the full one."


def _plain(value: Any) -> Any:
    """Arrays, tuples and NumPy's numbers as JSON knows them."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value


# --- pictures ----------------------------------------------------------------------------------


def new_figure(width: float, height: float) -> Figure:
    """An empty picture of a size in inches. It belongs to nobody else: there is no global state."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("reproduce needs matplotlib: pip install 'cobpm[reproduce]'") from error
    return Figure(figsize=(width, height), layout="constrained")
