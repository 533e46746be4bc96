"""Rows in a given width: columns beside each other, wrapped cells, or a block a row; never a broken word."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from barnabas.terminal.layout import cell_width, lay_out, wrap

TITLES = ["TOPIC", "PARTITIONS", "TOPIC-ID"]
ROWS = [["orders", "12", "b3BO3ipPRD6cLOrb1X8OoA"], ["greetings", "3", "xm5D0iquQ1aWQ8u5xqH09Q"]]
NUMERIC = [False, True, False]


def test_columns_that_fit_are_a_table() -> None:
    assert lay_out(TITLES, ROWS, NUMERIC, 60) == [
        "TOPIC      PARTITIONS  TOPIC-ID",
        "orders             12  b3BO3ipPRD6cLOrb1X8OoA",
        "greetings           3  xm5D0iquQ1aWQ8u5xqH09Q",
    ]


def test_without_a_width_nothing_is_wrapped() -> None:
    lines = lay_out(["A", "B"], [["x" * 200, "one two " * 50]], [False, False], None)
    assert len(lines) == 2


def test_cells_with_several_words_are_wrapped() -> None:
    assert lay_out(["JOB", "WHAT"], [["etl", "reads a topic and writes files"]], [False, False], 20) == [
        "JOB  WHAT",
        "etl  reads a topic",
        "     and writes",
        "     files",
    ]


def test_lists_in_cells_are_wrapped_behind_their_commas() -> None:
    lines = lay_out(["ID", "NODES"], [["1", "alpha,beta,gamma"]], [False] * 2, 15)
    assert lines == ["ID  NODES", "1   alpha,beta,", "    gamma"]


def test_numbers_in_sentences_are_not_wrapped_at_their_commas() -> None:
    assert wrap("there are 1,234,567 records", 16) == ["there are", "1,234,567", "records"]


def test_a_few_long_names_have_lines_of_their_own() -> None:
    rows = [["retention.ms", "604800000", "default"], ["leader.replication.throttled.replicas", "", "default"]]
    assert lay_out(["KEY", "VALUE", "SOURCE"], rows, [False] * 3, 40) == [
        "KEY                   VALUE      SOURCE",
        "retention.ms          604800000  default",
        "leader.replication.throttled.replicas",
        "                                 default",
    ]


def test_columns_that_do_not_fit_are_a_block_a_row() -> None:
    assert lay_out(TITLES, ROWS, NUMERIC, 40) == [
        "TOPIC       orders",
        "PARTITIONS  12",
        "TOPIC-ID    b3BO3ipPRD6cLOrb1X8OoA",
        "",
        "TOPIC       greetings",
        "PARTITIONS  3",
        "TOPIC-ID    xm5D0iquQ1aWQ8u5xqH09Q",
    ]


def test_a_word_too_long_for_its_title_is_on_the_next_line() -> None:
    assert lay_out(TITLES, ROWS[:1], NUMERIC, 25)[-2:] == ["TOPIC-ID", "  b3BO3ipPRD6cLOrb1X8OoA"]


def test_wide_characters_take_two_columns() -> None:
    assert lay_out(["G", "N"], [["日本", "1"], ["ab", "22"]], [False, True], 60)[1:] == ["日本   1", "ab    22"]


WORDS = st.lists(st.text("abcé日", min_size=1, max_size=30), max_size=6)


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), max_size=4), st.integers(20, 100))
def test_no_word_is_broken_and_only_long_words_are_wider_than_the_screen(rows: list, width: int) -> None:
    cells = [[" ".join(words) for words in row] for row in rows]
    lines = lay_out(["A", "B", "C"], cells, [False] * 3, width)
    shown = {word for line in lines for word in line.split()}
    assert {word for row in rows for words in row for word in words} <= shown
    for line in lines:
        assert cell_width(line) <= width or len(line.split()) == 1
