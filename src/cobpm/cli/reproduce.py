"""`cobpm reproduce`: the paper's tables and figures, next to the paper's own numbers."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cobpm.experiments import MODULES

if TYPE_CHECKING:
    from cobpm.experiments.framework import Outcome, Settings

ALL = "all"
DEFAULT_FOLDER = Path("reproduction")
INTERRUPTED = 130  # as shells have it


class _Folder(click.Path):
    """A folder that exists. An empty name, as an unset variable leaves it, is none."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not str(value).strip():
            self.fail("The name of the folder is empty; leave the option out instead.", param, ctx)
        return super().convert(value, param, ctx)


FOLDER = _Folder(exists=True, file_okay=False, path_type=Path)


@click.command()
@click.argument("name", type=click.Choice([*MODULES, ALL]))
@click.option(
    "--out",
    type=FOLDER,
    help=f"Folder to write to, which must exist. By default '{DEFAULT_FOLDER}', made if need be.",
)
@click.option("--quick", is_flag=True, help="A small version that takes seconds.")
@click.option(
    "--data",
    type=FOLDER,
    help="Folder with the data of experiments that need some.",
)
def reproduce(name: str, out: Path | None, quick: bool, data: Path | None) -> None:
    """Reproduce a table or figure of the paper, or all of them.

    Each becomes a picture, a page that puts our numbers beside the paper's, and a JSON file with
    all numbers.
    """
    try:
        _reproduce(name, _folder(out), quick, data)
    except KeyboardInterrupt:
        click.echo("Interrupted: nothing half-written is left.", err=True)
        sys.exit(INTERRUPTED)


def _reproduce(name: str, folder: Path, quick: bool, data: Path | None) -> None:
    from cobpm.experiments.framework import Settings, Unavailable
    from cobpm.samples import InputError

    settings = Settings(quick=quick, data=data)
    try:
        if name == ALL:
            _run_all(folder, settings)
        else:
            _run(name, folder, settings)
    except (Unavailable, InputError, ImportError) as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        where, why = error.filename or folder, error.strerror or error
        raise click.UsageError(f"'{where}' cannot be used: {why}.") from None


def _folder(out: Path | None) -> Path:
    """The folder to write to, after an attempt to write there."""
    folder = DEFAULT_FOLDER if out is None else out
    try:
        folder.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".writing."):
            pass
    except OSError as error:
        raise click.UsageError(
            f"Cannot write to the folder '{folder}': {error.strerror}. Name another with --out."
        ) from None
    return folder


def _run(name: str, folder: Path, settings: Settings) -> Outcome:
    """Run one experiment with a bar on standard error if somebody looks at it."""
    from cobpm.experiments import framework
    from cobpm.progress import shown

    with shown(sys.stderr.isatty()) as bar:
        outcome = framework.reproduce(name, folder, settings, bar or (lambda *_: None))
    click.echo(f"{folder / name}.md: {outcome.verdict}")
    return outcome


def _run_all(folder: Path, settings: Settings) -> None:
    """Run every experiment, leave out those that cannot be run here, and write the index.

    Data that was named and cannot be used is an error, told before the first experiment.
    """
    from cobpm.experiments import framework

    framework.check_all(list(MODULES), folder, settings)
    outcomes = []
    for name in MODULES:
        try:
            outcomes.append(_run(name, folder, settings))
        except (framework.Unavailable, ImportError) as error:
            title = framework.load(name).TITLE
            outcomes.append(framework.Outcome(name, title, str(error), done=False))
            click.echo(f"{name} was not run: {error}", err=True)
    framework.write_index(outcomes, folder, settings)
    click.echo(f"{folder / framework.INDEX}: the list of all.")
