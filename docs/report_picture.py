"""Draw the pictures of a report that the README and the guide show: ``python docs/report_picture.py``.

Needs the `browser` extra and a Chromium of the system. In one picture two views stand side by side: the answer in the
light theme, the tree in the dark one. The others are drawn in both themes, and pages show the one that fits theirs.

The words of the report are saved beside the pictures, so that a test notices when the pictures show other words.
"""

import base64
import re
import shutil
import tempfile
from pathlib import Path

import spinney

PICTURES = Path(__file__).parent / "pictures"
WORDS = PICTURES / "report_words.txt"
REPORT = Path(spinney.__file__).parent / "_evaluate" / "report"
BESIDE = (("light", "#summary", 0), ("dark", "#tree", 60))  # theme, what is shown, points further down
ALONE = {
    "board": ("#summary", 0, 900),
    "decisions": ("#classification", 0, 820),
    "rows": ("#shap", 0, 1000),
}  # points high
MODELS = ["tree", "boosting", "forest", "linear", "svm", "knn"]
WIDTH, HEIGHT, SHOWN = 1180, 1010, 720


def report_words():
    """Return the words of the report, a line each: titles of sections, and the texts of its scripts."""
    titles = re.findall(r'_section\("\w+", ("[^"]+")', (REPORT / "page.py").read_text(encoding="utf-8"))
    scripts = [path for path in sorted((REPORT / "assets").glob("*.js")) if ".min." not in path.name]
    found = [re.findall(r'"[^"\n]*"|`[^`\n]*`', path.read_text(encoding="utf-8")) for path in scripts]
    texts = dict.fromkeys(text for in_script in found for text in in_script)
    return [*titles, *(text for text in texts if re.search("[a-zA-Z]{2} [a-zA-Z]{2}|^.[A-Z][a-z]", text))]


def view(browser, path, theme, what, further, height=HEIGHT):
    """Take a picture of one part of the report."""
    page = browser.new_page(viewport={"width": WIDTH, "height": height}, color_scheme=theme, reduced_motion="reduce")
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]")
    page.locator(what).scroll_into_view_if_needed()
    page.evaluate(f"window.scrollTo(0, document.querySelector('{what}').offsetTop + {further} - 30)")
    page.wait_for_timeout(400)
    taken = page.screenshot()
    page.close()
    return taken


def beside_each_other(browser, views, picture):
    """Put views side by side."""
    height = round(SHOWN * HEIGHT / WIDTH)
    page = browser.new_page(viewport={"width": 2 * SHOWN + 12, "height": height})
    coded = [base64.b64encode(one).decode() for one in views]
    images = "".join(f'<img src="data:image/png;base64,{one}" width="{SHOWN}" height="{height}">' for one in coded)
    page.set_content(f'<body style="margin:0;display:flex;gap:12px">{images}</body>')
    page.wait_for_timeout(400)
    page.screenshot(path=picture)


if __name__ == "__main__":
    from playwright.sync_api import sync_playwright

    X, y = spinney.datasets.load_penguins(as_frame="pandas")
    study = spinney.study(X.assign(species=y), "species", models=MODELS, repeats=1, minutes=20)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        path = study.report(Path(folder) / "report.html")
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        beside_each_other(browser, [view(browser, path, *wanted) for wanted in BESIDE], PICTURES / "report.png")
        for name, (what, further, height) in ALONE.items():
            for theme in ("light", "dark"):
                taken = view(browser, path, theme, what, further, height)
                (PICTURES / f"report_{name}_{theme}.png").write_bytes(taken)
        browser.close()
    WORDS.write_text("\n".join(report_words()) + "\n", encoding="utf-8", newline="\n")
    for picture in sorted(PICTURES.glob("report*.png")):
        print(picture, picture.stat().st_size)
