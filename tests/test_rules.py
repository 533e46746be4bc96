"""docs/contributing/rules.md has every rule number that the repository cites, and every test it names exists."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.structure.named_tests import NAMED_TEST, ROOT, exists
from tests.support.cases import for_each
from tests.support.source import statements

PAGE = (ROOT / "docs" / "contributing" / "rules.md").read_text(encoding="utf-8")
RULE = re.compile(r"^\*\*([RLITG]\d+)\. .*?(?=^\*\*|^## |\Z)", re.MULTILINE | re.DOTALL)
RULES = {found[1]: found[0] for found in RULE.finditer(PAGE)}
LIKE_A_RULE = re.compile(r"[RLITG]\d{1,2}(?!\d)")
"""What has the form of a rule's number, anywhere: a search that is much faster than reading comments."""
CITED = re.compile(r"(?<![\w/`])([RLITG])(\d{1,2})(?:-\1(\d{1,2}))?\b(?!\.\d)")
SOURCES = ("barnabas", "wire", "storage", "coord", "broker", "tests", "bench", "compat")


def python_files() -> Iterator[Path]:
    for name in SOURCES:
        for path in sorted((ROOT / name).rglob("*.py")):
            if not any(parent.is_symlink() for parent in path.parents if parent != ROOT):
                yield path


def prose(source: str) -> Iterator[str]:
    """Comments and strings that stand alone (docstrings, also of attributes)."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
    for node in statements(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value


def cited_rules(text: str) -> set[str]:
    """The rules that a text cites; `L7-L9` are three."""
    return {
        f"{letter}{number}"
        for letter, first, last in CITED.findall(text)
        for number in range(int(first), int(last or first) + 1)
    }


def test_every_cited_rule_is_on_the_page() -> None:
    unknown = [
        (str(path.relative_to(ROOT)), rule)
        for path in python_files()
        if (source := path.read_text(encoding="utf-8")) and set(LIKE_A_RULE.findall(source)) - RULES.keys()
        for text in prose(source)
        for rule in cited_rules(text)
        if rule not in RULES
    ]
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        unknown += [(path.name, rule) for rule in cited_rules(text) if rule not in RULES]
    assert unknown == []


@for_each("rule", RULES)
def test_a_rule_names_a_source_and_tests_that_exist(rule: str) -> None:
    text = RULES[rule]
    assert "- Source: " in text
    tests = NAMED_TEST.findall(text)
    assert tests or "ot yet: cluster." in text, f"{rule} names no test"
    for file, name in tests:
        assert exists(file, name), f"{rule} names {file}::{name}, which does not exist"


def test_rules_are_numbered_without_gaps() -> None:
    for letter in "RLITG":
        numbers = [int(rule[1:]) for rule in RULES if rule[0] == letter]
        assert numbers == list(range(1, len(numbers) + 1))
