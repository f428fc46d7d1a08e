"""Bring what pages say that their examples print up to date: `python docs/_site/printed.py`.

In a page, the block without a language right after a block of Python or of the shell is what the
code prints; a value in the last line of Python is shown as in a notebook. All blocks of a page are
one session, in a folder of its own. Names of pages as arguments choose; by default it is all pages
in docs/ and the README.
"""

from __future__ import annotations

import ast
import io
import os
import re
import subprocess
import sys
import tempfile
import warnings
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
WIDTH = "88"  # what fits on the site
BLOCK = re.compile(r"```(python|sh)\n(.*?)```\n(?:```\n(.*?)```\n)?", re.DOTALL)


def run_python(code: str, names: dict[str, Any]) -> str:
    """Run a block and return what it prints."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, "page", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "page", "eval"), names)
            if value is not None:
                print(value.to_string() if hasattr(value, "to_string") else value)
    return printed.getvalue()


def run_shell(code: str) -> str:
    """Run lines of the shell and return what they print."""
    settings = {**os.environ, "COLUMNS": WIDTH}
    done = subprocess.run(code, shell=True, capture_output=True, text=True, env=settings)
    done.check_returncode()
    return done.stdout


def refresh(page: Path) -> bool:
    """Run a page and rewrite it where it prints something else; tell whether it did."""
    text, names = page.read_text(encoding="utf-8"), {}

    def renew(block: re.Match[str]) -> str:
        language, code, said = block.groups()
        if language == "sh" and said is None:  # such as installing
            return block[0]
        printed = run_python(code, names) if language == "python" else run_shell(code)
        if said is None:
            return block[0]
        printed = re.sub(r"[ \t]+$", "", printed, flags=re.MULTILINE).strip("\n")
        return f"```{language}\n{code}```\n```\n{printed}\n```\n"

    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        new = BLOCK.sub(renew, text)
    if new != text:
        page.write_text(new, encoding="utf-8")
    return new != text


def main() -> None:
    """Refresh pages and name those that changed."""
    warnings.simplefilter("ignore")
    os.environ.setdefault("MPLBACKEND", "Agg")
    asked = [Path(name).resolve() for name in sys.argv[1:]]
    for page in asked or [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))]:
        print(f"{page.name}: {'changed' if refresh(page) else 'as it was'}", flush=True)


if __name__ == "__main__":
    main()
