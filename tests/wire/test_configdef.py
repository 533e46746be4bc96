"""Config keys: parsing and checking values, and Kafka's error texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.wire import configdef as c
from barnabas.wire.configdef import ConfigError, ConfigKey
from tests.support.cases import for_each

THROTTLED = (
    "some.key must be the literal '*' or a list of replicas in the following format: "
    "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
)


def key(type_: str, valid: str = "") -> ConfigKey[object]:
    return ConfigKey(type_, "some.key", None, valid, c.LOW, c.READ_ONLY, "", used=True)


@for_each(
    ("type_", "text", "value"),
    [
        (c.BOOLEAN, "true", True),
        (c.BOOLEAN, " FALSE ", False),
        (c.INT, "-1", -1),
        (c.INT, " +7 ", 7),
        (c.INT, "2147483647", 2**31 - 1),
        (c.SHORT, "-32768", -(2**15)),
        (c.LONG, "9223372036854775807", 2**63 - 1),
        (c.DOUBLE, "0.5", 0.5),
        (c.DOUBLE, "1.7976931348623157E308", c.DOUBLE_MAX),
        (c.STRING, "  trimmed ", "trimmed"),
        (c.LIST, "", ()),
        (c.LIST, " a , b,c ", ("a", "b", "c")),
        (c.LIST, "a,b,a", ("a", "b")),
        (c.PASSWORD, " kept as it is ", " kept as it is "),
    ],
)
def test_text_is_parsed_by_type(type_: str, text: str, value: object) -> None:
    assert key(type_).parse(text) == value


@for_each(
    ("type_", "text", "error"),
    [
        (c.INT, "abc", "Invalid value abc for configuration some.key: Not a number of type INT"),
        (c.INT, "", "Invalid value  for configuration some.key: Not a number of type INT"),
        (c.INT, "1_000", "Invalid value 1_000 for configuration some.key: Not a number of type INT"),
        (c.INT, "2147483648", "Invalid value 2147483648 for configuration some.key: Not a number of type INT"),
        (c.SHORT, "32768", "Invalid value 32768 for configuration some.key: Not a number of type SHORT"),
        (c.LONG, "9" * 5000, f"Invalid value {'9' * 5000} for configuration some.key: Not a number of type LONG"),
        (c.LONG, "1.5", "Invalid value 1.5 for configuration some.key: Not a number of type LONG"),
        (c.DOUBLE, "half", "Invalid value half for configuration some.key: Not a number of type DOUBLE"),
        (c.BOOLEAN, "yes", "Invalid value yes for configuration some.key: Expected value to be either true or false"),
    ],
)
def test_invalid_text_raises_kafkas_error(type_: str, text: str, error: str) -> None:
    with pytest.raises(ConfigError) as raised:
        key(type_).parse(text)
    assert str(raised.value) == error


@for_each(
    ("type_", "valid", "good", "bad", "why"),
    [
        (c.INT, "[0,...]", "0", "-1", "Value must be at least 0"),
        (c.INT, "[1,...,17]", "17", "18", "Value must be no more than 17"),
        (c.INT, "[1,...,9] or -1", "-1", "0", "Value must be between 1 and 9 or equal to -1"),
        (c.INT, "[1,...,9] or -1", "9", "10", "Value must be between 1 and 9 or equal to -1"),
        (c.LONG, "[-2,...]", "-2", "-3", "Value must be at least -2"),
        (c.DOUBLE, "[0,...,1]", "1", "1.5", "Value must be no more than 1"),
        (c.DOUBLE, "[0,...,1]", "0.25", "NaN", "Value must be at least 0"),
        (c.STRING, "[Create, Append]", "Append", "Never", "String must be one of: Create, Append"),
        (c.LIST, "[compact, delete]", "delete,compact", "drop", "String must be one of: compact, delete"),
        (c.LIST, "[compact, delete]", "", "delete,drop", "String must be one of: compact, delete"),
        (c.STRING, "(case insensitive) [A, B]", "b", "c", "String must be one of (case insensitive): A, B"),
        (c.STRING, "non-empty string", "x", "", "String must be non-empty"),
        (
            c.LIST,
            "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
            "0:1,1:2",
            "0-1",
            THROTTLED,
        ),
    ],
)
def test_value_is_checked_against_kafkas_notation(type_: str, valid: str, good: str, bad: str, why: str) -> None:
    checked = key(type_, valid)
    checked.parse(good)
    with pytest.raises(ConfigError) as raised:
        checked.parse(bad)
    assert str(raised.value).startswith("Invalid value ")
    assert str(raised.value).endswith(f" for configuration some.key: {why}")


def test_star_throttles_all_replicas() -> None:
    throttled = key(c.LIST, "[partitionId]:[brokerId],[partitionId]:[brokerId],...")
    assert throttled.parse("*") == ("*",)


@given(st.integers(-(2**63), 2**63 - 1))
def test_long_round_trip(value: int) -> None:
    assert key(c.LONG).parse(c.format_value(value) or "") == value


@given(st.floats(allow_nan=False))
def test_double_round_trip(value: float) -> None:
    assert key(c.DOUBLE).parse(c.format_value(value) or "") == value


@for_each(
    ("value", "text"),
    [(None, None), (True, "true"), (False, "false"), (5, "5"), (0.5, "0.5"), ((), ""), (("a", "b"), "a,b"), ("x", "x")],
)
def test_values_are_formatted_as_in_kafka(value: c.ConfigValue, text: str | None) -> None:
    assert c.format_value(value) == text


def test_only_passwords_are_sensitive() -> None:
    assert c.password("p", c.LOW, "").is_sensitive
    assert not c.string("s", None, "", c.LOW, "").is_sensitive
