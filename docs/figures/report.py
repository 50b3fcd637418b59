"""Draw docs/figures/report.png and report_network.png: the report of `privfield demo`, in chromium.

It needs selenium and Debian's packages chromium and chromium-driver: python docs/figures/report.py
"""

from __future__ import annotations

import base64
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from selenium import webdriver

WIDTH, HEIGHT = 1120, 2490
HERE = Path(__file__).parent


def main() -> None:
    options = webdriver.ChromeOptions()
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.binary_location = shutil.which("chromium") or ""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "privfield", "demo"], cwd=folder, check=True)
        browser = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
        size = {"width": WIDTH, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get((Path(folder) / "privfield-demo" / "report.html").as_uri())
        shoot(browser, "report.png", {"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT})
        box = browser.execute_script(
            "const r = document.querySelector('.figure').getBoundingClientRect();"
            "return {x: r.x - 10, y: r.y - 10, width: r.width + 20, height: r.height + 20}"
        )
        shoot(browser, "report_network.png", box)
        browser.quit()


def shoot(browser: Any, name: str, box: dict[str, float]) -> None:
    asked = {"format": "png", "captureBeyondViewport": True, "clip": {**box, "scale": 1}}
    found = browser.execute_cdp_cmd("Page.captureScreenshot", asked)
    (HERE / name).write_bytes(base64.b64decode(found["data"]))


if __name__ == "__main__":
    main()
