"""The check for retired words: what it flags, and what it leaves alone."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def check_words(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    sys.modules.pop("check_words", None)
    import check_words

    return check_words


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("def was_told(rows):", "told"),
        ("class WasTold:", "Told"),
        ("The models are judged by their folds.", "judged"),
        ("With nothing set, a forest has 100 trees.", "nothing set"),
        ("each with a thread of its own", "of its own"),
    ],
)
def test_a_retired_word_is_flagged_with_its_line(check_words, tmp_path, line, word):
    path = tmp_path / "module.py"
    path.write_text(f"first = 1\n{line}\n", encoding="utf-8")
    assert check_words.retired_words(path) == [(2, word)]
    assert check_words.replacement(word)


def test_a_phrase_on_two_lines_is_flagged(check_words, tmp_path):
    path = tmp_path / "module.py"
    path.write_text("# a fit with nothing\n# set, and more\n", encoding="utf-8")
    assert check_words.retired_words(path) == [(1, "nothing set")]


@pytest.mark.parametrize(
    "line",
    [
        "what the user wrote",
        "the predictions are evaluated on the same folds",
        "an index of kinds",
        "import soothsayer",
        "weights of the rows",
    ],
)
def test_other_words_are_not_flagged(check_words, tmp_path, line):
    path = tmp_path / "module.py"
    path.write_text(line + "\n", encoding="utf-8")
    assert check_words.retired_words(path) == []


def test_the_glossary_exists(check_words):
    text = (ROOT / check_words.GLOSSARY).read_text(encoding="utf-8")
    assert "| retired | used instead |" in text


def test_names_and_exit_status(check_words, capsys):
    assert check_words.main(["docs/contributing"]) == 0
    assert capsys.readouterr().out == "0 retired words\n"
