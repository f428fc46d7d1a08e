"""The command `cobpm pairwise`."""

from __future__ import annotations

from typing import Any

import click

from cobpm.cli.options import FILE, STREAM, data_options, model_options, parse_bounds


@click.command()
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="FILES...")
@click.option("--group-by", metavar="COLUMN", help="Make the sets from one file by this column.")
@data_options
@click.option(
    "-d",
    "--divergence",
    default="tv",
    show_default=True,
    metavar="NAME",
    help="What to estimate: tv, hellinger, js, kl, renyi:0.5 …",
)
@click.option("--symmetric", is_flag=True, help="Take the mean of both directions.")
@click.option(
    "--partition",
    type=click.Choice(["joint", "pair"]),
    default="joint",
    show_default=True,
    help="One posterior for all sets, which is quick, or one for each pair.",
)
@click.option(
    "--checkpoint",
    type=FILE,
    metavar="FILE",
    help="Keep finished pairs here and go on from there, with --partition pair.",
)
@click.option("--top", default=10, show_default=True, help="Most different pairs to list.")
@model_options(draws=1000)
@STREAM
@click.option("--json", "json_file", type=FILE, metavar="FILE", help="Write it all; - for stdout.")
@click.option("--csv", "csv_file", type=FILE, metavar="FILE", help="Write a row per pair.")
@click.option("--report", type=FILE, metavar="FILE", help="Write a page in HTML.")
@click.option("--plot", type=FILE, metavar="FILE", help="Draw a heat map: PNG, PDF, SVG …")
def pairwise(**given: Any) -> None:
    """Compare all pairs of several files, or of the groups of one.

    The most different pairs come first.

    \b
    Examples:
      cobpm pairwise monday.csv tuesday.csv wednesday.csv
      cobpm pairwise clinic.csv --group-by ward --plot wards.png
      cobpm pairwise clinic.csv --group-by ward -d kl --csv pairs.csv
      cobpm pairwise clinic.csv --group-by ward --partition pair --checkpoint pairs.ckpt
    """
    given["bounds"] = parse_bounds(given["bounds"])
    files = len(given["files"])
    if given["group_by"] is not None and files != 1:
        raise click.UsageError(f"--group-by takes one file. Got {files}.")
    if given["group_by"] is None and files < 2:
        raise click.UsageError("One file needs --group-by COLUMN, or more files beside it.")
    from cobpm.cli.run_pairwise import run

    run(**given)
