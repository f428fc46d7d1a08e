"""The command line: `cobpm demo`, `cobpm --version`."""

from __future__ import annotations

import click

import cobpm
from cobpm.cli.reproduce import reproduce


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(cobpm.__version__, prog_name="cobpm")
def main() -> None:
    """Are two samples different, by how much, how sure are we, and where?"""


main.add_command(reproduce)


@main.command()
@click.option("--seed", default=1, show_default=True, help="Seed of the posterior draws.")
def demo(seed: int) -> None:
    """Compare two small samples with known divergences."""
    from cobpm.cli.demo import show

    show(seed)
