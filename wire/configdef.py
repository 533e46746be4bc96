"""Config keys: each declared once, with Kafka's name, type, default, valid values and documentation.

Configuration files, environment variables, DescribeConfigs, the checks of AlterConfigs, the command line's help and
`docs/reference/keys.md` use these declarations. `valid` has Kafka's notation (`[1,...]`, `[compact, delete]`, ...) and
is interpreted when a value is checked, so that declaring 400 keys takes little time at start. Error texts are Kafka's,
as clients' tests expect. Source: Kafka 4.4 `ConfigDef`.
"""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar, cast

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
ConfigValue = bool | int | float | str | tuple[str, ...] | None

BOOLEAN: Final = "BOOLEAN"
STRING: Final = "STRING"
INT: Final = "INT"
SHORT: Final = "SHORT"
LONG: Final = "LONG"
DOUBLE: Final = "DOUBLE"
LIST: Final = "LIST"
CLASS: Final = "CLASS"
PASSWORD: Final = "PASSWORD"  # noqa: S105  (the name of a type)

HIGH: Final = "HIGH"
MEDIUM: Final = "MEDIUM"
LOW: Final = "LOW"

READ_ONLY: Final = "read-only"
PER_BROKER: Final = "per-broker"
CLUSTER_WIDE: Final = "cluster-wide"

HIDDEN: Final = "[hidden]"
LONG_MAX: Final = 2**63 - 1
INT_MAX: Final = 2**31 - 1
DOUBLE_MAX: Final = 1.7976931348623157e308

_BITS: Final = {SHORT: 16, INT: 32, LONG: 64}


NOT_ACTED_ON: Final = "Barnabas does not act on this key."
"""The end of the documentation of such a key in DescribeConfigs; what Apache Kafka's brokers answer never has it."""


class ConfigError(Exception):
    """An invalid config value or name."""


class ConfigKey(Generic[T_co]):
    """One declared key; the type parameter is the type of its value.

    `required` keys have no default in Kafka. `synonyms` of a topic key are the broker keys that set its default, in
    order of priority, each with the factor to the unit of the topic key. `used`: whether Barnabas uses the key.
    """

    __slots__ = ("default", "doc", "dynamic", "importance", "name", "required", "synonyms", "type", "used", "valid")

    def __init__(
        self,
        type_: str,
        name: str,
        default: T_co,
        valid: str,
        importance: str,
        dynamic: str,
        doc: str,
        used: bool = True,
        synonyms: tuple[tuple[str, int], ...] = (),
        required: bool = False,
    ) -> None:
        self.type = type_
        self.name = name
        self.default = default
        self.valid = valid
        self.importance = importance
        self.dynamic = dynamic
        self.doc = doc
        self.used = used
        self.synonyms = synonyms
        self.required = required

    def __repr__(self) -> str:
        return f"ConfigKey({self.name})"

    @property
    def is_sensitive(self) -> bool:
        """Whether values must not be displayed."""
        return self.type == PASSWORD

    def parse(self, text: str) -> T_co:
        """Parse the text of a value. ConfigError when it is invalid."""
        value = parse_value(self.name, self.type, text)
        if self.valid:
            check_valid(self.name, self.valid, value)
        return cast("T_co", value)

    def format(self, value: ConfigValue) -> str | None:
        """Kafka's text form of a value, which `parse` reads; None for None (the key is not set)."""
        return format_value(value)


def format_value(value: ConfigValue) -> str | None:
    """Kafka's text form of a value."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, float):
        return _java_double(value)
    return str(value)


def _java_double(value: float) -> str:
    """Java's Double.toString for values of configs: `0.5`, `1.7976931348623157E308`."""
    return repr(value).replace("e+", "E").replace("e", "E")


def parse_value(name: str, type_: str, text: str) -> ConfigValue:
    """Parse a value by its type, without checking whether it is in range."""
    stripped = text.strip()
    if type_ in _BITS:
        return _parse_integer(name, type_, stripped)
    if type_ == BOOLEAN:
        lowered = stripped.lower()
        if lowered not in {"true", "false"}:
            raise invalid(name, text, "Expected value to be either true or false")
        return lowered == "true"
    if type_ == DOUBLE:
        return _parse_double(name, stripped)
    if type_ == LIST:
        return parse_list(stripped)
    return text if type_ == PASSWORD else stripped


def parse_list(text: str) -> tuple[str, ...]:
    """Split at commas, trim, and remove duplicates (KIP-1161)."""
    return tuple(dict.fromkeys(item.strip() for item in text.split(","))) if text.strip() else ()


def _parse_integer(name: str, type_: str, text: str) -> int:
    digits = text[1:] if text[:1] in {"+", "-"} else text
    if not (digits.isascii() and digits.isdigit()):
        raise invalid(name, text, f"Not a number of type {type_}")
    value = int(text) if len(digits) < 25 else 2**80
    if not -(1 << (_BITS[type_] - 1)) <= value < 1 << (_BITS[type_] - 1):
        raise invalid(name, text, f"Not a number of type {type_}")
    return value


def _parse_double(name: str, text: str) -> float:
    try:
        if "_" not in text:
            return float(text)
    except ValueError:
        pass
    raise invalid(name, text, f"Not a number of type {DOUBLE}")


def invalid(name: str, value: object, why: str) -> ConfigError:
    """Kafka's error for an invalid value."""
    return ConfigError(f"Invalid value {value} for configuration {name}: {why}")


def check_valid(name: str, valid: str, value: ConfigValue) -> None:
    """Check a value against `valid` in Kafka's notation. ConfigError when it is not valid."""
    if valid == "non-empty string":
        if value == "":
            raise ConfigError(f"Invalid value  for configuration {name}: String must be non-empty")
    elif isinstance(value, (int, float)):
        _check_range(name, valid, value)
    elif valid.startswith("(case insensitive) "):
        allowed = _choices(valid.removeprefix("(case insensitive) "))
        if str(value).upper() not in allowed:
            raise invalid(name, value, f"String must be one of (case insensitive): {', '.join(allowed)}")
    elif valid == "[partitionId]:[brokerId],[partitionId]:[brokerId],...":
        _check_throttled(name, cast("tuple[str, ...]", value))
    elif valid.startswith("[") and isinstance(value, tuple):
        _check_list(name, _choices(valid), value)
    elif valid.startswith("[") and value not in _choices(valid):
        raise invalid(name, value, f"String must be one of: {', '.join(_choices(valid))}")


def _choices(valid: str) -> list[str]:
    return [choice.strip() for choice in valid.strip("[]").split(",")]


def _check_list(name: str, allowed: list[str], value: tuple[str, ...]) -> None:
    for item in value:
        if item not in allowed:
            raise invalid(name, item, f"String must be one of: {', '.join(allowed)}")


def _check_range(name: str, valid: str, value: float) -> None:
    span, _, exception = valid.partition(" or ")
    if exception and value == int(exception):
        return
    low, _, high = span.strip("[]").partition(",...")
    if exception and not int(low) <= value <= int(high.lstrip(",")):
        reason = f"Value must be between {low} and {high.lstrip(',')} or equal to {exception}"
        raise invalid(name, format_value(value), reason)
    if not value >= float(low) if "." in low else not value >= int(low):
        raise invalid(name, format_value(value), f"Value must be at least {low}")
    if high and not value <= int(high.lstrip(",")):
        raise invalid(name, format_value(value), f"Value must be no more than {high.lstrip(',')}")


def _check_throttled(name: str, value: tuple[str, ...]) -> None:
    """Check throttled replicas: `partition:broker` pairs, or a single `*`."""
    if value == ("*",):
        return
    for item in value:
        partition, colon, broker = item.partition(":")
        if not (colon and partition.isdigit() and broker.isdigit()):
            raise invalid(
                name,
                f"[{', '.join(value)}]",
                f"{name} must be the literal '*' or a list of replicas in the following format: "
                "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
            )


# Functions that declare keys, one for each type.

N = TypeVar("N", int, int | None)
S = TypeVar("S", str, str | None)
L = TypeVar("L", tuple[str, ...], tuple[str, ...] | None)


def boolean(name: str, default: bool, importance: str, doc: str, *, dynamic: str = READ_ONLY) -> ConfigKey[bool]:
    """Declare a BOOLEAN key."""
    return ConfigKey(BOOLEAN, name, default, "", importance, dynamic, doc)


def short(
    name: str, default: int, valid: str, importance: str, doc: str, *, dynamic: str = READ_ONLY
) -> ConfigKey[int]:
    """Declare a SHORT key."""
    return ConfigKey(SHORT, name, default, valid, importance, dynamic, doc)


def integer(name: str, default: N, valid: str, importance: str, doc: str, *, dynamic: str = READ_ONLY) -> ConfigKey[N]:
    """Declare an INT key."""
    return ConfigKey(INT, name, default, valid, importance, dynamic, doc)


def long(name: str, default: N, valid: str, importance: str, doc: str, *, dynamic: str = READ_ONLY) -> ConfigKey[N]:
    """Declare a LONG key."""
    return ConfigKey(LONG, name, default, valid, importance, dynamic, doc)


def double(
    name: str, default: float, valid: str, importance: str, doc: str, *, dynamic: str = READ_ONLY
) -> ConfigKey[float]:
    """Declare a DOUBLE key."""
    return ConfigKey(DOUBLE, name, default, valid, importance, dynamic, doc)


def string(name: str, default: S, valid: str, importance: str, doc: str, *, dynamic: str = READ_ONLY) -> ConfigKey[S]:
    """Declare a STRING key."""
    return ConfigKey(STRING, name, default, valid, importance, dynamic, doc)


def list_of(name: str, default: L, valid: str, importance: str, doc: str, *, dynamic: str = READ_ONLY) -> ConfigKey[L]:
    """Declare a LIST key: strings separated by commas."""
    return ConfigKey(LIST, name, default, valid, importance, dynamic, doc)


def class_name(
    name: str, default: str | None, importance: str, doc: str, *, dynamic: str = READ_ONLY
) -> ConfigKey[str | None]:
    """Declare a CLASS key: the name of a Java class."""
    return ConfigKey(CLASS, name, default, "", importance, dynamic, doc)


def password(name: str, importance: str, doc: str, *, dynamic: str = READ_ONLY) -> ConfigKey[str | None]:
    """Declare a PASSWORD key: never displayed, not set by default."""
    return ConfigKey(PASSWORD, name, None, "", importance, dynamic, doc)


def without_effect(*keys: ConfigKey[Any]) -> tuple[ConfigKey[Any], ...]:
    """Mark keys as ones that Barnabas does not act on."""
    for key in keys:
        key.used = False
    return keys


def required(key: ConfigKey[T]) -> ConfigKey[T]:
    """Mark a key as one without a default in Kafka; its default is specific to Barnabas."""
    key.required = True
    return key
