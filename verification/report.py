"""What the scripts share: a table in Markdown that says which command made it."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from pathlib import Path

import numpy as np

import cobpm
from cobpm.experiments.framework import table

__all__ = ["parser", "publish", "table"]


def parser(description: str | None, script: str) -> argparse.ArgumentParser:
    """The options that every script has."""
    found = argparse.ArgumentParser(
        prog=f"python -m verification.{script}", description=description
    )
    found.add_argument("--out", type=Path, help="file to write the table to")
    found.add_argument("--seed", type=int, default=1, help="seed of data and draws")
    return found


def publish(script: str, out: Path | None, *parts: str) -> None:
    """Print the parts below the command that made them, and write them to a file if asked to."""
    command = " ".join(["python", "-m", f"verification.{script}", *sys.argv[1:]])
    made_with = (
        f"cobpm {cobpm.__version__}, NumPy {np.__version__}, Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors"
    )
    text = "\n\n".join([f"`{command}`", made_with, *parts]) + "\n"
    print(text)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
