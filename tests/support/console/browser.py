"""Chromium for the tests of the console, one for the whole run: what it shows, and what a page must never do.

`Browser.check()` fails if the console of the browser has an error, if a request went to another origin, if axe finds
something serious, or if the page is wider than the window. `Browser.looks(path, name)` opens a page at three widths in
both themes, checks each, and with BARNABAS_SCREENSHOTS=DIR keeps `NAME-WIDTH-THEME.png` there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from tests.support.waiting import wait_for

WIDTHS = (360, 1024, 2560)
USUAL_WIDTH = 1280
THEMES = ("light", "dark")
HEIGHT = 900
BETWEEN_PAGES = (WebDriverException,)
"""What is asked of a page that another one replaces."""
SERIOUS = ("serious", "critical")
_AXE = """
const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ["violations"]}).then((result) => done(result.violations.map((violation) => ({
  id: violation.id, impact: violation.impact, help: violation.help,
  nodes: violation.nodes.slice(0, 3).map((node) => node.html.slice(0, 200)),
}))), (error) => done([{id: "axe", impact: "critical", help: String(error), nodes: []}]));
"""


def axe_source() -> str:
    """The text of axe.min.js, from its package."""
    spec = find_spec("axe_core_python")
    assert spec is not None
    assert spec.origin is not None
    return (Path(spec.origin).parent / "axe.min.js").read_text(encoding="utf-8")


class Browser:
    """A window of Chromium on pages of one console at `url`."""

    def __init__(self, driver: webdriver.Chrome, axe: str) -> None:
        self.driver = driver
        self.url = ""
        self._axe = axe

    def at(self, url: str) -> Browser:
        """Go to another console: what pages of the last one still do is no matter of this one. A usual size, light."""
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.url = url
        self.theme("light")
        self.size(USUAL_WIDTH)
        return self

    def open(self, path: str) -> None:
        """Load a page."""
        self.driver.get(self.url + path)

    def size(self, width: int, height: int = HEIGHT) -> None:
        """Set the size of the window's content, in CSS pixels."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def theme(self, name: str) -> None:
        """What the system prefers: light or dark."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    # --- what is there

    def one(self, selector: str) -> WebElement:
        """The element of a CSS selector, as soon as it is there."""
        found = wait_for(
            lambda: self.driver.find_elements(By.CSS_SELECTOR, selector), selector, errors=BETWEEN_PAGES
        )  # an error: the page is being left
        return found[0]

    def all(self, selector: str) -> list[WebElement]:
        """Every element of a CSS selector."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def shows(self, text: str) -> None:
        """Wait until the page shows a text. Asked of the page itself: an element may be of the page before."""
        shown = "return document.body ? document.body.innerText : ''"
        wait_for(lambda: text in self.driver.execute_script(shown), f"the page shows {text!r}", errors=BETWEEN_PAGES)

    def click(self, selector: str) -> None:
        """Click an element; once more if it was replaced meanwhile."""

        def is_clicked() -> bool:
            self.one(selector).click()
            return True

        wait_for(is_clicked, f"{selector} is clicked", errors=BETWEEN_PAGES)

    def fill(self, selector: str, text: str) -> None:
        """Replace the text of a field."""
        field = self.one(selector)
        field.clear()
        field.send_keys(text)

    def keys(self, text: str) -> None:
        """Press keys on the page itself."""
        self.one("body").send_keys(text)

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.driver.switch_to.active_element.send_keys(text)

    # --- checks

    def check(self) -> None:
        """What holds for every page at any time."""
        self.check_without_axe()
        serious = [found for found in self._violations() if found["impact"] in SERIOUS]
        assert not serious, serious

    def check_without_axe(self) -> None:
        """The same, where axe looks at the page another time: it takes a second for 50 rows."""
        errors = [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]
        # A refused action is logged as a failed resource, which is no error of the page.
        assert [text for text in errors if "Failed to load resource" not in text or "/static/" in text] == []
        foreign = [url for url in self._requested() if urlsplit(url).scheme.startswith("http")]
        assert [url for url in foreign if not url.startswith(self.url)] == []
        page_width, window_width = self.driver.execute_script(
            "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        assert page_width <= window_width, f"the page is {page_width} px wide in a window of {window_width} px"

    def _requested(self) -> list[str]:
        """The URLs that were requested since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]

    def _violations(self) -> list[dict[str, Any]]:
        if not self.driver.execute_script("return typeof axe !== 'undefined'"):
            self.driver.execute_script(self._axe)
        return self.driver.execute_async_script(_AXE)

    def looks(self, path: str, name: str, ready: str = "main") -> None:
        """Check a page at three widths in both themes; `ready` is the selector of what it waits for.

        axe, which takes the most time, looks once in each theme: once at a narrow page and once at a wide one. The page
        is loaded once: the other theme is that of a system that changes it. Pictures are of a page loaded in its theme.
        """
        for theme, width_of_axe in zip(THEMES, (WIDTHS[0], WIDTHS[-1]), strict=True):
            self.theme(theme)
            if theme == THEMES[0] or os.environ.get("BARNABAS_SCREENSHOTS"):
                self.open(path)
                self.one(ready)
            for width in WIDTHS:
                self.size(width)
                self._keep(f"{name}-{width}-{theme}")
                if width == width_of_axe:
                    self.check()
                else:
                    self.check_without_axe()

    def _keep(self, name: str) -> None:
        folder = os.environ.get("BARNABAS_SCREENSHOTS")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.driver.save_screenshot(str(Path(folder, f"{name}.png")))


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Chromium without a window of the desktop."""
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    for argument in (
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions"),
        *("--disable-background-networking", "--no-first-run", "--force-prefers-reduced-motion", "--hide-scrollbars"),
        *("--in-process-gpu", "--renderer-process-limit=1", "--js-flags=--no-opt"),  # less CPU: pages are short-lived
    ):
        options.add_argument(argument)
    driver = webdriver.Chrome(options, webdriver.ChromeService("/usr/bin/chromedriver"))
    try:
        yield Browser(driver, axe_source())
    finally:
        driver.quit()
