"""Take the picture of a report: its first screen, then its matrix, in 64 colours.

report.py REPORT.html PICTURE.png

docs/pictures/report.png was taken of the default environment (26 configurations) on a virtual machine with 2 cores:

    make stack
    ./pagewise kernels --kernels pointer_chase,schoenauer_triad --rounds 3 --no-sweep --prepare-pages
    .pagewise/venv/bin/python docs/pictures/report.py "$(ls -d results/*-default | tail -n 1)/report.html" docs/pictures/report.png
"""

import base64
import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

WIDE = 1420
# What is left in the page: headline, recommendations, facts, notes and matrix; without one the first section.
HIDE = """
const kept = document.getElementById("matrix")?.parentElement ?? document.querySelector("main > section");
for (const part of document.querySelectorAll("nav, footer, main > *")) part.hidden = part !== kept;
Object.assign(document.body.style, {paddingBottom: "1.5rem", maxWidth: "none"});
return Math.ceil(document.body.getBoundingClientRect().height);
"""


def main(report: str, picture: str) -> None:
    """Takes the picture."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars"):
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        resize(driver, 1000)
        driver.get(Path(report).resolve().as_uri())
        resize(driver, driver.execute_script(HIDE))
        shot = driver.execute_cdp_cmd("Page.captureScreenshot", {})["data"]
    finally:
        driver.quit()
    with Image.open(io.BytesIO(base64.b64decode(shot))) as image:
        image.convert("RGB").quantize(64).save(picture, optimize=True)


def resize(driver: webdriver.Chrome, high: int) -> None:
    """Gives the window this height."""
    size = {"width": WIDE, "height": high, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


if __name__ == "__main__":
    main(*sys.argv[1:])
