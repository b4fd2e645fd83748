"""A study as one HTML file that needs no network.

    page        the file: sections, template, styles, programs and data in one text; `write_report`
    view        a table as the tree reads it: numbers, texts, samples of rows
    overview, tree, explain, errors
                the sections: a study in, a dict of plain values out

The browser draws. What it is given is bounded: samples of rows, bins of curves, so that the file stays small whatever
the table. `assets` holds the programs of the page, and d3 and Observable Plot as their authors publish them.
"""

from spinney._evaluate.report.page import write_report

__all__ = ["write_report"]
