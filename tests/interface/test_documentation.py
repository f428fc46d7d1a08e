"""The examples of the documentation run, each page as one session, and links lead somewhere.

The gallery runs when the site is built: `sphinx-build -W -b html docs docs/_build/html`.
"""

import re
from pathlib import Path

import pytest

import cobpm
from cobpm import baselines, report
from cobpm.frames import NAMES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MADE = ("_build", "examples", "results")  # by the build, out of other files
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in DOCS.rglob("*.md") if page.relative_to(DOCS).parts[0] not in MADE),
]


def name(page):
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(code, page.name, "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", text):
        linked = page.parent / target if target else page
        assert linked.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
            assert anchor in slugs, f"{target}#{anchor}"
    assert not re.search(r"\b(README|ACCURACY|PAIRS|MANY_SETS)_[A-Z]+", text), "a gap to fill"


@pytest.mark.parametrize("module", [cobpm, baselines, report], ids=lambda m: m.__name__)
def test_every_public_name_is_in_the_reference(module):
    pages = (DOCS / "reference").glob("*.rst")
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    documented = set(re.findall(r"^\.\. auto\w+:: (?:[\w.]+\.)?(\w+)$", text, re.MULTILINE))
    assert set(module.__all__) - {"__version__"} <= documented


def test_every_frame_is_in_the_method():
    text = (DOCS / "method.md").read_text(encoding="utf-8")
    assert {name for name in NAMES if f"`{name}`" not in text} == set()
