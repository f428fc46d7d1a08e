"""The command line: `cobpm compare`, `pairwise`, `sketch`, `merge`, `monitor`, and two helpers.

Commands are declared with click alone; everything else is loaded when one of them runs.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from typing import Any

import click

import cobpm
from cobpm.cli.compare import compare
from cobpm.cli.monitor import monitor
from cobpm.cli.pairwise import pairwise
from cobpm.cli.reproduce import reproduce
from cobpm.cli.sketch import merge, sketch

INTERRUPTED = 130
SHELLS = ("bash", "zsh", "fish")


class BadInput(click.ClickException):
    """Something that the user can mend; the program ends with exit code 2."""

    exit_code = 2


class Commands(click.Group):
    """Commands whose errors end in a sentence and an exit code, never in a traceback."""

    def make_context(self, *arguments: Any, **settings: Any) -> click.Context:
        """Read the options."""
        try:
            return super().make_context(*arguments, **settings)
        except KeyboardInterrupt:  # which click would end with the exit code of an alarm
            click.echo("\nInterrupted.", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            click.echo(f"\nInterrupted. {interrupt}".rstrip(), err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            # Whoever was reading had enough. Nothing is left to say, not even at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(0) from None
        except (ImportError, OSError, MemoryError) as error:
            if getattr(error, "errno", None) == errno.ENOSPC:
                what = "The disk is full. What could not be written whole was not written at all."
                raise BadInput(what) from error
            raise BadInput(str(error) or type(error).__name__) from error
        except ValueError as error:
            if type(error).__name__ != "InputError":  # loaded by the command, if at all
                raise
            raise BadInput(_as_options(str(error))) from error


def _as_options(message: str) -> str:
    """A message about the parameter of a function, about the option of the same name."""

    def option(found: re.Match[str]) -> str:
        return "--" + found[1].replace("_", "-").replace("rng", "seed")

    message = re.sub(r"The '([\w-]+)' parameter of [\w.]+\(\)", option, message)
    message = re.sub(r"(?<=\. )(\w+)=None\b", r"No --\1", message)
    message = re.sub(r"\b(\w+)=None\b", r"no --\1", message)
    return re.sub(r"\b(model|engine|partition|bounds|read_out)='?(\w+)'?", r"--\1 \2", message)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(cobpm.__version__, prog_name="cobpm")
def main() -> None:
    """Are two samples different, by how much, how sure are we, and where?"""


main.add_command(compare)
main.add_command(pairwise)
main.add_command(reproduce)
main.add_command(sketch)
main.add_command(merge)
main.add_command(monitor)


@main.command()
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Seed of the posterior draws.",
)
def demo(seed: int) -> None:
    """Compare two small samples with known divergences."""
    from cobpm.cli.demo import show

    show(seed)


@main.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print a script that completes commands and options.

    \b
    Examples:
      eval "$(cobpm completion bash)"
      cobpm completion fish | source
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(main, {}, "cobpm", "_COBPM_COMPLETE").source())
