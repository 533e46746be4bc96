"""Selects records: by a regular expression (RE2, linear time) and by an expression over their fields.

An expression is Python's without its power: comparisons, and/or/not, arithmetic, `in`, fields of JSON objects
(`value.amount`, `value['amount']`) and a few functions. It cannot call anything else, so expressions of others may be
run. A record without a field that the expression uses, or with one of another type, does not match and is counted.
"""

from __future__ import annotations

import ast
import json
import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import click

from barnabas.cli.options.regex import compile_regex
from barnabas.terminal.suggestion import suggestion
from barnabas.wire.batches.records import Record

Matches = Callable[["tuple[str, int]", "Record"], bool]

NAMES = ("topic", "partition", "offset", "timestamp", "key", "value", "text", "headers")
"""`text` is the value as text; `value` is its content where it is JSON, otherwise the text."""
_STRING_METHODS = ("startswith", "endswith", "lower", "upper")
_SYNTAX = (ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call, ast.Subscript, ast.Attribute, ast.Name)
_LITERALS = (ast.Constant, ast.List, ast.Tuple, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context)
_REFUSED_OPERATORS = (ast.Pow, ast.LShift, ast.RShift, ast.MatMult)


class Missing(Exception):  # noqa: N818 (what a record lacks, not an error)
    """The record lacks a field of the expression."""


def grep(pattern: str, invert: bool = False) -> Matches:
    """True for records whose key or value has a match; with `invert` for the others."""
    search = compile_regex(pattern, "--grep").search

    def matches(_partition: tuple[str, int], record: Record) -> bool:
        matches = any(text is not None and search(text) is not None for text in (record.value, record.key))
        return matches is not invert

    return matches


class Filter:
    """A compiled expression; `unusable` counts the records that lack a field or have one of another type."""

    def __init__(self, expression: str) -> None:
        self.expression = expression
        self.unusable = 0
        try:
            self._tree = ast.parse(expression.strip(), mode="eval").body
        except (SyntaxError, ValueError) as error:
            reason = error.msg if isinstance(error, SyntaxError) else str(error)
            raise _refused(f"{expression!r} is not an expression: {reason}") from None
        self._functions: dict[str, Callable[..., Any]] = {
            "len": len, "int": int, "float": float, "str": str, "abs": abs, "matches": _matches
        }  # fmt: skip
        _check(self._tree, self._functions)
        self._evaluator = _evaluator(self._functions)
        from simpleeval import InvalidExpression

        # A field is missing or has another type, or a value of the record is too large to calculate with.
        self._no_match = (
            Missing, TypeError, ValueError, LookupError, ArithmeticError, RecursionError, InvalidExpression
        )  # fmt: skip

    def __call__(self, partition: tuple[str, int], record: Record) -> bool:
        """True if the expression is true for this record."""
        self._evaluator.names = _Fields(partition, record)
        try:
            return bool(self._evaluator.eval(self.expression, previously_parsed=self._tree))
        except self._no_match:
            self.unusable += 1
            return False


def _refused(sentence: str) -> click.BadParameter:
    return click.BadParameter(sentence, param_hint="--filter")


def _check(tree: ast.expr, functions: dict[str, Callable[..., Any]]) -> None:
    """Refuse names and syntax that no record could satisfy, before the first record is read."""
    called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if not isinstance(node, _SYNTAX + _LITERALS) or isinstance(node, _REFUSED_OPERATORS):
            raise _refused(f"{type(node).__name__} is not possible in an expression")
        if isinstance(node, ast.Name):
            known = list(functions) if node in called else list(NAMES)
            if node.id not in known:
                kind = "function" if node in called else "name"
                raise _refused(f"knows no {kind} {node.id!r}{suggestion(node.id, known)}; there are {', '.join(known)}")
        if isinstance(node, ast.Call) and not isinstance(node.func, ast.Name | ast.Attribute):
            raise _refused("only functions of a name can be called")
        if isinstance(node, ast.Attribute) and node in called and node.attr not in _STRING_METHODS:
            raise _refused(f"knows no method {node.attr!r}; there are {', '.join(_STRING_METHODS)}")


def _evaluator(functions: dict[str, Callable[..., Any]]) -> Any:
    from simpleeval import DEFAULT_OPERATORS, SimpleEval

    operators = {kind: function for kind, function in DEFAULT_OPERATORS.items() if kind not in _REFUSED_OPERATORS}
    operators[ast.Mod] = _modulo
    evaluator = SimpleEval(operators=operators, functions=functions)

    def attribute(node: ast.Attribute) -> Any:
        value = evaluator._eval(node.value)
        return _field(value, node.attr)

    def items(node: ast.List | ast.Tuple) -> list[Any]:
        return [evaluator._eval(item) for item in node.elts]

    evaluator.nodes[ast.Attribute] = attribute
    evaluator.nodes[ast.List] = evaluator.nodes[ast.Tuple] = items
    return evaluator


def _field(value: Any, name: str) -> Any:
    """`value.name`: a field of an object, or a method of a text."""
    if isinstance(value, str):
        if name in _STRING_METHODS:
            return getattr(value, name)
        value = _parsed(value)
    if isinstance(value, dict) and name in value:
        return value[name]
    raise Missing(name)


def _modulo(dividend: Any, right: Any) -> Any:
    """Of numbers only: a text of a record is no format string."""
    if isinstance(dividend, str):
        raise TypeError("the remainder of a text")
    return operator.mod(dividend, right)


@lru_cache(100)
def _compiled(pattern: str) -> Any:
    return compile_regex(pattern, "--filter")


def _matches(text: str, pattern: str) -> bool:
    """`matches(text, 'regex')`."""
    return _compiled(pattern).search(text.encode()) is not None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


class _Fields(dict[str, Any]):
    """The names of an expression for one record; values are decoded when they are used."""

    def __init__(self, partition: tuple[str, int], record: Record) -> None:
        super().__init__()
        self.partition = partition
        self.record = record

    def __missing__(self, name: str) -> Any:
        value = self[name] = self._get(name)
        return value

    def _get(self, name: str) -> Any:
        record = self.record
        match name:
            case "topic":
                return self.partition[0]
            case "partition":
                return self.partition[1]
            case "offset":
                return record.offset
            case "timestamp":
                return record.timestamp
            case "key":
                return _text(record.key)
            case "text":
                return _text(record.value)
            case "value":
                text = _text(record.value)
                return None if text is None else _parsed(text)
            case "headers":
                return {header: _text(value) for header, value in record.headers}
        raise KeyError(name)


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")
