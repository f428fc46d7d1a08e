"""The report in a real browser: what can be done with it, and what it must never do."""

import base64
import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cobpm
from cobpm import report

selenium = pytest.importorskip("selenium")
axe = pytest.importorskip("axe_core_python.selenium")

from selenium.common.exceptions import NoAlertPresentException  # noqa: E402
from selenium.webdriver import ActionChains, Chrome, ChromeOptions, Keys  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.actions.action_builder import ActionBuilder  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.support.select import Select  # noqa: E402

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="chromium or chromedriver is not installed"
)
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
HOSTILE = (
    "<script>alert(1)</script>",
    "\"double\" 'single' & </style></script><img src=x onerror=alert(2)>",
    "\u202eturned",
    "w" * 300,
    "",
    "💥\nline",
)
# Every visible text with its colour and the first ground behind it that is not transparent.
COLOURS = """
const found = [];
const parse = (c) => c.match(/[\\d.]+/g).map(Number);
for (const e of document.querySelectorAll("body *")) {
  const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  if (!own || !e.getClientRects().length || e.closest("script, style, .plot, .hidden, .skip")) {
    continue;
  }
  const style = getComputedStyle(e);
  let behind = e, ground = [0, 0, 0, 0];
  while (behind && ground.length === 4 && ground[3] === 0) {
    ground = parse(getComputedStyle(behind).backgroundColor);
    behind = behind.parentElement;
  }
  const ink = parse(e.namespaceURI.endsWith("svg") ? style.fill : style.color);
  found.push([e.textContent.trim().slice(0, 40), ink, ground]);
}
return found;
"""


@pytest.fixture(scope="module")
def browser():
    with tempfile.TemporaryDirectory() as profile:
        options = ChromeOptions()
        options.binary_location = CHROMIUM
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = Chrome(options=options, service=Service(DRIVER))
        yield driver
        driver.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Reports with plain names, with hostile ones, and on all pairs, as addresses."""
    folder = tmp_path_factory.mktemp("reports")
    rng = np.random.default_rng(1)
    plain = pd.DataFrame(rng.normal(size=(400, 3)), columns=["length", "width", "visits"])
    other = pd.DataFrame(rng.normal([1, 0, 0], [1, 2, 1], (400, 3)), columns=plain.columns)
    report.write(cobpm.fit({"before": plain, "after": other}, rng=0), folder / "plain.html")
    x, y = (pd.DataFrame(rng.normal(k, 1, (120, len(HOSTILE))), columns=HOSTILE) for k in (0, 1))
    sets = {HOSTILE[0]: x, HOSTILE[1]: y}
    report.write(cobpm.fit(sets, draws=500, rng=0), folder / "hostile.html", title=HOSTILE[1])
    many = {f"set {k}": rng.normal(k % 3, 1, (80, 2)) for k in range(9)}
    cobpm.pairwise(many, draws=100, rng=0).write_report(folder / "pairs.html")
    return {name: (folder / f"{name}.html").as_uri() for name in ("plain", "hostile", "pairs")}


def visit(browser, address, width=1280, dark=False):
    """Open a page, and leave behind what was logged before."""
    device = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", device)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": [scheme]})
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(address)


def lit(browser):
    """The regions that are lit up in the table, and on the visible map."""
    script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.dataset.region)"
    return [
        browser.execute_script(script, f"{part}.on") for part in ("tr", "figure:not([hidden]) rect")
    ]


@pytest.mark.parametrize("name", ["plain", "hostile", "pairs"])
def test_silent_and_on_its_own(browser, pages, name):
    visit(browser, pages[name])
    with pytest.raises(NoAlertPresentException):
        browser.switch_to.alert  # noqa: B018
    assert browser.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = {
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    }
    assert asked <= {pages[name], "data:,"}
    assert pages[name] in asked
    assert browser.execute_script("return document.scripts.length") == 1


def test_policy_stops_what_is_put_in_later(browser, pages):
    """The content policy holds: an inline script that it does not know does not run."""
    visit(browser, pages["plain"])
    browser.execute_script(
        "const s = document.createElement('script'); s.textContent = 'window.ran = true';"
        "document.body.append(s);"
    )
    assert browser.execute_script("return window.ran") is None
    assert "Content Security Policy" in browser.get_log("browser")[0]["message"]


def test_names_are_shown_as_they_are(browser, pages):
    visit(browser, pages["hostile"])
    assert HOSTILE[0] in browser.find_element(By.TAG_NAME, "h1").text
    assert browser.title == HOSTILE[1]


def test_sorting_by_keyboard(browser, pages):
    visit(browser, pages["plain"])

    def column(k):
        cells = browser.find_elements(By.CSS_SELECTOR, f"#regions tbody tr > :nth-child({k})")
        return [float(cell.get_attribute("data-sort")) for cell in cells]

    headings = browser.find_elements(By.CSS_SELECTOR, "#regions thead th")
    assert [h.get_attribute("aria-sort") for h in headings].count("ascending") == 1
    before = column(4)
    assert before != sorted(before)
    button = headings[3].find_element(By.TAG_NAME, "button")
    button.send_keys(Keys.ENTER)
    assert column(4) == sorted(before)
    assert headings[3].get_attribute("aria-sort") == "ascending"
    assert headings[0].get_attribute("aria-sort") is None
    button.send_keys(Keys.SPACE)
    assert column(4) == sorted(before, reverse=True)
    assert headings[3].get_attribute("aria-sort") == "descending"
    said = browser.find_element(By.ID, "sorted").get_attribute("textContent")
    assert said == "Sorted by before, descending."
    headings[1].find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)  # text sorts, too
    words = [e.text for e in browser.find_elements(By.CSS_SELECTOR, "#regions tbody th")]
    assert len(set(words)) == len(before)


def test_region_lights_up_by_mouse_and_by_keyboard(browser, pages):
    visit(browser, pages["plain"])
    rows = browser.find_elements(By.CSS_SELECTOR, "#regions tbody tr")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", rows[1])
    ActionChains(browser).move_to_element(rows[1]).perform()
    assert lit(browser) == [["2"], ["2"]]
    # Out of the way, into the margin: pages scroll to what has the focus, under a resting mouse.
    mouse_away = ActionBuilder(browser)
    mouse_away.pointer_action.move_to_location(2, 2)
    mouse_away.perform()
    button = browser.find_element(By.CSS_SELECTOR, "#region-1 button")
    browser.execute_script("arguments[0].focus()", button)
    assert lit(browser) == [["1"], ["1"]]
    button.send_keys(Keys.ENTER)
    assert button.get_attribute("aria-pressed") == "true"
    browser.execute_script("arguments[0].blur()", button)
    assert lit(browser) == [["1"], ["1"]]  # it stays
    button.send_keys(Keys.ENTER)
    browser.execute_script("arguments[0].blur()", button)
    assert lit(browser) == [[], []]
    spot = browser.find_element(
        By.CSS_SELECTOR, "figure:not([hidden]) rect[data-region]:last-of-type"
    )
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", spot)
    ActionChains(browser).move_to_element(spot).perform()
    table, drawing = lit(browser)
    assert table == drawing
    assert len(table) == 1


def test_pair_lights_up_in_the_heat_map(browser, pages):
    visit(browser, pages["pairs"])
    button = browser.find_element(By.CSS_SELECTOR, "tr[data-region='1'] button")
    assert button.get_attribute("aria-label") == "Show pair 1 on the map"
    button.send_keys(Keys.ENTER)
    assert lit(browser) == [["1"], ["1", "1"]]  # both sides of the diagonal


def test_map_of_chosen_columns(browser, pages):
    visit(browser, pages["plain"])
    choice = Select(browser.find_element(By.ID, "choose-map"))
    assert len(choice.options) == 3
    for option in choice.options:
        choice.select_by_visible_text(option.text)
        shown = [
            f for f in browser.find_elements(By.CSS_SELECTOR, "figure.map") if f.is_displayed()
        ]
        (label,) = (f.find_element(By.CSS_SELECTOR, "[role=img]") for f in shown)
        for column in option.text.split(" and "):
            assert column in label.get_attribute("aria-label")


@pytest.mark.parametrize("name", ["plain", "hostile", "pairs"])
@pytest.mark.parametrize("width", [320, 768, 1280])
def test_never_wider_than_the_screen(browser, pages, name, width):
    visit(browser, pages[name], width)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["plain", "pairs"])
def test_contrast(browser, pages, name, dark):
    visit(browser, pages[name], dark=dark)

    def luminance(colour):
        parts = np.array(colour[:3]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    found = browser.execute_script(COLOURS)
    assert len(found) > 100
    for words, ink, ground in found:
        light, deep = sorted((luminance(ink), luminance(ground)), reverse=True)
        assert (light + 0.05) / (deep + 0.05) >= 4.5, (words, ink, ground)
    grounds = {luminance(ground) < 0.2 for _, _, ground in found}
    assert grounds == {dark}


@pytest.mark.parametrize(
    ("name", "width", "dark"),
    [("plain", 1280, False), ("plain", 320, True), ("pairs", 1280, True), ("pairs", 320, False)],
)
def test_accessible(browser, pages, name, width, dark):
    visit(browser, pages[name], width, dark)
    found = axe.Axe().run(browser, options={"resultTypes": ["violations"]})
    assert [(v["id"], v["nodes"][0]["html"][:200]) for v in found["violations"]] == []
    assert len(found["passes"]) > 20


def test_readable_without_scripts(browser, pages):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        visit(browser, pages["plain"])
        assert browser.find_elements(By.CSS_SELECTOR, "button") == []
        assert not browser.find_element(By.ID, "choose-map").is_displayed()
        assert browser.find_element(By.CSS_SELECTOR, "#regions tbody tr").is_displayed()
        shown = [
            f for f in browser.find_elements(By.CSS_SELECTOR, "figure.map") if f.is_displayed()
        ]
        assert len(shown) == 1
        browser.find_element(By.CSS_SELECTOR, ".more-maps summary").click()
        assert all(f.is_displayed() for f in browser.find_elements(By.CSS_SELECTOR, "figure.map"))
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_on_paper(browser, pages):
    visit(browser, pages["plain"], dark=True)
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
    pdf = base64.b64decode(printed["data"])
    assert pdf.startswith(b"%PDF")
    assert 3 <= pdf.count(b"/Type /Page\n") <= 12
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert not browser.find_element(By.TAG_NAME, "nav").is_displayed()
    ground = "return getComputedStyle(document.body).backgroundColor"
    assert browser.execute_script(ground) == "rgb(255, 255, 255)"
    assert browser.find_element(By.CSS_SELECTOR, "#regions tbody tr").is_displayed()


def test_still_without_motion(browser, pages):
    visit(browser, pages["plain"])
    still = {"name": "prefers-reduced-motion", "value": "reduce"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [still]})
    script = (
        "return getComputedStyle(document.querySelector('#regions tbody tr')).transitionDuration"
    )
    assert browser.execute_script(script) == "0s"


def test_the_file_is_modest(pages):
    for address in pages.values():
        assert Path(address.removeprefix("file://")).stat().st_size < 300_000
