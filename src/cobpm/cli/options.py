"""Options that several commands share. Nothing but click is loaded here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])
FILE = click.Path(dir_okay=True, path_type=str)
STREAM = click.option(
    "--stream",
    is_flag=True,
    help="Count rows in cells instead of holding them; done by itself from 20 million rows on.",
)


def data_options(command: Command) -> Command:
    """Which columns to use and what to do about gaps."""
    for option in (
        click.option(
            "--missing",
            type=click.Choice(["drop", "error"]),
            default="drop",
            show_default=True,
            help="What to do about missing and infinite values.",
        ),
        click.option("--exclude", multiple=True, metavar="NAMES", help="Columns to leave out."),
        click.option(
            "--columns",
            multiple=True,
            metavar="NAMES",
            help="Columns to use, with commas between them. [default: all columns of numbers]",
        ),
    ):
        command = option(command)
    return command


def model_options(draws: int) -> Callable[[Command], Command]:
    """How to compute."""

    def decorate(command: Command) -> Command:
        for option in (
            click.option("-q", "--quiet", is_flag=True, help="No table and no progress bar."),
            click.option(
                "--seed",
                type=click.IntRange(min=0),
                default=1,
                show_default=True,
                help="Seed of the draws.",
            ),
            click.option("--draws", default=draws, show_default=True, help="Posterior draws."),
            click.option(
                "--bounds",
                multiple=True,
                metavar="LIMITS",
                help="Range of the columns: 'ranks', LOW:HIGH for all, or NAME=LOW:HIGH.",
            ),
            click.option(
                "--engine",
                type=click.Choice(["auto", "exact", "pruned", "mcmc"]),
                default="auto",
                show_default=True,
                help="Way of computing, for --model paper.",
            ),
            click.option(
                "--model",
                type=click.Choice(["ratio", "paper"]),
                default="ratio",
                show_default=True,
                help="The ratio model is more accurate; the paper's is as published.",
            ),
            click.option(
                "--level",
                default=0.9,
                show_default=True,
                help="Probability that intervals are to hold.",
            ),
        ):
            command = option(command)
        return command

    return decorate


def parse_bounds(given: tuple[str, ...]) -> Any:
    """What `compare` takes for `bounds`."""
    if not given:
        return None
    if given == ("ranks",):
        return "ranks"
    limits: dict[str | None, Any] = {}
    for item in given:
        name, equals, ends = item.rpartition("=")
        low, _, high = ends.partition(":")
        try:
            limits[name if equals else None] = (float(low), float(high))
        except ValueError:
            raise click.BadParameter(
                f"{item!r} is none of 'ranks', LOW:HIGH and NAME=LOW:HIGH, for example age=0:120.",
                param_hint="--bounds",
            ) from None
    if None in limits and len(limits) > 1:
        raise click.BadParameter("Limits are for all columns or by name.", param_hint="--bounds")
    return limits.get(None, limits)
