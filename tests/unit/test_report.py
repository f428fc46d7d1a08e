"""The report as text: its structure, and that nothing of the user's gets out of its place."""

import base64
import hashlib
import re
import subprocess
import sys
import warnings
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest

import cobpm
from cobpm import report
from cobpm.diagnostics import ConvergenceWarning
from cobpm.report import render
from cobpm.report.axes import Axis, widened
from cobpm.report.bars import interval_bar
from cobpm.report.names import LONGEST, NO_NAME, shown, shown_names
from cobpm.report.numbers import axis_end, nice_ceiling, number, short_percent, tick_labels, ticks
from cobpm.report.page import listed
from cobpm.report.where import times

HOSTILE = (
    "<script>alert(1)</script>",
    "\"double\" 'single' & more",
    "</style></script><img src=x onerror=alert(2)>",
    "\u202eturned\u202c",
    "x" * 300,
    "",
    "💥 line\nbreak\x00\x1b",
    "עברית",
    "{{ 7 * 7 }}{% raw %}",
)
VOID = {"meta", "link", "img", "br", "input"}


class Page(HTMLParser):
    """Elements in order, each with its attributes, the text inside, and those it lies in."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.stray = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        element = {
            "tag": tag,
            "attrs": dict(attrs),
            "text": "",
            "in": [e["tag"] for e in self.open],
        }
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        if not self.open or self.open[-1]["tag"] != tag:
            self.stray.append(tag)
        else:
            self.open.pop()

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def all(self, tag):
        return [element for element in self.elements if element["tag"] == tag]

    def text(self, tag):
        return " ".join(" ".join(element["text"] for element in self.all(tag)).split())


def fitted(columns=3, names=("first", "second"), labels=None, model="ratio", size=150, **settings):
    rng = np.random.default_rng(columns)
    labels = labels or [f"column {k}" for k in range(columns)]
    x, y = rng.normal(size=(2, size, len(labels)))
    y[:, 0] += 1.0
    import pandas as pd

    sets = {name: pd.DataFrame(v, columns=labels) for name, v in zip(names, (x, y), strict=True)}
    return cobpm.fit(sets, model=model, draws=300, rng=0, **settings)


@pytest.fixture(scope="module")
def post():
    return fitted()


@pytest.fixture(scope="module")
def text(post):
    return report.html(post)


def test_structure(text):
    page = Page(text)
    assert not page.stray
    assert not page.open
    for tag in ("html", "head", "title", "body", "header", "nav", "main", "footer", "h1"):
        assert len(page.all(tag)) == 1, tag
    assert page.all("html")[0]["attrs"]["lang"] == "en"
    ids = Counter(e["attrs"]["id"] for e in page.elements if "id" in e["attrs"])
    assert max(ids.values()) == 1
    for element in page.elements:
        attrs = element["attrs"]
        for key in ("aria-labelledby", "for"):
            assert key not in attrs or attrs[key] in ids
        if attrs.get("href", "").startswith("#"):
            assert attrs["href"][1:] in ids
    levels = [int(e["tag"][1]) for e in page.elements if re.fullmatch("h[1-6]", e["tag"])]
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))


def test_tables_and_drawings_can_be_heard(text):
    page = Page(text)
    assert len(page.all("caption")) == len(page.all("table")) >= 2
    for heading in page.all("th"):
        assert heading["attrs"]["scope"] in ("row", "col")
    labelled = 0
    for drawing in page.all("svg"):
        if "svg" in drawing["in"]:  # a part of one
            continue
        attrs = drawing["attrs"]
        hidden = attrs.get("aria-hidden") == "true"
        assert hidden or (attrs["role"] == "img" and attrs["aria-label"])
        labelled += not hidden
    assert labelled >= 3 + 3  # maps of three columns, and a card for each


def test_nothing_from_elsewhere_and_nothing_inline_but_what_the_policy_names(text):
    page = Page(text)
    for element in page.elements:
        for key, value in element["attrs"].items():
            assert not key.startswith("on")
            assert key != "style"
            if key in ("href", "src"):
                assert value.startswith(("#", "data:"))
    (policy,) = (
        e["attrs"]["content"]
        for e in page.all("meta")
        if e["attrs"].get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        (element,) = page.all(tag)
        digest = base64.b64encode(hashlib.sha256(element["text"].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert not re.search(r"https?://|url\((?!#)|@import", text)


def test_hostile_names_change_words_only():
    """The same data under plain and hostile names gives the same elements."""
    sets = HOSTILE[0], f"</title><svg onload=alert(3)>{'y' * 300}"
    plain = report.html(fitted(labels=[f"c{k}" for k in range(len(HOSTILE))]))
    hostile = report.html(fitted(labels=list(HOSTILE), names=sets), title=HOSTILE[2])

    def skeleton(text):
        text = re.sub(
            r"<details><summary>Names as they were given.*?</details>", "", text, flags=re.S
        )
        return [(e["tag"], sorted(e["attrs"])) for e in Page(text).elements]

    assert skeleton(hostile) == skeleton(plain)
    page = Page(hostile)
    assert HOSTILE[0] in page.text("h1")
    assert HOSTILE[2] in page.text("title")
    assert HOSTILE[8] in page.text("h3")
    assert not re.search("[\x00\x1b\u202e\ud800-\udfff]", hostile)
    given = next(e for e in page.all("details") if "as they were given" in e["text"])
    assert all(ascii(name) in given["text"] for name in HOSTILE[3:8])


def test_same_text_every_time(post, text):
    again = report.html(post)

    def dateless(page):
        return re.sub(r"on \d{4}-\d\d-\d\d \d\d:\d\d UTC", "", page)

    assert dateless(again) == dateless(text) != text


def test_it_says_what_the_posterior_says(post, text):
    page = Page(text)
    words = page.text("main")
    assert page.text("h1") == "first and second differ"
    summary = post.summary()
    for name in ("tv", "kl", "renyi:2"):
        low, high = summary.loc[name, ["low", "high"]]
        assert f"{number(low)} to {number(high)}" in words
    most = post.regions().iloc[0]
    assert most["where"] in words.replace("\u00a0", " ")
    assert post.provenance["data_sha256"] in words
    assert cobpm.__version__ in words


@pytest.mark.parametrize(
    ("columns", "model"), [(1, "ratio"), (1, "paper"), (2, "ratio"), (2, "paper"), (12, "ratio")]
)
def test_any_number_of_columns(columns, model):
    text = report.html(fitted(columns, model=model))
    page = Page(text)
    assert len(text) < 500_000
    maps = [e for e in page.all("figure") if "map" in e["attrs"]["class"].split()]
    assert len(maps) == {1: 1, 2: 1, 12: 6}[columns]
    assert len(page.all("article")) == (columns if columns > 1 else 0)
    assert bool(page.all("select")) == (len(maps) > 1)


def test_sets_that_do_not_differ():
    x, y = np.random.default_rng(0).normal(size=(2, 1000, 2))
    page = Page(report.html(cobpm.compare(x, y, draws=300, rng=0)))
    assert page.text("h1") == "No difference found between x and y"
    words = page.text("main")
    assert "no place was found in which the two differ" in words
    assert "Direction" not in words
    assert not any("data-region" in element["attrs"] for element in page.elements)


def test_tiny_sets():
    page = Page(report.html(cobpm.compare([[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]], draws=50, rng=0)))
    assert "Few points" in page.text("h3")


def test_extreme_values():
    x = np.array([-1e308, 0.0, 1e308, 1e-300, *np.linspace(0, 1, 40)])
    page = Page(report.html(cobpm.compare(x, -x, draws=50, rng=0)))
    assert not page.stray


def test_columns_of_all_kinds():
    import pandas as pd

    rng = np.random.default_rng(0)
    one, other = (
        pd.DataFrame(
            {
                "constant": np.full(80, 7.0),
                "flag": rng.random(80) < 0.3 + 0.4 * k,
                "whole": rng.poisson(3 + k, 80),
                "heavy": rng.standard_cauchy(80) * 1e6,
            }
        )
        for k in (0, 1)
    )
    page = Page(report.html(cobpm.compare(one, other, draws=200, rng=0)))
    assert len(page.all("article")) == 4
    assert "'constant' is constant" in page.text("main")
    assert report.html(cobpm.compare(np.ones((5, 2)), np.ones((6, 2)), draws=20, rng=0))


def test_turned_frames_have_no_regions():
    x, y = np.random.default_rng(0).normal([[[0.0]], [[1.0]]], 1, (2, 100, 2))
    post = cobpm.compare(x, y, frames=["turned ranks"], draws=100, rng=0)
    assert "There is no table of regions" in Page(report.html(post)).text("main")


def test_more_than_two_sets():
    rng = np.random.default_rng(0)
    sets = {name: rng.normal(shift, 1, (100, 2)) for name, shift in (("a", 0), ("b", 2), ("c", 0))}
    post = cobpm.fit(sets, draws=200, rng=0)
    assert Page(report.html(post)).text("h1").startswith("a and b differ")
    other = Page(report.html(post, first="c", second="b"))
    assert other.text("h1").startswith("c and b differ")
    assert "1 other set" in other.text("main")
    with pytest.raises(cobpm.InputError, match="'first' parameter of report"):
        report.html(post, first="z", second="a")
    with pytest.raises(cobpm.InputError, match="single set"):
        report.html(cobpm.fit([sets["a"]], model="paper", draws=50, rng=0))


def test_loaded_posteriors_have_no_pictures_until_they_get_their_points(post, tmp_path):
    post.save(tmp_path / "post.npz")
    loaded = cobpm.load(tmp_path / "post.npz")
    without = Page(report.html(loaded))
    assert without.text("main").count("not stored") == 2
    assert not without.all("article")
    assert without.all("table")
    again = report.html(loaded, samples=list(post.samples.values))
    assert len(Page(again).all("article")) == 3
    with pytest.raises(cobpm.InputError, match="'samples' parameter of report"):
        report.html(loaded, samples=[np.zeros((3, 3)), np.zeros((3, 3))])


def test_dates_are_dates():
    import pandas as pd

    days = pd.date_range("2024-01-01", periods=300, freq="D")
    a, b = (pd.DataFrame({"day": days[k : 200 + k], "value": range(200)}) for k in (0, 100))
    page = Page(report.html(cobpm.compare(a, b, draws=200, rng=0)))
    assert "2024-04" in page.text("main")
    assert "17040" not in page.text("text")  # seconds since 1970


def test_warnings_stand_by_the_verdict():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        post = fitted(model="paper", engine="mcmc", burn_in=10, chains=2)
    assert post.report.warnings
    page = Page(report.html(post))
    alarms = [e for e in page.all("p") if e["attrs"].get("class") == "alarm"]
    assert len(alarms) == len(post.report.warnings)
    assert post.report.warnings[0] in " ".join(alarms[0]["text"].split())
    assert "R-hat" in page.text("th")


def test_divergences_and_level_of_choice(post):
    page = Page(
        report.html(post, divergences=["tv", "tsallis:0.5", lambda t: (t - 1) ** 2], level=0.5)
    )
    rows = [e["text"] for e in page.all("th") if e["attrs"]["scope"] == "row"]
    assert sum("Tsallis" in row or "phi" in row for row in rows) == 2
    assert "50% interval" in page.text("main")
    assert len(Page(report.html(post, divergences="kl")).all("table")) >= 2
    with pytest.raises(cobpm.InputError, match="divergence"):
        report.html(post, divergences=["nonsense"])
    with pytest.raises(cobpm.InputError, match="level"):
        report.html(post, level=90)


def test_written_whole_or_not_at_all(post, text, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    post.write_report(path, title="Spring")
    assert path.read_text(encoding="utf-8").endswith("</html>\n")
    before = path.read_bytes()

    def broken(*_):
        raise RuntimeError("half way")

    monkeypatch.setattr(render, "render", broken)
    with pytest.raises(RuntimeError, match="half way"):
        report.write(post, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(cobpm.InputError, match="folder that exists"):
        report.write(None, tmp_path / "nowhere" / "report.html")


def test_without_jinja(post, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.delitem(sys.modules, "cobpm.report")
    with pytest.raises(ImportError, match=r"cobpm\[report\]"):
        post.write_report(tmp_path / "report.html")


def test_imports_stay_light():
    code = "import sys, cobpm, cobpm.posterior; sys.exit('jinja2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- all pairs -----------------------------------------------------------------------------------


def all_pairs(sets=4, names=None, **settings):
    rng = np.random.default_rng(sets)
    names = names or [f"set {k}" for k in range(sets)]
    samples = {name: rng.normal(k % 3, 1, (60, 2)) for k, name in enumerate(names)}
    return cobpm.pairwise(samples, draws=100, rng=0, **settings)


def test_pairs_page(tmp_path):
    pairs = all_pairs()
    pairs.write_report(tmp_path / "pairs.html", title="Four")
    text = (tmp_path / "pairs.html").read_text(encoding="utf-8")
    page = Page(text)
    assert not page.stray
    assert not page.open
    assert page.text("title") == "Four"
    i, j = np.unravel_index(np.argmax(pairs.matrix), pairs.matrix.shape)
    assert page.text("h1") == f"Of 4 sets, set {min(i, j)} and set {max(i, j)} differ most"
    assert number(pairs.matrix.max()) in page.text("main")
    numbers = [e for e in page.all("text") if e["attrs"].get("class") == "cell-number"]
    assert len(numbers) == 12
    assert len([e for e in page.all("tr") if "data-region" in e["attrs"]]) == 6
    assert len(page.all("caption")) == len(page.all("table")) == 2


def test_pairs_of_hostile_names():
    def skeleton(text):
        text = re.sub(r"<details>.*?</details>", "", text, flags=re.S)
        return [(e["tag"], sorted(e["attrs"])) for e in Page(text).elements]

    plain, hostile = (all_pairs(5, names) for names in (None, HOSTILE[:5]))
    assert skeleton(report.pairs_html(hostile)) == skeleton(report.pairs_html(plain))


def test_pairs_of_many_sets_one_way():
    pairs = all_pairs(45, divergence="kl", symmetric=False)
    text = report.pairs_html(pairs)
    page = Page(text)
    assert len(text) < 200_000
    assert "from set" in page.text("main")
    assert "30 of 1,980" in page.text("caption")
    assert not [e for e in page.all("text") if e["attrs"].get("class") == "cell-number"]


def test_pairs_that_are_missing_alike_or_infinite():
    from dataclasses import replace

    pairs = all_pairs()
    holes, far, none = (pairs.matrix.copy() for _ in range(3))
    holes[0, 1:] = holes[1:, 0] = np.nan
    page = Page(report.pairs_html(replace(pairs, matrix=holes)))
    assert "3 of 6 pairs were not reached" in page.text("main")
    far[0, 1] = far[1, 0] = np.inf
    page = Page(report.pairs_html(replace(pairs, matrix=far, high=far)))
    assert page.text("h1") == "Of 4 sets, set 0 and set 1 differ most"
    assert "∞" in page.text("td")
    none[:] = 0.0
    page = Page(report.pairs_html(replace(pairs, matrix=none)))
    assert page.text("h1") == "No differences found among 4 sets"
    none[~np.eye(4, dtype=bool)] = np.nan
    assert Page(report.pairs_html(replace(pairs, matrix=none))).text("h1") == "No pair was reached"


# --- parts -------------------------------------------------------------------------------------


def test_names():
    assert shown("plain name") == "plain name"
    assert shown("") == shown(" \n\t") == shown("\u202e\u200b") == NO_NAME
    assert shown("two\nlines\x00") == "two lines\ufffd"
    assert shown("lone \ud800") == "lone \ufffd"
    assert len(shown("a" * 300)) == LONGEST
    assert shown("family 👨\u200d👩\u200d👧") == "family 👨\u200d👩\u200d👧"
    assert shown("עברית") == "\u2068עברית\u2069"
    long = ["x" * 100 + str(k) for k in range(3)]
    assert len(set(shown_names([*long, "", "\n", "(no name) (2)"]))) == 6


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.0, "0"),
        (0.98765, "0.988"),
        (137.18, "137"),
        (26819.0, "26,819"),
        (-0.5, "−0.500"),
        (1.2e9, "1.20·10⁹"),
        (1e-7, "1.00·10⁻⁷"),
        (9.9996, "10.0"),
        (np.inf, "∞"),
        (-np.inf, "−∞"),
        (np.nan, "–"),
    ],
)
def test_numbers(value, words):
    assert number(value) == words


def test_lists_end():
    assert listed(["a", "b"]) == "a, b"
    assert listed(map(str, range(1045)), most=2) == "0, 1, and 1,043 more"


def test_ends_of_axes():
    assert [nice_ceiling(v) for v in (0.7, 15.02, 0.0, np.inf, 99.0)] == [
        0.8,
        16.0,
        1.0,
        1.0,
        100.0,
    ]
    assert [axis_end(v) for v in (1.0, 16.0, 0.25, 3000.0, 5e7)] == [
        "1",
        "16",
        "0.25",
        "3,000",
        "5·10⁷",
    ]
    assert short_percent(0.9999) == "> 99.9%"
    assert [times(v) for v in (0.0, np.log(250), 99.0, -99.0)] == [
        "1.0",
        "250",
        "over 1,000",
        "under 1/1,000",
    ]


@pytest.mark.parametrize(
    ("low", "high"),
    [(0, 1), (-4.2, 4.3), (137.8, 142.4), (0, 1e12), (5, 5 + 1e-9), (-1e308, 1e308)],
)
@pytest.mark.parametrize("most", [3, 4, 5])
def test_ticks_are_few_and_inside(low, high, most):
    found = ticks(low, high, most)
    assert 2 <= len(found) <= most
    assert all(low - 1e-9 <= value <= high + 1e-9 for value in found)
    assert len(set(tick_labels(found))) == len(found) or high - low < 1e-6


def test_dates_on_an_axis():
    start = 1_356_998_400.0  # 2013-01-01
    assert [label for _, label in Axis(start, start + 365 * 86400, True).marks(5)] == [
        *("2013-01", "2013-04", "2013-07", "2013-10", "2014-01"),
    ]
    assert [label for _, label in Axis(start, start + 7200, True).marks(3)] == [
        *("01-01 00:00", "01-01 01:00", "01-01 02:00"),
    ]
    assert Axis(start, start + 4e11, True).marks(3)  # years that no calendar has


def test_places():
    assert [label for _, label in Axis(-0.5, 10.5, step=1.0).marks(5)] == ["0", "5", "10"]
    assert [label for _, label in Axis(-0.5, 1.5, step=1.0).marks(5)] == ["0", "1"]
    assert Axis(-0.5, 1.5, step=1.0, boolean=True).marks() == [(0.25, "false"), (0.75, "true")]
    axis = Axis(10.0, 20.0, upward=True)
    assert axis.place(np.array([10.0, 15.0, 99.0, -np.inf])).tolist() == [1.0, 0.5, 0.0, 1.0]
    assert Axis(-1e308, 1e308).place(0.0) == 0.5
    assert Axis(3.0, 3.0).place(3.0) == 0.0


def test_regions_of_a_lattice_touch():
    low, high = np.array([0.0, 3.0]), np.array([2.0, 10.0])
    assert widened(low, high, -0.5, 1.0).tolist() == [[-0.5, 2.5], [2.5, 10.5]]
    assert widened(low, high, -0.5, None).tolist() == [low.tolist(), high.tolist()]
    between = widened(np.array([2.5]), np.array([np.inf]), -0.5, 1.0)
    assert between.tolist() == [[2.5], [np.inf]]


@pytest.mark.parametrize("ends", [(0, 0, 0), (1, 2, np.inf), (np.inf, np.inf, np.inf), (0, 3, 99)])
def test_interval_bars_stay_inside(ends):
    bar = interval_bar(*ends, 4.0)
    shares = [float(v) for v in re.findall(r'"(-?[\d.]+)%"', bar)]
    assert all(0 <= v <= 100 for v in shares)
    assert ("›" in bar) == (ends[2] > 4.0)
