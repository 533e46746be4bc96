"""The comparison with other test kits, on Barnabas alone: figures, a part of the checks, and the text of the tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.testkits import report
from bench.testkits.__main__ import check
from bench.testkits.barnabas_kit import BarnabasKit
from bench.testkits.behaviours import Outcome, all_behaviours, attempt
from bench.testkits.measure import measure
from bench.testkits.product import Place, Product, Setup, UnsupportedError
from bench.testkits.products import PRODUCTS

FEW = ("round_trip", "commit_and_abort", "acls", "scram")


def test_a_run_gives_all_figures() -> None:
    with BarnabasKit() as product:
        figures = measure(product, tests=2)
    assert set(figures) == set(report.COLUMNS)
    assert 0 < figures["isolation ms"] < figures["test ms"]
    assert figures["memory MB"] > 10


def test_barnabas_passes_checks_of_several_setups() -> None:
    behaviours = all_behaviours()
    outcomes = check(BarnabasKit, [behaviours[name] for name in FEW])
    assert outcomes == dict.fromkeys(FEW, Outcome(True))


def test_a_check_that_does_not_hold_says_what_happened() -> None:
    with BarnabasKit() as product:
        place = product.start(keys={"log.message.timestamp.type": "LogAppendTime"})
        outcome = attempt("round_trip", place)
    assert outcome == Outcome(False, "AssertionError: other timestamps came back")


class Unable(BarnabasKit):
    """A product that has no log-ins."""

    def start(self, setup: Setup = Setup.USUAL, keys: object = None) -> Place:
        raise UnsupportedError("it has no log-ins")


def test_what_cannot_be_set_up_is_not_passed() -> None:
    outcomes = check(Unable, [all_behaviours()["scram"]])
    assert outcomes == {"scram": Outcome(False, "cannot be set up: it has no log-ins")}


@pytest.fixture
def two() -> dict[str, type[Product]]:
    return {"barnabas": BarnabasKit, "unable": Unable}


def test_the_table_of_times_has_medians_and_says_what_was_not_measured(two: dict[str, type[Product]]) -> None:
    runs = [dict.fromkeys(report.COLUMNS, value) for value in (1.0, 3.0, 2.0)]
    table = report.times_table(two, {"barnabas": runs})
    assert "| 2 (1–3) |" in table
    assert table.count("not measured") == 1
    assert "testcontainers, apache/kafka-native |  | not run" in table


def test_the_table_of_behaviours_counts_and_numbers_the_reasons(two: dict[str, type[Product]]) -> None:
    behaviours = {name: all_behaviours()[name] for name in FEW[:2]}
    passed = dict.fromkeys(behaviours, Outcome(True))
    outcomes = {"barnabas": passed, "unable": {**passed, "round_trip": Outcome(False, "a | b")}}
    table = report.behaviours_table(two, behaviours, outcomes)
    assert "| yes | no (1) |" in table
    assert "| **of 2** | **2** | **1** |" in table
    assert table.endswith("a \\| b")


def test_the_page_keeps_what_is_beside_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    begin, end = "<!-- times: begin -->", "<!-- times: end -->"
    page.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
    monkeypatch.setattr(report, "PAGE", page)
    report.write_page("times", "new")
    assert page.read_text() == f"before\n{begin}\n\nnew\n\n{end}\nafter\n"


def test_products_and_checks_have_names_of_their_own() -> None:
    titles = [one.title for one in all_behaviours().values()] + [one.title for one in PRODUCTS.values()]
    assert len(set(titles)) == len(titles)
