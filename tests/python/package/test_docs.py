"""Every page of the documentation can be reached and links to others."""

import posixpath
import re
from pathlib import Path

from spinney import _engine

DOCS = Path(__file__).parents[3] / "docs"
MADE_BY_THE_BUILD = {"_build", "_templates", "api"}
PAGES = {
    path.relative_to(DOCS).with_suffix("").as_posix(): path.read_text(encoding="utf-8")
    for path in sorted(DOCS.rglob("*.*"))
    if path.suffix in (".rst", ".md") and path.name != "README.md" and MADE_BY_THE_BUILD.isdisjoint(path.parts)
}


def test_every_picture_is_drawn_by_a_program():
    """The build draws them, so that none is stale; those of the report need a browser, and are in git."""
    programs = "".join(path.read_text(encoding="utf-8") for path in DOCS.parent.joinpath("tools").glob("*pictures*.py"))
    drawn = set(re.findall(r'"(\w+\.(?:png|svg))"', programs))
    shown = set()
    for name, text in PAGES.items():
        for picture in re.findall(r"^ *\.\. (?:image|figure):: (\S+)", text, re.MULTILINE):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(name), picture))
            assert posixpath.dirname(path) == "pictures", f"{name}: {picture}"
            shown.add(posixpath.basename(path))
    of_reports = {picture for picture in shown if picture.startswith("report")}
    assert shown - of_reports == drawn
    assert all((DOCS / "pictures" / picture).exists() for picture in of_reports)


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
        for picture, target in re.findall(r"figure:: (\S+)\n +:target: (\S+)\.html$", text, re.MULTILINE):
            assert posixpath.basename(picture) in PAGES[resolved(name, target)], f"{name}: {picture} is not on {target}"


def test_rows_of_tables_are_on_one_line():
    """In a simple table each line with text in the first column begins a row: a first cell cannot have two lines."""
    for name, text in PAGES.items():
        for table in re.findall(r"^(=+ +=[= ]*\n(?:.+\n)+?=+ +=[= ]*)\n\s*\n", text, re.MULTILINE):
            second = re.search("=+ +", table).end()
            for row in table.splitlines():
                is_whole = row[second:].strip() and not row[:second].rstrip().endswith((",", " and"))
                assert is_whole or not row[:second].strip(), f"{name}: the row {row!r} is cut; use a list-table"


def test_the_guide_lists_every_loss():
    table = (DOCS / "guide" / "losses.rst").read_text(encoding="utf-8").split("   * - loss\n")[1].split("\n\n")[0]
    listed = set(re.findall(r"^   \* - ``(\w+)``", table, re.MULTILINE))
    assert listed == {traits.public_name for traits in _engine.boosting_losses()}
