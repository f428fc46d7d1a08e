"""The commands `cobpm sketch` and `cobpm merge`."""

from __future__ import annotations

from typing import Any

import click

from cobpm.cli.options import FILE, data_options, parse_bounds

OUTPUT = click.option(
    "-o", "--output", required=True, type=FILE, metavar="FILE", help="Where to write the sketch."
)
QUIET = click.option("-q", "--quiet", is_flag=True, help="No words and no progress bar.")


@click.command()
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="FILES...")
@OUTPUT
@data_options
@click.option(
    "--bounds",
    multiple=True,
    metavar="LIMITS",
    help="Cells of equal width: LOW:HIGH for all columns, or NAME=LOW:HIGH. Reads files once.",
)
@click.option("--grid", type=FILE, metavar="SKETCH", help="Use the cells of another sketch.")
@click.option("--max-cells", default=1_000_000, show_default=True, help="Most cells to keep.")
@click.option("--name", default="rows", show_default=True, help="What to call the rows.")
@QUIET
def sketch(**given: Any) -> None:
    """Count the rows of files of any size in the cells of a grid.

    Reads Parquet, Feather, CSV, TSV and JSON lines, the latter three gzipped or not, and folders
    of such files, piece by piece. The result is a small file that compare, pairwise, monitor and
    merge take in place of the rows.

    \b
    Examples:
      cobpm sketch january/ -o january.cobpm
      cobpm sketch february/ -o february.cobpm --grid january.cobpm
      cobpm sketch log.csv.gz -o log.cobpm --bounds delay=0:60 --bounds size=0:1e6
      cobpm compare january.cobpm february.cobpm
    """
    given["bounds"] = parse_bounds(given["bounds"])
    if given["bounds"] == "ranks":
        given["bounds"] = None  # that is what it does by itself
    if given["grid"] is not None:
        for option in ("bounds", "columns", "exclude"):
            if given[option]:
                raise click.UsageError(f"--{option} and --grid do not go together.")
    from cobpm.cli.run_sketch import run_sketch

    run_sketch(**given)


@click.command()
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="SKETCHES...")
@OUTPUT
@QUIET
def merge(**given: Any) -> None:
    """Put sketches on the same grid together.

    The result is the same as if all rows had been counted at once.

    \b
    Examples:
      cobpm merge monday.cobpm tuesday.cobpm -o both.cobpm
      cobpm merge week.cobpm today.cobpm -o week.cobpm
    """
    from cobpm.cli.run_sketch import run_merge

    run_merge(**given)
