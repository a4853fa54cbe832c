"""The report in a real browser: it fits, can be read and used by keyboard, in light and dark, and prints."""

from __future__ import annotations

import base64
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import pytest

from many_kernels import all_kernels, result_of
from pagewise.core.page_policy import PagePolicy
from pagewise.report.render import html
from pagewise.report.views import report_of

PHONE, DESK = 390, 1360
pytestmark = pytest.mark.long
SCRIPT = Path(__file__).with_name("report_checks.js")


@pytest.fixture(scope="module")
def browser(unavailable: Callable[[str], NoReturn]) -> Iterator[Any]:
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        unavailable("needs chromium and chromedriver: apt-get install chromium chromium-driver")
    try:
        from selenium import webdriver
    except ImportError:
        unavailable("needs the Python package selenium: make setup-tests")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    with tempfile.TemporaryDirectory(prefix="pagewise-browser-") as profile:
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"):
            options.add_argument(argument)
        # From here on nothing is reached but files.
        options.add_argument("--host-resolver-rules=MAP * ~NOTFOUND")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        try:
            yield driver
        finally:
            driver.quit()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with every kind of content: no pool, a wrong result, curves, a kernel with few dimensions."""
    folder = tmp_path_factory.mktemp("page")
    names = ("schoenauer_triad", "pointer_chase", "gather", "allocate")
    kernels = [kernel for kernel in all_kernels() if kernel.name in names]
    report = report_of(result_of(folder, kernels, pool=False, wrong="gather"))
    (folder / "report.html").write_text(html.render(report))
    return folder / "report.html"


def show(browser: Any, page: Path, width: int, scheme: str = "light", media: str = "") -> dict[str, Any]:
    """Opens the page so wide and in a colour scheme; what report_checks.js found."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width == PHONE}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
    browser.get(page.as_uri())
    return browser.execute_script(SCRIPT.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("width", "scheme"), [(PHONE, "light"), (DESK, "dark")])
def test_it_fits_and_can_be_read_also_by_a_screen_reader(browser, page: Path, width: int, scheme: str):
    actual = show(browser, page, width, scheme)
    assert actual["overflow"] == 0, "the page itself scrolls to the side"
    assert actual["faint"] == [], "text with too little contrast (WCAG 2.2: 4.5 : 1)"
    assert actual["dark"] == (scheme == "dark")
    assert browser.get_log("browser") == [], "nothing is fetched, nothing fails"
    assert (actual["language"], actual["landmarks"]) == ("en", ["HEADER", "NAV", "MAIN", "FOOTER"])
    assert actual["headings"][0] == 1 and actual["headings"].count(1) == 1
    steps = [b - a for a, b in pairwise(actual["headings"])]
    assert max(steps) <= 1, "no level of headings is left out"
    for fault in ("tables", "cells", "ids", "links", "images", "sections", "regions"):
        assert actual[fault] == [], fault


def test_the_first_screen_has_interval_cost_and_command(browser, page: Path):
    """In this order, under the headline, and before all other answers."""
    small = show(browser, page, PHONE)["verdict"]
    assert small["text"].count(PagePolicy("thp").text) == 1 and small["bottom"] < 900
    actual = show(browser, page, DESK)
    names = [name for name, _ in actual["recommendation"]]
    places = [actual["verdict"]["bottom"], *(bottom for _, bottom in actual["recommendation"])]
    assert names == ["sure", "cost", "apply"] and places == sorted(places)
    assert places[-1] < min(actual["others"]) and actual["others"] == sorted(actual["others"])
    assert max(actual["others"]) < 900, "without scrolling"
    commands = actual["commands"]
    assert commands[0].split() == ["pagewise", "exec", "thp", "--", "PROGRAM"]
    assert commands[1] == "module load pagewise-pages/thp"
    assert actual["legends"] == actual["charts"] > 0


def test_the_keyboard_reaches_everything_in_order_and_opens_it(browser, page: Path):
    from selenium.webdriver.common.keys import Keys

    show(browser, page, DESK)
    active = "const one = document.activeElement; return "
    focused = active + "[one.tagName, one.getBoundingClientRect().top + scrollY]"
    visible = "return getComputedStyle(document.activeElement).outlineStyle"
    expected = browser.execute_script("return focusable().length")
    reached = []
    for _ in range(expected):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        reached.append(browser.execute_script(focused))
        assert browser.execute_script(visible) != "none"
    assert reached[0][0] == "A" and len(reached) == expected
    assert {tag for tag, _ in reached} == {"A", "SUMMARY", "DIV"}
    # The navigation sticks to the top, so its place is that of the scrolled page.
    places = [place for tag, place in reached[20:]]
    assert all(b >= a - 400 for a, b in pairwise(places)), "from top to bottom"
    show(browser, page, DESK)
    browser.switch_to.active_element.send_keys(Keys.TAB)
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert browser.current_url.endswith("#content"), "the skip link"
    browser.execute_script("document.querySelector('summary').focus()")
    is_open = "return document.querySelector('details').open"
    before = browser.execute_script(is_open)
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert browser.execute_script(is_open) != before, "a closed table"


def test_closed_sections_are_printed(browser, page: Path):
    show(browser, page, 794, "dark", "print")
    reported = browser.execute_script(
        "return [...document.querySelectorAll('details:not([open]) table')]"
        ".map(one => one.getBoundingClientRect().height)"
    )
    assert reported and min(reported) > 0
    style = "return getComputedStyle(document.documentElement).backgroundColor"
    assert browser.execute_script(style) == "rgb(255, 255, 255)"
    assert browser.execute_script("return document.documentElement.scrollWidth - innerWidth") <= 0
    show(browser, page, DESK)
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"]
    assert base64.b64decode(printed).startswith(b"%PDF")


def test_all_kernels_in_all_configurations_stay_usable(browser, tmp_path: Path):
    """Without the curves, which take long to draw and add some 2 MB."""
    kernels = [replace(kernel, sweeps=()) for kernel in all_kernels()]
    result = result_of(tmp_path, kernels, rounds=3)
    (tmp_path / "report.html").write_text(html.render(report_of(result)))
    assert (tmp_path / "report.html").stat().st_size < 2_000_000
    reported = show(browser, tmp_path / "report.html", DESK)
    assert reported["overflow"] == 0 and reported["ids"] == reported["links"] == []
    rows = browser.execute_script("return document.querySelectorAll('table.matrix tbody tr').length")
    assert rows == sum(len(one.compilers()) for one in result.subjects)
