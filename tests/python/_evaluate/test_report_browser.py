"""Reports opened in a browser: both sliders moved, rows picked, nodes folded, the theme changed, printed."""

import shutil

import numpy as np
import pytest
import spinney
from report_stand_in import TABLES, stand_in
from spinney._evaluate.report import write_report

pytestmark = pytest.mark.slow
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), ""
)
if not CHROMIUM:
    pytest.skip("there is no Chromium here", allow_module_level=True)

EVIL = "</script><img src=x onerror=\"document.title='hacked'\">"


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    return {
        kind: write_report(stand_in(*make(), target), folder / f"{kind}.html")
        for kind, (make, target) in TABLES.items()
    }


@pytest.fixture
def open_report(browser):
    """Open a report; fail on console errors and on network requests."""
    pages, faults = [], []

    def opened(path, width=1400, **options):
        page = browser.new_context(viewport={"width": width, "height": 900}, **options).new_page()
        page.on(
            "console", lambda message: faults.append(message.text) if message.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda one: None if one.url.startswith(("file:", "data:")) else faults.append(one.url))
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]", timeout=60_000)
        pages.append(page)
        return page

    yield opened
    for page in pages:
        page.context.close()
    assert faults == []


def _figures(page, name):
    return page.locator(f"#{name} .figure").all_inner_texts()


def _set(slider, value):
    slider.fill(str(value))


def _nodes(page):
    page.wait_for_timeout(50)
    return page.locator(".tree-frame g.node").count()


@pytest.mark.parametrize("kind", TABLES)
def test_the_pruning_slider_moves_tree_and_errors_together(open_report, reports, kind):
    page = open_report(reports[kind])
    slider = page.locator("#prune-slider")
    before, n_before = _figures(page, "tree-figures"), _nodes(page)
    _set(slider, 0)
    alone = _figures(page, "tree-figures")
    assert alone[1] == "1"
    assert _nodes(page) == 1
    assert alone != before
    assert sum(a != b for a, b in zip(before, alone, strict=True)) == 5  # penalty, leaves, three errors
    slider.focus()
    page.keyboard.press("End")
    n_leaves = int(_figures(page, "tree-figures")[1].replace(",", ""))
    if n_leaves > 24:  # only the first levels are unfolded
        assert 3 <= _nodes(page) <= 15
        assert "+ " in page.locator(".tree-frame").inner_text()
    page.get_by_role("button", name="Chosen").click()
    assert _figures(page, "tree-figures") == before
    assert _nodes(page) == n_before
    page.get_by_role("button", name="Unfold all").click()
    _set(slider, int(slider.get_attribute("max")))
    assert n_leaves == (_nodes(page) + 1) / 2


@pytest.mark.parametrize("kind", TABLES)
def test_nodes_fold_by_pointer_and_by_keyboard(open_report, reports, kind):
    page = open_report(reports[kind])
    n_before = _nodes(page)
    first = page.locator('.tree-frame g.node[data-node="1"]')
    first.hover()
    assert "training rows" in page.locator(".node-panel").inner_text()
    rows_of_first = page.locator(".node-panel .figure").first.inner_text()
    root = page.locator('.tree-frame g.node[data-node="0"]')
    root.click()
    assert _nodes(page) == 1
    assert root.get_attribute("aria-expanded") == "false"
    assert page.locator(".node-panel .figure").first.inner_text() != rows_of_first
    page.keyboard.press("Enter")
    assert _nodes(page) == n_before
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.node") == "1"
    page.keyboard.press("ArrowRight")
    beside = page.evaluate("document.activeElement.dataset.node")
    assert beside not in ("0", "1")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.dataset.node") == "0"
    assert page.locator(".tree-frame g.node[tabindex='0']").count() == 1


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_the_cost_slider_moves_threshold_and_decisions(open_report, reports, kind):
    page = open_report(reports[kind])
    slider = page.locator("#cost-slider")
    if kind == "multiclass":  # of two species the model is too sure for costs to matter
        page.locator("#classification select").first.select_option(label="Chinstrap")

    def predicted_positive():
        return float(_figures(page, "cost-figures")[1].split()[0])

    seen = []
    for value in (-40, 0, 40):
        _set(slider, value)
        seen.append((float(_figures(page, "cost-figures")[0].replace("> 1", "1.01")), predicted_positive()))
    thresholds, fractions = zip(*seen, strict=True)
    assert sorted(thresholds, reverse=True) == list(thresholds)
    assert thresholds[0] > thresholds[2]
    assert sorted(fractions) == list(fractions)
    assert "16 false positives" in page.locator("#cost-ratio").inner_text()
    matrix = page.locator("#cost-matrix").inner_text()
    page.locator("#classification select").last.select_option("folds")
    assert page.locator("#cost-matrix").inner_text() != matrix


@pytest.mark.parametrize("kind", TABLES)
def test_a_row_is_picked_and_explained(open_report, reports, kind):
    page = open_report(reports[kind])
    before = (_figures(page, "row-figures"), page.locator("#shap .chart").last.inner_html())
    page.locator("#row-picker").select_option("3")
    assert page.locator("#shap .chart").last.inner_html() != before[1]
    page.get_by_role("button", name="Highest", exact=True).click()
    highest = page.locator("#row-picker").input_value()
    page.get_by_role("button", name="Lowest", exact=True).click()
    assert page.locator("#row-picker").input_value() != highest
    page.locator("#row-picker").select_option("3")
    spot = (
        page.locator("#shap .chart").first.locator("g[aria-label=dot]").first.locator("circle").nth(11).bounding_box()
    )
    page.mouse.move(spot["x"] + 3, spot["y"] + 3)
    page.mouse.click(spot["x"] + 3, spot["y"] + 3)
    assert page.locator("#row-picker").input_value() != "3"
    assert page.locator("#shap .chart").first.locator("circle[r='5.5']").count() > 0


def test_categories_are_named_and_scores_have_a_probability(open_report, reports):
    page = open_report(reports["binary"])
    legends = page.locator("#shap .categories").all_inner_texts()
    assert [text.split() for text in legends] == [["home", "own", "rent", "with", "parents"]]
    fills = "(e) => new Set([...e.querySelectorAll('circle')].map((c) => c.getAttribute('fill')))"
    fills = page.locator("#shap .chart").first.evaluate(f"(e) => [...({fills})(e)]")
    assert {"var(--category-0)", "var(--category-1)", "var(--category-2)", "var(--missing)"} <= set(fills)
    page.locator("#row-picker").select_option("3")
    assert "log-odds of class repaid" in page.locator("#row-figures").inner_text()
    shown = [text for text in _figures(page, "row-figures") if text.endswith(" %")]
    assert len(shown) == 2
    assert all(f"({text})" in page.locator("#shap .chart").last.text_content() for text in shown)


@pytest.mark.parametrize("kind", TABLES)
def test_a_row_is_changed_and_predicted_again(open_report, reports, kind):
    page = open_report(reports[kind])
    panel = page.locator("#what_if")
    before = _figures(page, "what_if")[0]
    for field in panel.locator("#what-if-fields select").all():
        field.select_option(index=0)
    for field in panel.locator("#what-if-fields input[type=number]").all():
        field.fill("1000000")
    assert _figures(page, "what_if")[0] != before
    assert "for the row as it is" in panel.inner_text()
    panel.get_by_role("button", name="Reset").click()
    assert _figures(page, "what_if")[0] == before
    assert panel.locator("svg").count() == 1


def test_shares_add_up_to_a_hundred(open_report, reports):
    page = open_report(reports["multiclass"])
    shares = [text.split("·")[1] for text in page.locator("#data .chart text").all_text_contents() if "·" in text]
    assert len(shares) == 3
    assert sum(int(text.strip(" %")) for text in shares) == 100
    cells = page.locator("#cost-matrix td div").all_inner_texts()
    assert sum(float(text.strip(" %")) for text in cells) == pytest.approx(100)


def test_names_of_interactions_are_whole(open_report, reports):
    page = open_report(reports["multiclass"], width=1280)
    names = (
        page.locator("#importances .chart").last.locator("[aria-label='y-axis tick label'] text").all_text_contents()
    )
    assert any("flipper_length_mm" in name and "×" in name for name in names)
    assert not any("…" in name for name in names)


def test_the_theme_follows_the_system_and_the_switch(open_report, reports):
    page = open_report(reports["binary"], color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    page.get_by_role("button", name="Light", exact=True).click()
    light = page.evaluate(background)
    assert light != dark
    page.emulate_media(color_scheme="light")
    page.get_by_role("button", name="Dark", exact=True).click()
    assert page.evaluate(background) == dark
    page.get_by_role("button", name="Auto", exact=True).click()
    assert page.evaluate(background) == light


@pytest.mark.parametrize("kind", TABLES)
def test_reports_print_and_fit_narrow_screens(open_report, reports, kind, tmp_path):
    page = open_report(reports[kind], width=420)
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    pdf = page.pdf(path=tmp_path / "report.pdf", format="A4")
    assert pdf.startswith(b"%PDF")
    assert len(pdf) > 50_000


@pytest.mark.parametrize("kind", TABLES)
def test_every_control_has_a_name_and_ids_are_single(open_report, reports, kind):
    page = open_report(reports[kind])
    nameless = """() => [...document.querySelectorAll('button, input, select, a')].filter((e) =>
      !(e.innerText || e.getAttribute('aria-label') || e.closest('label')?.innerText || '').trim()).length"""
    assert page.evaluate(nameless) == 0
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids))
    links = page.evaluate("[...document.querySelectorAll('nav a')].map((a) => document.querySelector(a.hash) !== null)")
    assert len(links) >= 8
    assert all(links)


def test_text_of_the_table_is_not_executed(open_report, tmp_path):
    rng = np.random.default_rng(0)
    X = {EVIL: rng.choice([EVIL, "<b>bold</b>", "&amp;"], 160).astype(object), "<svg onload=alert(1)>": rng.random(160)}
    y = np.where((X[EVIL] == EVIL) ^ (rng.random(160) < 0.1), EVIL, "no")
    page = open_report(write_report(stand_in(X, y, EVIL), tmp_path / "evil.html"))
    assert "hacked" not in page.title()[:6]
    assert page.locator("main img, main b b, svg[onload]").count() == 0
    page.locator('.tree-frame g.node[data-node="0"]').hover()
    _set(page.locator("#prune-slider"), 0)
    _set(page.locator("#cost-slider"), 20)
    assert EVIL in page.locator("h1").inner_text()


@pytest.mark.timeout(600)
def test_a_hundred_thousand_rows_stay_below_two_megabytes(open_report, tmp_path):
    rng = np.random.default_rng(0)
    X = {f"column {j}": rng.normal(size=100_000).astype(np.float32) for j in range(12)}
    X["place"] = rng.choice([f"place {k}" for k in range(40)], 100_000).astype(object)
    y = X["column 0"] * 2 + np.abs(X["column 1"]) + (X["place"] == "place 3") + rng.normal(size=100_000)
    path = write_report(stand_in(X, y.astype(float), "value", n_folds=2, n_trees=4), tmp_path / "large.html")
    assert path.stat().st_size < 2_000_000
    page = open_report(path)
    _set(page.locator("#prune-slider"), 2)
    assert _figures(page, "tree-figures")[1] != ""


def test_a_study_writes_a_report_that_opens(open_report, tmp_path):
    X, y = TABLES["multiclass"][0]()
    study = spinney.study(X.assign(species=y), "species", models=["tree", "forest"], cv=3, repeats=1)
    page = open_report(study.report(tmp_path / "study.html"))
    assert page.title() == "Predicting species"
    assert page.locator("#leaderboard tbody tr").count() == len(study.leaderboard)
    assert "species" in page.locator("#reproduce").inner_text()
    assert page.locator("section.part").count() == 13
