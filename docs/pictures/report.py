"""Take the picture of a report's first screen.

report.py REPORT.html PICTURE

docs/pictures/report.png is of `pagewise compare --env quick --kernels pointer_chase,schoenauer_triad --rounds 9
--no-sweep` on a virtual machine with 2 cores, reduced to 64 colours.
"""

import base64
import shutil
import sys
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

WIDE, HIGH = 1180, 1240


def main(report: str, picture: str) -> None:
    """Takes the picture."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars"):
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        size = {"width": WIDE, "height": HIGH, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.get(Path(report).resolve().as_uri())
        shot = driver.execute_cdp_cmd("Page.captureScreenshot", {})["data"]
        Path(picture).write_bytes(base64.b64decode(shot))
    finally:
        driver.quit()


if __name__ == "__main__":
    main(*sys.argv[1:])
