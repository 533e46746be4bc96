"""Values that are not in the job's file, as Kafka's configuration providers name them (KIP-297, KIP-421).

`${env:NAME}` is a variable of the environment, `${file:PATH:KEY}` a property of a file of properties, and
`${directory:PATH:NAME}` the content of a file in a directory, as secrets are mounted in containers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from barnabas.wire.configdef import ConfigError
from barnabas.wire.properties import parse_properties

_REFERENCE: Final = re.compile(r"\$\{(\w+):([^}]*)\}")


def resolved(text: str) -> str:
    """The text with the values that it refers to. ValueError, a sentence without a value, if there is none."""
    return _REFERENCE.sub(lambda reference: _value(reference[1], reference[2]), text)


def properties_of(path: str) -> dict[str, str]:
    """The properties of a file. ValueError, a sentence, if it cannot be read."""
    try:
        return {key: value.strip() for key, value in parse_properties(_content(Path(path))).items()}
    except ConfigError as error:
        raise ValueError(f"{path} is not a file of properties: {error}") from None


def _value(provider: str, where: str) -> str:
    if provider not in _PROVIDERS:
        raise ValueError(f"${{{provider}:{where}}} names no provider; there are {', '.join(_PROVIDERS)}")
    return _PROVIDERS[provider](where)


def _of_environment(name: str) -> str:
    if name not in os.environ:
        raise ValueError(f"the variable {name} of ${{env:{name}}} is not set")
    return os.environ[name]


def _of_file(where: str) -> str:
    path, _, key = where.rpartition(":")
    properties = properties_of(path)
    if key not in properties:
        raise ValueError(f"{path} has no property {key}, which ${{file:{where}}} names")
    return properties[key]


def _of_directory(where: str) -> str:
    path, _, name = where.rpartition(":")
    return _content(Path(path) / name).rstrip("\r\n")


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} cannot be read: it is not UTF-8") from None


_PROVIDERS: Final[Mapping[str, Callable[[str], str]]] = {
    "env": _of_environment,
    "file": _of_file,
    "directory": _of_directory,
}
