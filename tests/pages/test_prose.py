"""All pages: one sentence a line, no line wider than 120 characters, and no table of sentences with many columns.

Blocks of code, tables, and lines that are one link or one piece of code may be wider.
"""

from __future__ import annotations

from scripts.pages.prose import format_page, paragraph, sentences
from tests.support.blocks import ROOT, markdown_files
from tests.support.cases import for_each

COLUMNS = 3
OTHERWISE: dict[str, str] = {}
"""Pages in another form, each with the reason."""
ABBREVIATIONS = ("part.", "conn.", "cons.", "prod.", "rec.")


def cells_with_sentences(page: str) -> list[str]:
    """The cells of tables with more than three columns that are sentences."""
    return [
        f"{number}: {cell}"
        for number, line in enumerate(page.splitlines(), 1)
        if line.startswith("| ") and line.count(" | ") >= COLUMNS
        for cell in (cell.strip() for cell in line.strip("|").split(" | "))
        if " " in cell and ((cell.endswith(".") and not cell.endswith(ABBREVIATIONS)) or len(list(sentences(cell))) > 1)
    ]


@for_each("name", [name for name in markdown_files() if name not in OTHERWISE])
def test_a_page_has_one_sentence_a_line(name: str) -> None:
    page = (ROOT / name).read_text(encoding="utf-8")
    assert page == format_page(page), f"run `python -m scripts.pages.prose {name}`"
    assert cells_with_sentences(page) == []


def test_sentences_in_a_table_of_many_columns_are_found() -> None:
    assert cells_with_sentences("| A b. | c | d |\n| A b. | 1.5 | c. | d e. F |\n| 1 part. | 2 | 3 | 4 |\n") == [
        "2: A b.", "2: d e. F",
    ]  # fmt: skip


def test_text_is_formatted_and_nothing_else() -> None:
    page = """\
# A. Heading

One. Two
goes on. Three
- an item. `Its. Code`
  goes on
1. another. One
   ```sh
   echo a. B
   ```
<!-- a. Comment
of. Two lines -->
| a. B |
[label]: a. B

    code. Of
    two lines
"""
    assert (
        format_page(page)
        == """\
# A. Heading

One.
Two goes on.
Three
- an item.
  `Its. Code` goes on
1. another.
   One
   ```sh
   echo a. B
   ```
<!-- a. Comment
of. Two lines -->
| a. B |
[label]: a. B

    code. Of
    two lines
"""
    )


@for_each(
    ("text", "lines"),
    [
        (
            "One. Two! `Three.` [Four. Five](x) (Six.) Seven",
            ["One.", "Two!", "`Three.` [Four. Five](x) (Six.)", "Seven"],
        ),
        ("It is 1.5 s, e.g. Monday ... Then", ["It is 1.5 s, e.g. Monday ... Then"]),
        ("**R1. One.** Two", ["**R1. One.**", "Two"]),
        (f"{'a' * 70}, {'b' * 30} {'c' * 30}", ["a" * 70 + ",", f"{'b' * 30} {'c' * 30}"]),
        (f"{'a' * 110} - {'b' * 30}", ["a" * 110 + " -", "b" * 30]),
        (f"{'a' * 130} b", ["a" * 130, "b"]),
        (f"{'a' * 100} `{'b ' * 20}`", ["a" * 100, f"`{'b ' * 20}`"]),
    ],
)
def test_paragraphs_have_one_sentence_a_line(text: str, lines: list[str]) -> None:
    assert paragraph(text).split("\n") == lines
    assert paragraph(text, "- ", "  ").split("\n") == [f"{'  ' if n else '- '}{line}" for n, line in enumerate(lines)]
