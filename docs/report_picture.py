"""Draw the picture of a report that the README and the guide show: ``python docs/report_picture.py``.

Needs the `browser` extra and a Chromium of the system. Two views stand side by side: the answer in the light theme, the
tree in the dark one.
"""

import base64
import shutil
import tempfile
from pathlib import Path

import spinney
from playwright.sync_api import sync_playwright

PICTURE = Path(__file__).parent / "pictures" / "report.png"
VIEWS = (("light", "#summary", 0), ("dark", "#tree", 60))  # theme, what is shown, points further down
WIDTH, HEIGHT, SHOWN = 1180, 1010, 720


def view(browser, path, theme, what, further):
    """Take a picture of one part of the report."""
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=theme, reduced_motion="reduce")
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]")
    page.locator(what).scroll_into_view_if_needed()
    page.evaluate(f"window.scrollTo(0, document.querySelector('{what}').offsetTop + {further} - 30)")
    page.wait_for_timeout(400)
    return base64.b64encode(page.screenshot()).decode()


if __name__ == "__main__":
    X, y = spinney.datasets.load_penguins(as_frame="pandas")
    study = spinney.study(X.assign(species=y), "species", models=["tree", "forest", "linear"], repeats=2)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        path = study.report(Path(folder) / "report.html")
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        views = [view(browser, path, *wanted) for wanted in VIEWS]
        height = round(SHOWN * HEIGHT / WIDTH)
        page = browser.new_page(viewport={"width": 2 * SHOWN + 12, "height": height})
        images = "".join(f'<img src="data:image/png;base64,{v}" width="{SHOWN}" height="{height}">' for v in views)
        page.set_content(f'<body style="margin:0;display:flex;gap:12px">{images}</body>')
        page.wait_for_timeout(400)
        page.screenshot(path=PICTURE)
        browser.close()
    print(PICTURE, PICTURE.stat().st_size)
