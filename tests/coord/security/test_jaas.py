"""JAAS lines: what Kafka's parser takes, and errors without values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coord.security.jaas import PLAIN_LOGIN, parse_jaas
from barnabas.wire.configdef import ConfigError
from tests.support.cases import for_each


def test_a_line_of_a_broker() -> None:
    text = f"""{PLAIN_LOGIN} required \\
        username="admin" password="admin-secret" // of this broker
        user_admin="admin-secret" /* and of
        others */ user_alice='al"ice' user_bob = "b\\"o\\\\b;\\u0041\\101" plain=word;"""
    module = parse_jaas("key", text.replace("\\\n", "\n"))
    assert module.name == PLAIN_LOGIN
    assert module.options["username"] == "admin"
    assert "secret" not in repr(module)
    assert module.options["plain"] == "word"
    assert module.users == {"admin": "admin-secret", "alice": 'al"ice', "bob": 'b"o\\b;u0041A'}


@for_each(
    ("text", "what"),
    [
        ("", "Login module not specified"),
        ("a.Module", "control flag not specified"),
        ("a.Module sometimes x=SECRET;", "control flag not specified"),
        ("a.Module required password=SECRET", "not terminated by semi-colon"),
        ("a.Module required password SECRET;", "Value not specified for key 'password'"),
        ("a.Module required password=;", "Value not specified for key 'password'"),
        ('a.Module required password="SECRET;', "a quote in the JAAS config has no end"),
        ("a.Module required x=SECRET; b.Module required;", "more than 1 login module"),
    ],
)
def test_other_lines_are_refused_without_telling_a_secret(text: str, what: str) -> None:
    with pytest.raises(ConfigError, match=what) as error:
        parse_jaas("the.key", text)
    assert str(error.value).startswith("the.key: ")
    assert "SECRET" not in str(error.value)


@given(st.text(alphabet="a=;\"'\\/*\n .", max_size=40))
def test_any_text_is_a_line_or_refused(text: str) -> None:
    try:
        parse_jaas("key", text)
    except ConfigError:
        pass


@given(st.dictionaries(st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=8), st.text(max_size=20)))
def test_quoted_values_are_read_as_they_were_written(options: dict[str, str]) -> None:
    options = {name: value.replace("\n", " ") for name, value in options.items()}
    text = "".join(
        ' {}="{}"'.format(name, value.replace("\\", "\\\\").replace('"', '\\"')) for name, value in options.items()
    )
    assert parse_jaas("key", f"a.B required{text};").options == options
