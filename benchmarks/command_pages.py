"""Put what commands print into the pages that show them.

    python -m benchmarks.command_pages docs/command-line.md
    python -m benchmarks.command_pages docs/tables.md --folder FOLDER

Each page is run as one session: blocks of Python, which make files, then the command of every block
marked `console`. FOLDER holds the files that a page does not make itself.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

COBPM = (
    f"{sys.executable} -c 'import sys; from cobpm.cli import main; sys.argv[0] = \"cobpm\"; main()'"
)
BLOCK = re.compile(r"```console\n\$ (.*)\n(?:.*\n)*?```")


def printed(command: str, folder: Path) -> str:
    """The block of a command: its line and what it prints on a pipe, a hundred letters wide."""
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    environment["PYTHONIOENCODING"] = "utf-8"
    done = subprocess.run(
        command.replace("cobpm", COBPM, 1),
        shell=True,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    lines = "\n".join(line.rstrip() for line in done.stdout.splitlines())
    return f"```console\n$ {command}\n{lines}\n```"


def fill(page: Path, folder: Path) -> None:
    text = page.read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)
    text = BLOCK.sub(lambda found: printed(found[1], folder), text)
    page.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        fill(asked.page, asked.folder or Path(made))


if __name__ == "__main__":
    main()
