"""Every example of the documentation prints its expected output; every page can be reached and links to others."""

import doctest
import posixpath
import re
from pathlib import Path

import pytest
from spinney import _engine

DOCS = Path(__file__).parents[3] / "docs"
CHAPTERS = sorted((DOCS / "guide").glob("*.rst"))
OTHERS = [DOCS / f"{name}.rst" for name in ("install", "quickstart", "reproducibility")]
OTHERS += sorted((DOCS / "coming_from").glob("*.rst"))
MADE_BY_THE_BUILD = {"_build", "_templates", "api"}
PAGES = {
    path.relative_to(DOCS).with_suffix("").as_posix(): path.read_text(encoding="utf-8")
    for path in sorted(DOCS.rglob("*.*"))
    if path.suffix in (".rst", ".md") and path.name != "README.md" and MADE_BY_THE_BUILD.isdisjoint(path.parts)
}
SIMULATIONS = (
    "adaboost",
    "bagging",
    "bias_variance",
    "comparing",
    "explaining",
    "fragility",
    "pruning",
    "report",
    "stacking",
    "study",
)  # hundreds of fits each


def quick_or_slow(chapter):
    marks = [pytest.mark.slow] * (chapter.stem in SIMULATIONS)
    if chapter.stem == "cluster":
        marks.append(pytest.mark.filterwarnings("ignore"))  # of Dask and what it stands on
    return pytest.param(chapter, id=chapter.stem, marks=marks)


@pytest.mark.parametrize("chapter", [quick_or_slow(chapter) for chapter in CHAPTERS])
def test_the_examples_of_a_chapter_run(chapter):
    result = doctest.testfile(str(chapter), module_relative=False, encoding="utf-8")
    assert result.attempted > 10
    assert result.failed == 0


@pytest.mark.parametrize("page", OTHERS, ids=lambda page: page.stem)
def test_the_examples_of_other_pages_run(page):
    result = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert result.attempted > 1
    assert result.failed == 0


def test_every_picture_exists():
    for name, text in PAGES.items():
        for picture in re.findall(r"^ *\.\. (?:image|figure):: (\S+)", text, re.MULTILINE):
            assert ((DOCS / name).parent / picture).exists(), f"{name}: {picture}"


def entries(text):
    """Pages that the tables of contents of a page list."""
    blocks = re.findall(r"^\.\. toctree::\n(?:   :.*\n)*\n((?:   \S.*\n)+)", text, re.MULTILINE)
    blocks += re.findall(r"^```\{toctree\}\n(?::.*\n)*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [re.sub(r".*<(.*)>", r"\1", line.strip()) for block in blocks for line in block.split("\n") if line.strip()]


def resolved(name, target):
    """Page that a link of another page means."""
    return posixpath.normpath(target[1:] if target.startswith("/") else posixpath.join(posixpath.dirname(name), target))


def listed(name):
    for entry in entries(PAGES[name]):
        target = resolved(name, entry)
        if "*" in target:
            yield from (page for page in PAGES if re.fullmatch(target.replace("*", "[^/]*"), page) and page != name)
        else:
            yield target


def test_every_page_can_be_reached():
    reached, waiting = {"index"}, ["index"]
    while waiting:
        for target in listed(waiting.pop()):
            assert target in PAGES, target
            if target not in reached:
                reached.add(target)
                waiting.append(target)
    assert reached == set(PAGES)


def test_every_page_leads_on():
    for name, text in PAGES.items():
        links = re.findall(r":doc:`(?:[^`<]*<([^`>]+)>|([^`]+))`", text) + re.findall(r"\{doc\}`()([^`]+)`", text)
        targets = [resolved(name, full or plain) for full, plain in links]
        assert all(target in PAGES for target in targets), name
        if not name.startswith("decisions/0"):  # these are read one after the other
            assert len({*targets, *listed(name)} - {name}) >= 2, f"{name} leads nowhere"


def test_pictures_of_the_gallery_lead_to_pages():
    for name, text in PAGES.items():
        for target in re.findall(r"^ *:target: (\S+)\.html$", text, re.MULTILINE):
            assert resolved(name, target) in PAGES, f"{name}: {target}"


def test_the_guide_lists_every_loss():
    table = (
        (DOCS / "guide" / "boosting.rst")
        .read_text(encoding="utf-8")
        .split("   * - loss\n")[1]
        .split("\nLeaves take")[0]
    )
    listed = set(re.findall(r"^   \* - ``(\w+)``", table, re.MULTILINE))
    assert listed == {traits.public_name for traits in _engine.boosting_losses()}
