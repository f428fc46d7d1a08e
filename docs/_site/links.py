"""The pages read well on GitHub and on the site, where some files have another home.

Results of benchmarks, the change log and the examples of the gallery are files of the repository,
and pages link to them as such. The site has them as pages: results and the change log are copied
into it before the build, examples come from sphinx-gallery. Here links to the one are turned into
links to the other.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from sphinx.application import Sphinx

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
RESULTS = [folder / "results" for folder in (ROOT / "benchmarks", ROOT / "verification")]
LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)#\s]+)")


def home(path: Path) -> Path | None:
    """Where a file of the repository is on the site, if it is in another place there."""
    if path == ROOT / "CHANGELOG.md":
        return DOCS / "results" / "changelog.md"
    if path.parent in RESULTS:
        return DOCS / "results" / path.parent.parent.name / path.name
    if path.parent == DOCS / "gallery" and path.suffix == ".py":
        return DOCS / "examples" / f"{path.stem}.rst"
    if path == DOCS / "gallery":
        return DOCS / "examples" / "index.rst"
    return None


def origin(page: Path) -> Path:
    """Where the links of a page start from."""
    if page == DOCS / "results" / "changelog.md":
        return ROOT
    if page.is_relative_to(DOCS / "results"):
        return ROOT / page.parent.name / "results"
    return page.parent


def rewrite(app: Sphinx, docname: str, source: list[str]) -> None:
    """Turn the links of a page to where things are on the site."""
    page = Path(app.env.doc2path(docname))
    if page.suffix != ".md":
        return
    start = origin(page)

    def turned(link: re.Match[str]) -> str:
        path = Path(os.path.normpath(start / link[1]))
        found = home(path) or (path if start != page.parent else None)
        return link[1] if found is None else Path(os.path.relpath(found, page.parent)).as_posix()

    source[0] = LINK.sub(turned, source[0])
    if not re.search("^# ", source[0], re.MULTILINE):
        source[0] = f"# {page.stem.replace('_', ' ').capitalize()}\n\n{source[0]}"


def copy(app: Sphinx) -> None:
    """Bring in what lives outside of docs/; files that have not changed are not touched."""
    wanted = {}
    for path in [ROOT / "CHANGELOG.md", *(file for folder in RESULTS for file in folder.iterdir())]:
        there = home(path)
        assert there is not None
        wanted[there] = path
    for old in (DOCS / "results").rglob("*.*"):
        if old not in wanted:
            old.unlink()
    for there, path in wanted.items():
        there.parent.mkdir(parents=True, exist_ok=True)
        if not there.exists() or there.read_bytes() != path.read_bytes():
            shutil.copyfile(path, there)


def setup(app: Sphinx) -> dict[str, bool]:
    """Copy first, then turn the links of each page as it is read."""
    app.connect("builder-inited", copy, priority=100)
    app.connect("source-read", rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
