"""Java's properties format: the cases of java.util.Properties."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.wire.configdef import ConfigError
from barnabas.wire.properties import parse_properties
from tests.support.cases import for_each


@for_each(
    ("text", "settings"),
    [
        ("a=1", {"a": "1"}),
        ("a = 1", {"a": "1"}),
        ("a:1", {"a": "1"}),
        ("a 1", {"a": "1"}),
        ("  a\t:  1 2 ", {"a": "1 2 "}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("a==1", {"a": "=1"}),
        ("# a=1\n! b=2\n\n   \nc=3", {"c": "3"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1,\\\n   2,\\\n   3", {"a": "1,2,3"}),
        ("a=1\\\n# no comment", {"a": "1# no comment"}),
        ("a=back\\\\slash\\\\", {"a": "back\\slash\\"}),
        ("a=1\\", {"a": "1"}),
        ("a\\=b\\:c\\ d=1", {"a=b:c d": "1"}),
        ("a=\\t\\n\\r\\f\\q", {"a": "\t\n\r\fq"}),
        ("a=\\u00e4\\u20AC", {"a": "ä€"}),
        ("a=\\ud83d\\ude00", {"a": "😀"}),
        ("\\ude00=\\ud83d!", {"\ufffd": "\ufffd!"}),
        ("listeners=PLAINTEXT://:9092", {"listeners": "PLAINTEXT://:9092"}),
        ("", {}),
    ],
)
def test_lines_are_read_as_java_reads_them(text: str, settings: dict[str, str]) -> None:
    assert parse_properties(text) == settings


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\u12g4", "a=\\u"])
def test_malformed_unicode_escape_is_the_only_syntax_error(text: str) -> None:
    with pytest.raises(ConfigError, match="Malformed"):
        parse_properties(text)


@given(st.dictionaries(st.text("ab.:= \\#!", min_size=1), st.text("ab.:= \\#!ä")))
def test_escaped_text_is_read_back(settings: dict[str, str]) -> None:
    def escaped(text: str) -> str:
        return "".join(f"\\{char}" if char in ":= \\#!" else char for char in text)

    text = "\n".join(f"{escaped(key)}={escaped(value)}" for key, value in settings.items())
    assert parse_properties(text) == settings


@given(st.text())
def test_any_text_gives_settings_or_one_sentence(text: str) -> None:
    with suppress(ConfigError):
        assert all(isinstance(value, str) for value in parse_properties(text).values())
