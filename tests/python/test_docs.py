"""Every example of the guide runs and prints what it says."""

import doctest
from pathlib import Path

import pytest

CHAPTERS = sorted((Path(__file__).parents[2] / "docs" / "guide").glob("*.rst"))
SIMULATIONS = (
    "bagging",
    "bias_variance",
    "comparing",
    "fragility",
    "pruning",
    "stacking",
    "study",
)  # hundreds of fits each


def quick_or_slow(chapter):
    return pytest.param(chapter, id=chapter.stem, marks=[pytest.mark.slow] * (chapter.stem in SIMULATIONS))


@pytest.mark.parametrize("chapter", [quick_or_slow(chapter) for chapter in CHAPTERS])
def test_the_examples_of_a_chapter_run(chapter):
    result = doctest.testfile(str(chapter), module_relative=False, encoding="utf-8")
    assert result.attempted > 10
    assert result.failed == 0


def test_every_picture_of_the_guide_exists():
    for chapter in CHAPTERS:
        for line in chapter.read_text(encoding="utf-8").splitlines():
            if line.startswith(".. image::"):
                assert (chapter.parent / line.split()[-1]).exists(), line
