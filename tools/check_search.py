"""Check that the search of the built documentation finds the right page first for the words that users type.

Usage: ``python tools/check_search.py FOLDER``, the folder of the built site. Pages are ranked as by the site's search
box: a word of a page's title counts more than one of its text, a title or heading that contains all of the query most.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import snowballstemmer  # type: ignore  # it comes with Sphinx

EXPECTED = {
    "imbalanced": {"guide/imbalanced"},
    "hyperparameter": {"guide/tuning"},
    "tuning": {"guide/tuning"},
    "early stopping": {"guide/tuning", "guide/boosting"},
    "feature importance": {"guide/importances"},
    "recall": {"guide/imbalanced", "guide/report", "guide/evaluation_plots"},
    "export": {"guide/export"},
    "survival": {"guide/survival"},
    "GPU": {"faq", "performance"},
    "install": {"install"},
    "categorical": {"guide/categories"},
    "dates": {"guide/dates"},
    "reproducibility": {"reproducibility"},
    "changelog": {"changelog"},
}
TITLE, WORD_OF_TITLE, WORD_OF_TEXT = 15, 15, 5  # scores of the site's search box


def ranking(index: dict[str, Any], query: str) -> list[str]:
    """Return the pages that the search box lists for a query, the best first."""
    pages, scores = index["docnames"], Counter[str]()
    for title, places in index["alltitles"].items():
        text = title.lower()
        if query.lower() in text and 2 * len(query) >= len(text):
            for page, _ in places:
                name = pages[page]
                score = round(TITLE * len(query) / len(text)) + (index["titles"][page] == title)
                scores[name] = max(scores[name], score)
    stem = snowballstemmer.stemmer("english").stemWord
    words = [stem(word) for word in query.lower().split()]
    by_word = [Counter({pages[p]: score for p, score in scores_of(index, word).items()}) for word in words]
    for page in set.intersection(*(set(found) for found in by_word)):
        scores[page] = max(scores[page], max(found[page] for found in by_word))
    return [page for page, _ in sorted(scores.items(), key=lambda entry: (-entry[1], entry[0]))]


def scores_of(index: dict[str, Any], word: str) -> dict[int, int]:
    """Return the score of each page that contains a word."""
    found: dict[int, int] = {}
    for key, score in (("terms", WORD_OF_TEXT), ("titleterms", WORD_OF_TITLE)):
        pages = index[key].get(word, [])
        found |= dict.fromkeys([pages] if isinstance(pages, int) else pages, score)
    return found


def main(arguments: list[str]) -> int:
    """Print what each query finds; return 1 if the right page is not first for one of them."""
    text = (Path(arguments[0]) / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text[text.index("(") + 1 : text.rindex(")")])
    n_wrong = 0
    for query, expected in EXPECTED.items():
        found = ranking(index, query)
        is_right = bool(found) and found[0] in expected
        n_wrong += not is_right
        print(f"{'' if is_right else 'WRONG  '}{query}: {', '.join(found[:4]) or 'nothing'}")
    return min(n_wrong, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
