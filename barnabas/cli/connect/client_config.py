"""Keys of TLS and SASL, and files of Kafka's client.properties, for the settings of the command line."""

from __future__ import annotations

import os
from functools import cache
from typing import Final

PREFIXES: Final = ("security.", "sasl.", "ssl.")
SHORT: Final = ("user", "pass")
"""rpk's names of sasl.username and sasl.password."""
OTHER_KEYS: Final = ("bootstrap.servers", "client.id")
"""Keys of a client's configuration that are not about security and that need no note."""


def is_security_key(word: str) -> bool:
    """Whether a key of `-X` or of a profile is about TLS or SASL."""
    return word.startswith(PREFIXES) or word in SHORT


def checked_key(word: str) -> str:
    """The full name of a key about TLS or SASL. ValueError, a sentence, for an unknown one."""
    from barnabas.client.security.keys import security_key

    key = security_key(word)
    assert key is not None
    return key


@cache
def command_config(path: str) -> dict[str, str]:
    """The properties of a file; a note names those that have no effect. ValueError, a sentence, if it is not read."""
    from barnabas.cli.connect.properties_file import read_properties
    from barnabas.terminal.notes import note

    try:
        properties = read_properties(path)
    except OSError as error:
        raise ValueError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    unused = sorted(key for key in properties if not is_security_key(key) and key not in OTHER_KEYS)
    if unused and "_BARNABAS_COMPLETE" not in os.environ:  # a TAB shows no sentences
        note(f"no effect in commands: {', '.join(unused)} of {path}")
    return properties


def shown(key: str, value: object) -> object:
    """A value as it may be shown: not that of a secret."""
    from barnabas.client.security.keys import SECRETS

    return "[hidden]" if key in SECRETS else value
