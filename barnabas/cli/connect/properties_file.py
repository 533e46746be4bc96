"""Files of properties in Java's form, as Kafka's client.properties."""

from __future__ import annotations

from pathlib import Path


def read_properties(path: str) -> dict[str, str]:
    """The properties of a file. OSError if it cannot be read, ValueError, a sentence, if it is in another form."""
    from barnabas.wire.configdef import ConfigError
    from barnabas.wire.properties import parse_properties

    try:
        properties = parse_properties(Path(path).read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a file of properties: it is not UTF-8") from None
    except ConfigError as error:
        raise ValueError(f"{path}: {error}") from None
    return {key: value.strip() for key, value in properties.items()}
