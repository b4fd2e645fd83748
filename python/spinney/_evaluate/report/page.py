"""The HTML file: one text that holds styles, programs and data, and forbids the browser to fetch anything."""

from __future__ import annotations

import base64
import hashlib
from html import escape
from importlib.resources import files

from spinney._evaluate.report.encode import to_json

_STYLES = ("report.css", "tree.css", "print.css")
_LIBRARIES = ("d3.min.js", "plot.umd.min.js")
_PROGRAMS = ("base.js", "charts.js", "board.js", "tree.js", "explain.js", "decide.js", "rest.js", "page.js")


def asset(name: str) -> str:
    """Read a file that comes with the report."""
    return (files("spinney._evaluate.report") / "assets" / name).read_text(encoding="utf-8")


def page(data: object, title: str, sentences: list[str]) -> str:
    """Write the page.

    Only the programs that stand here may run: the policy names them by their digests. A text that came in with the
    table could not run even if it became a tag, and nothing can be fetched or sent.

    Parameters
    ----------
    data : dict or dataclass
        What the programs draw.
    title : str
        Of the page.
    sentences : list of str
        The answer, readable without any program.
    """
    programs = [asset(name) for name in _LIBRARIES]
    programs.append("(() => {\n'use strict';\n" + "\n".join(asset(name) for name in _PROGRAMS) + "})();\n")
    allowed = " ".join(f"'sha256-{_digest(program)}'" for program in programs)
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {allowed}"
    holes = {
        "policy": escape(policy, quote=True),
        "title": escape(title),
        "styles": "\n".join(asset(name) for name in _STYLES),
        "answer": "\n".join(f"<p>{escape(sentence)}</p>" for sentence in sentences),
        "data": to_json(data),
        "programs": "\n".join(f"<script>{program}</script>" for program in programs),
    }
    return _filled(asset("template.html"), holes)


def _filled(template: str, holes: dict[str, str]) -> str:
    """Put texts into the places ``{{name}}``; a text is never searched for places itself."""
    parts = template.split("{{")
    text = [parts[0]]
    for part in parts[1:]:
        name, _, rest = part.partition("}}")
        text += [holes[name], rest]
    return "".join(text)


def _digest(program: str) -> str:
    return base64.b64encode(hashlib.sha256(program.encode("utf-8")).digest()).decode("ascii")
