"""A study as one HTML file that needs no network.

    report         what the file says, gathered section by section; `write_report`
    page           the file: template, styles, programs and data in one text
    encode         plain values as JSON that is safe inside HTML
    view           a table through the eyes of the tree: numbers, texts, samples of rows
    <section>      one module per section: plain data in, a dict of plain values out

The browser draws. What it is given is bounded: samples of rows, bins of curves, so that the file stays small whatever
the table. `assets` holds the programs of the page, and d3 and Observable Plot as their authors publish them.
"""

from spinney._evaluate.report.report import write_report

__all__ = ["write_report"]
