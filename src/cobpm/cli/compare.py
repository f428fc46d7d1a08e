"""The command `cobpm compare`."""

from __future__ import annotations

from typing import Any

import click

from cobpm.cli.options import FILE, STREAM, data_options, model_options, parse_bounds


@click.command()
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="A [B]")
@click.option("--split-by", metavar="COLUMN", help="Compare the rows of one file by this column.")
@click.option("--between", nargs=2, metavar="X Y", help="Two values of the column to split by.")
@click.option(
    "--split-half", is_flag=True, help="Compare the first half of one file with the second."
)
@click.option(
    "--split-at", type=float, metavar="ROW|SHARE", help="Compare the rows up to here with the rest."
)
@data_options
@click.option(
    "-d",
    "--divergence",
    multiple=True,
    metavar="NAME",
    help="What to estimate: tv, hellinger, js, kl, reverse_kl, chi2, renyi:2 … May be repeated.",
)
@model_options(draws=3000)
@STREAM
@click.option("--json", "json_file", type=FILE, metavar="FILE", help="Write it all; - for stdout.")
@click.option("--csv", "csv_file", type=FILE, metavar="FILE", help="Write the table of estimates.")
@click.option("--report", type=FILE, metavar="FILE", help="Write a page in HTML.")
@click.option("--plot", type=FILE, metavar="FILE", help="Draw a picture: PNG, PDF, SVG …")
def compare(**given: Any) -> None:
    """Compare two files, or two parts of one.

    Reads CSV, TSV, JSON lines, Parquet, Feather and NumPy files, gzipped or not, folders of files,
    and what cobpm sketch wrote; - is standard input. Says whether the two differ, by how much, how
    sure that is, and where.

    \b
    Examples:
      cobpm compare last.csv this.csv
      cobpm compare last.csv this.csv --columns age,visits --level 0.95
      cobpm compare clinic.csv --split-by sex --exclude id
      cobpm compare clinic.csv --split-by ward --between north south
      cobpm compare sensor.parquet --split-half --report drift.html
      cobpm compare last.csv this.csv -d tv -d kl --json result.json
      zcat this.csv.gz | cobpm compare last.csv - --quiet --json -
    """
    given["bounds"] = parse_bounds(given["bounds"])
    _check_files(given)
    from cobpm.cli.run_compare import run

    run(**given)


def _check_files(given: dict[str, Any]) -> None:
    """One file that is split, or two that are not."""
    splits = [
        name
        for name, asked in (
            ("--split-by", given["split_by"] is not None),
            ("--split-half", given["split_half"]),
            ("--split-at", given["split_at"] is not None),
        )
        if asked
    ]
    files = len(given["files"])
    if len(splits) > 1:
        raise click.UsageError(f"{splits[0]} and {splits[1]} do not go together.")
    if splits and files != 1:
        raise click.UsageError(f"{splits[0]} takes one file. Got {files}.")
    if not splits and files == 1:
        raise click.UsageError(
            "One file needs --split-by COLUMN, --split-half or --split-at ROW, or a second file to "
            "compare with."
        )
    if not splits and files > 2:
        raise click.UsageError(f"Two files are compared. Got {files}; see cobpm pairwise.")
    if given["stream"] and files != 2:
        raise click.UsageError(f"--stream takes two files. Got {files}.")
    if given["between"] and given["split_by"] is None:
        raise click.UsageError("--between goes with --split-by.")
