"""An expression over a record's fields: the language of `consume --filter` and of the console's filters.

It is Python's without its power: comparisons, and/or/not, arithmetic, `in`, fields of JSON objects (`value.amount`,
`value['amount']`) and a few functions. It cannot call anything else, and its work is bounded by the sizes of the
expression and of the record, so expressions of others may be run. A record without a field that the expression uses, or
with one of another type, does not match and is counted.

The syntax tree is compiled once, to nested functions of a `Fields`: about a microsecond for a record. Of a JSON object
only the fields that the expression names are decoded, 0.4 microseconds for 200 bytes; a whole one takes 1.5. Searching
the bytes for names and texts before they are decoded was tried: it saved nothing.
"""

from __future__ import annotations

import ast
import json
import operator
from collections.abc import Callable
from typing import Any, TypedDict

import msgspec.json

from barnabas.client.records.patterns import cached_pattern
from barnabas.terminal.suggestion import suggestion
from barnabas.wire.batches.records import Header, Record

NAMES = ("topic", "partition", "offset", "timestamp", "key", "value", "text", "headers")
"""`text` is the value as text; `value` is its content where it is JSON, otherwise the text."""
MAX_LENGTH = 4000
"""The longest expression, in characters."""
MAX_PARSED_BYTES = 4 * 1024 * 1024
"""A longer key or value is not parsed: it is its text. The parser holds the interpreter's lock."""
MAX_INTEGER_BITS = 4096

_STRING_METHODS = ("startswith", "endswith", "lower", "upper")
_SYNTAX = (ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call, ast.Subscript, ast.Attribute, ast.Name)
_LITERALS = (ast.Constant, ast.List, ast.Tuple, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context)
_REFUSED = (ast.Pow, ast.LShift, ast.RShift, ast.MatMult)

Evaluate = Callable[["Fields"], Any]
Decode = Callable[[bytes], Any]


class Missing(Exception):  # noqa: N818 (what a record lacks, not an error)
    """The record lacks a field of the expression."""


NO_MATCH = (Missing, TypeError, ValueError, LookupError, ArithmeticError, RecursionError)
"""A field is missing or has another type, or a value of the record is too large to calculate with."""
_NOT_DECODED: Any = object()
_decode_json = msgspec.json.Decoder().decode


class Fields:
    """The names of an expression for one record. The content of key and value is decoded when it is used."""

    __slots__ = ("_decode", "_value", "headers", "key", "offset", "partition", "raw_value", "timestamp", "topic")

    def __init__(self, decode: Decode) -> None:
        self._decode = decode
        self.set("", 0, 0, 0, None, None, [])

    def set(
        self,
        topic: str,
        partition: int,
        offset: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: list[Header],
    ) -> None:
        """Use these fields from now on."""
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.raw_value = value
        self.headers = headers
        self._value = _NOT_DECODED

    def value(self) -> Any:
        """The content of the value; decoded once."""
        content = self._value
        if content is _NOT_DECODED:
            raw = self.raw_value
            content = self._value = None if raw is None else self._decode(raw)
        return content


_NAME_VALUES: dict[str, Evaluate] = {
    "topic": operator.attrgetter("topic"),
    "partition": operator.attrgetter("partition"),
    "offset": operator.attrgetter("offset"),
    "timestamp": operator.attrgetter("timestamp"),
    "key": lambda fields: _text(fields.key),
    "value": Fields.value,
    "text": lambda fields: _text(fields.raw_value),
    "headers": lambda fields: {name: _text(value) for name, value in fields.headers},
}


class Filter:
    """A compiled expression. ValueError with a sentence if it is none.

    `decode` gives the content of a value's bytes; by default JSON, or text. `unusable` counts the records that lack a
    field or have one of another type.
    """

    def __init__(self, expression: str, decode: Decode | None = None) -> None:
        self.expression = expression
        self.unusable = 0
        tree = _parse(expression)
        self._evaluate = _compile(tree)
        self._fields = Fields(decode or _decoder_of(tree))

    def __call__(self, partition: tuple[str, int], record: Record) -> bool:
        """True if the expression is true for this record."""
        return self.matches(
            partition[0], partition[1], record.offset, record.timestamp, record.key, record.value, record.headers
        )

    def matches(
        self,
        topic: str,
        partition: int,
        offset: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: list[Header],
    ) -> bool:
        """As the call, without an object for the record."""
        fields = self._fields
        fields.set(topic, partition, offset, timestamp, key, value, headers)
        try:
            return bool(self._evaluate(fields))
        except NO_MATCH:
            self.unusable += 1
            return False


# --- syntax


def _parse(expression: str) -> ast.expr:
    """The checked syntax tree. Names and syntax that no record could satisfy are refused before one is read."""
    if len(expression) > MAX_LENGTH:
        raise ValueError(f"the expression has {len(expression)} characters, more than {MAX_LENGTH}")
    try:
        tree = ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise ValueError(f"{expression!r} is not an expression: {reason}") from None
    _check(tree)
    return tree


def _check(tree: ast.expr) -> None:
    called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if not isinstance(node, _SYNTAX + _LITERALS) or isinstance(node, _REFUSED):
            raise ValueError(f"{type(node).__name__} is not possible in an expression")
        if isinstance(node, ast.Name):
            known = list(_FUNCTIONS) if node in called else list(NAMES)
            if node.id not in known:
                kind = "function" if node in called else "name"
                raise ValueError(
                    f"knows no {kind} {node.id!r}{suggestion(node.id, known)}; there are {', '.join(known)}"
                )
        if isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Name | ast.Attribute):
                raise ValueError("only functions of a name can be called")
            if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
                raise ValueError("arguments of functions have no names")
        if isinstance(node, ast.Attribute) and node in called and node.attr not in _STRING_METHODS:
            raise ValueError(f"knows no method {node.attr!r}; there are {', '.join(_STRING_METHODS)}")


# --- from syntax to functions


def _compile(node: ast.expr) -> Evaluate:
    """The function of a node."""
    return _COMPILERS[type(node)](node)


def _constant(node: ast.Constant) -> Evaluate:
    value = node.value
    return lambda _: value


def _name(node: ast.Name) -> Evaluate:
    return _NAME_VALUES[node.id]


def _sequence(node: ast.List | ast.Tuple) -> Evaluate:
    if all(isinstance(item, ast.Constant) for item in node.elts):
        constants = [item.value for item in node.elts if isinstance(item, ast.Constant)]
        return lambda _: constants
    items = [_compile(item) for item in node.elts]
    return lambda fields: [item(fields) for item in items]


def _attribute(node: ast.Attribute) -> Evaluate:
    name = node.attr
    if isinstance(node.value, ast.Name) and node.value.id == "headers":
        return lambda fields: _header(fields, name)
    content = _compile(node.value)

    def attribute(fields: Fields) -> Any:
        value = content(fields)
        if type(value) is dict and name in value:
            return value[name]
        return _field(value, name)

    return attribute


def _header(fields: Fields, name: str) -> str | None:
    """The value of the last header of this name, as a dictionary would have it."""
    for header, value in reversed(fields.headers):
        if header == name:
            return _text(value)
    raise Missing(name)


def _subscript(node: ast.Subscript) -> Evaluate:
    content, key = _compile(node.value), _compile(node.slice)
    return lambda fields: content(fields)[key(fields)]


def _call(node: ast.Call) -> Evaluate:
    arguments = [_compile(argument) for argument in node.args]
    if isinstance(node.func, ast.Name):
        function = _FUNCTIONS[node.func.id]
        return lambda fields: function(*[argument(fields) for argument in arguments])
    method = _compile(node.func)
    return lambda fields: _called(method(fields), [argument(fields) for argument in arguments])


def _called(method: Any, arguments: list[Any]) -> Any:
    """A field with the name of a method is not called."""
    if not callable(method):
        raise TypeError("not a method of a text")
    return method(*arguments)


def _bool_operation(node: ast.BoolOp) -> Evaluate:
    terms = [_compile(value) for value in node.values]
    ends_with = isinstance(node.op, ast.Or)

    def combined(fields: Fields) -> Any:
        result: Any = not ends_with
        for term in terms:
            result = term(fields)
            if bool(result) is ends_with:
                return result
        return result

    return combined


def _unary_operation(node: ast.UnaryOp) -> Evaluate:
    operand, apply = _compile(node.operand), _UNARY[type(node.op)]
    return lambda fields: apply(operand(fields))


def _binary_operation(node: ast.BinOp) -> Evaluate:
    left, right, apply = _compile(node.left), _compile(node.right), _BINARY[type(node.op)]
    return lambda fields: apply(left(fields), right(fields))


def _comparison(node: ast.Compare) -> Evaluate:
    left = _compile(node.left)
    if len(node.ops) == 1:
        compare, right = _COMPARISONS[type(node.ops[0])], _compile(node.comparators[0])
        if isinstance(node.comparators[0], ast.Constant):
            constant = node.comparators[0].value
            return lambda fields: compare(left(fields), constant)
        return lambda fields: compare(left(fields), right(fields))
    steps = [(_COMPARISONS[type(op)], _compile(item)) for op, item in zip(node.ops, node.comparators, strict=True)]

    def chain(fields: Fields) -> bool:
        lower = left(fields)
        for compare, item in steps:
            upper = item(fields)
            if not compare(lower, upper):
                return False
            lower = upper
        return True

    return chain


def _condition(node: ast.IfExp) -> Evaluate:
    test, body, otherwise = _compile(node.test), _compile(node.body), _compile(node.orelse)
    return lambda fields: body(fields) if test(fields) else otherwise(fields)


_COMPILERS: dict[type[ast.expr], Callable[[Any], Evaluate]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.List: _sequence,
    ast.Tuple: _sequence,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Call: _call,
    ast.BoolOp: _bool_operation,
    ast.UnaryOp: _unary_operation,
    ast.BinOp: _binary_operation,
    ast.Compare: _comparison,
    ast.IfExp: _condition,
}


# --- what operators and functions do


def _field(value: Any, name: str) -> Any:
    """`value.name`: a field of an object, or a method of a text."""
    if isinstance(value, str):
        if name in _STRING_METHODS:
            return getattr(value, name)
        value = parsed(value)
    if isinstance(value, dict) and name in value:
        return value[name]
    raise Missing(name)


def _modulo(dividend: Any, divisor: Any) -> Any:
    """Of numbers only: a text of a record is no format string."""
    if isinstance(dividend, str):
        raise TypeError("the remainder of a text")
    return operator.mod(dividend, divisor)


def _multiply(left: Any, right: Any) -> Any:
    """Of numbers only: a text or list that is repeated could fill the memory."""
    for factor in (left, right):
        if not isinstance(factor, int | float):
            raise TypeError("a product of something that is no number")
        if isinstance(factor, int) and factor.bit_length() > MAX_INTEGER_BITS:
            raise OverflowError("a product of large numbers")
    return left * right


def _matches(text: str, pattern: str) -> bool:
    """`matches(text, 'regex')`."""
    return cached_pattern(pattern).search(text.encode()) is not None


def _contains(item: Any, container: Any) -> bool:
    return operator.contains(container, item)


_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.Not: operator.not_, ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert
}  # fmt: skip
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: _multiply,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: _modulo,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: _contains,
    ast.NotIn: lambda item, container: not _contains(item, container),
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "len": len, "int": int, "float": float, "str": str, "abs": abs, "matches": _matches
}  # fmt: skip


# --- content


def _decoder_of(tree: ast.expr) -> Decode:
    """Decodes what the expression uses of a value: some fields if it is an object, otherwise everything."""
    names = _fields_of_value(tree)
    if not names:
        return parsed
    fields = TypedDict("fields", dict.fromkeys(names, Any), total=False)  # type: ignore[misc]
    decode = msgspec.json.Decoder(fields).decode

    def decode_fields(content: bytes) -> Any:
        if len(content) <= MAX_PARSED_BYTES:
            try:
                return decode(content)
            except ValueError:
                pass  # no object, or no JSON
        return parsed(content)

    return decode_fields


def _fields_of_value(tree: ast.expr) -> list[str]:
    """The fields that are used of `value`; none if it is used in another way too."""
    names: dict[str, None] = {}
    counted = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "value":
            counted += 1
        elif isinstance(node, ast.Attribute | ast.Subscript) and _is_value(node.value):
            name = node.attr if isinstance(node, ast.Attribute) else getattr(node.slice, "value", None)
            if not isinstance(name, str):
                return []
            names[name] = None
            counted -= 1
    return [] if counted else list(names)


def _is_value(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "value"


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


def parsed(content: str | bytes) -> Any:
    """The content of a text or of bytes where it is JSON, otherwise the text. RecursionError for too deep JSON."""
    if len(content) <= MAX_PARSED_BYTES:
        for decode in (_decode_json, json.loads):  # the second knows NaN, half surrogates and numbers of any size
            try:
                return decode(content)
            except ValueError:
                pass
    return content if isinstance(content, str) else content.decode(errors="replace")
