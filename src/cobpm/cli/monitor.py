"""The command `cobpm monitor`."""

from __future__ import annotations

import traceback
from typing import Any

import click

from cobpm.cli.options import FILE, data_options, model_options, parse_bounds

FAILED = 3


@click.command()
@click.argument("reference", type=FILE)
@click.argument("steps", nargs=-1, required=True, type=FILE, metavar="STEPS...")
@click.option(
    "--threshold", type=float, metavar="VALUE", help="Exit with 1 if an interval lies above this."
)
@click.option("--log", type=FILE, metavar="FILE", help="Add a line of JSON for each step.")
@data_options
@click.option(
    "-d",
    "--divergence",
    default="tv",
    show_default=True,
    metavar="NAME",
    help="What to estimate: tv, hellinger, js, kl, renyi:0.5 …",
)
@model_options(draws=1000)
@click.option("--csv", "csv_file", type=FILE, metavar="FILE", help="Write a row per step.")
@click.option("--plot", type=FILE, metavar="FILE", help="Draw all steps: PNG, PDF, SVG …")
def monitor(**given: Any) -> None:
    """Follow drift from a reference over time, step by step.

    The reference and the steps are files, folders of files, or what cobpm sketch wrote. Steps that
    the log holds for this reference and these settings are not worked out again, and the picture
    shows all of them.

    \b
    Examples:
      cobpm monitor january.cobpm february/ --plot drift.png
      cobpm monitor january.cobpm today.csv --log drift.jsonl --threshold 0.1

    \b
    Exit codes:
      0  no interval of the steps named lies above the threshold
      1  at least one does
      2  something cannot be used; the message says what
      3  something failed that should not have
    """
    given["bounds"] = parse_bounds(given["bounds"])
    from cobpm.cli.run_monitor import run
    from cobpm.samples import InputError

    try:
        above = run(**given)
    except (click.ClickException, InputError, ImportError, OSError, MemoryError):
        raise  # the message says what
    except Exception as error:  # which would end with the code of an alarm
        traceback.print_exc()
        raise click.exceptions.Exit(FAILED) from error
    if above:
        raise click.exceptions.Exit(1)
