"""A study as one HTML file that needs no network.

    page        the HTML file: sections, template, styles, scripts and data; `write_report`
    view        a table read with the schema of the tree: numbers, texts, samples of rows
    overview, tree, explain, errors
                the data of the sections: a study in, a dict of plain values out

The charts are drawn in the browser. Their data are bounded (samples of rows, binned curves), so that the file stays
small for any table. `assets` holds the scripts of the page, and unmodified copies of d3 and Observable Plot.
"""

from spinney._evaluate.report.page import write_report

__all__ = ["write_report"]
