"""Options of a tool, parsed as joptsimple does it, with its messages.

`--name VALUE` or `--name=VALUE`, no abbreviations, other words are ignored, an argument may begin with dashes.
`--help` and `--version` are options of every tool. A mistake is a `Usage` with the text that Kafka's tool prints
before its help.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

INT_RANGES = {"int": 2**31, "long": 2**63}


class Usage(Exception):  # noqa: N818 (a condition, named as such)
    """A mistake in the options; exit code 1, as in Kafka's tools."""


class Leave(Exception):  # noqa: N818 (a condition, named as such)
    """The tool is done, with this exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Option(NamedTuple):
    """One option; `value` names its argument in the help page, an option without one is a flag."""

    name: str
    help: str
    value: str = ""
    kind: str = "str"
    """`str`, `int`, `long`, `double`."""
    is_optional: bool = False
    """The argument may be left out: the value is then empty."""
    default: Any = None
    needs: tuple[str, ...] = ()
    """It may be used only with one of these options (joptsimple's `availableIf`)."""


HELP = Option("help", "Print usage information.")
VERSION = Option("version", "Display Kafka version.")
BOOTSTRAP = Option("bootstrap-server", "The brokers to connect to.", "HOST:PORT")
COMMAND_CONFIG = Option("command-config", "File with configuration of the client, as key=value lines.", "FILE")


class Options:
    """The options that were given."""

    def __init__(self, parser: Parser) -> None:
        self.parser = parser
        self.values: dict[str, list[Any]] = {}

    def has(self, *names: str) -> bool:
        """True if one of the options was given."""
        return any(name in self.values for name in names)

    def get(self, name: str) -> Any:
        """The argument, its default, or None; an error if the option was given twice."""
        values = self.values.get(name, [])
        if len(values) > 1:
            raise ValueError(f"Found multiple arguments for option {name}, but you asked for only one")
        return values[0] if values else self.parser.options[name].default

    def all(self, name: str) -> list[Any]:
        """All arguments of an option that may be repeated."""
        return self.values.get(name, [])

    def only(self, name: str) -> Any:
        """The argument of an option that is a usage error if it was given twice."""
        try:
            return self.get(name)
        except ValueError as error:
            raise Usage(str(error)) from None

    # --- checks, with the texts of Kafka's CommandLineUtils

    def require(self, *names: str) -> None:
        """All of these options must be given."""
        for name in names:
            if not self.has(name):
                raise Usage(f'Missing required argument "[{name}]"')

    def refuse_with(self, name: str, others: Iterable[str]) -> None:
        """`name` may not be combined with any of the others."""
        for other in others:
            if self.has(name) and self.has(other):
                raise Usage(f'Option "[{name}]" can\'t be used with option "[{other}]"')


class Parser:
    """The options of one tool."""

    def __init__(self, name: str, purpose: str, options: Sequence[Option], notes: str = "") -> None:
        self.name = name
        self.purpose = purpose
        self.notes = notes
        self.options = {option.name: option for option in (*options, HELP, VERSION)}

    def parse(self, arguments: Sequence[str]) -> Options:
        """The options; `Usage` after a mistake, `Leave` after `--help` and `--version`."""
        options = Options(self)
        words = list(arguments)
        while words:
            word = words.pop(0)
            if word == "--":
                break
            if word.startswith("-") and len(word) > 1:
                self._option(options, word, words)
        self._leave_early(options)
        self._check_available(options)
        if "bootstrap-server" in self.options and not options.has("bootstrap-server", "bootstrap-controller"):
            default = os.environ.get("BARNABAS_BOOTSTRAP_SERVERS")
            if default:
                options.values["bootstrap-server"] = [default]
        return options

    def _option(self, options: Options, word: str, words: list[str]) -> None:
        name, equals, text = word.lstrip("-").partition("=")
        option = self.options.get(name) if word.startswith("--") else None
        if option is None:
            raise Usage(f"{name if word.startswith('--') else word[1:2]} is not a recognized option")
        values = options.values.setdefault(name, [])
        if not option.value:
            if equals:
                raise Usage(f"Option {name} does not accept an argument")
        elif equals:
            values.append(_convert(option, text))
        elif option.is_optional:
            values.append(_convert(option, words.pop(0)) if words and not words[0].startswith("-") else "")
        elif words:
            values.append(_convert(option, words.pop(0)))
        else:
            raise Usage(f"Option {name} requires an argument")

    def _leave_early(self, options: Options) -> None:
        if options.has("help"):
            self._print_help()
            raise Leave(0)
        if options.has("version"):
            from barnabas import __version__

            print(f"barnabas {__version__}")
            raise Leave(0)

    def _check_available(self, options: Options) -> None:
        lost = [name for name in options.values if (needs := self.options[name].needs) and not options.has(*needs)]
        if lost:
            raise Usage(f"Option(s) [{', '.join(lost)}] are unavailable given other options on the command line")

    def _print_help(self) -> None:
        print(f"barnabas {self.name} [OPTIONS]\n\n{self.purpose}\n\nOptions:")
        print("\n".join(help_lines(self.options.values())))
        if self.notes:
            print(f"\n{self.notes}")


def help_lines(options: Iterable[Option]) -> list[str]:
    """The options with their explanations, at most 100 columns wide."""
    import textwrap

    lines = []
    for option in sorted(options):
        value = f" [{option.value}]" if option.is_optional else f" {option.value}" if option.value else ""
        head = f"  --{option.name}{value}"
        text = option.help + (f" Default: {option.default}." if option.default not in (None, "") else "")
        wrapped = textwrap.wrap(text, 64)
        if len(head) > 34:
            lines.append(head)
            head = ""
        lines += [f"{start:36}{part}".rstrip() for start, part in zip((head, *[""] * 99), wrapped, strict=False)]
    return lines


def _convert(option: Option, text: str) -> Any:
    if option.kind == "str":
        return text
    try:
        number = float(text) if option.kind == "double" else int(text)
    except ValueError:
        _refuse(option, text)
    limit = INT_RANGES.get(option.kind)
    if limit is not None and not -limit <= number < limit:
        _refuse(option, text)
    return number


def _refuse(option: Option, text: str) -> NoReturn:
    raise BadArgument(f"Cannot parse argument '{text}' of option {option.name}")


class BadArgument(Usage):
    """An argument that is no number. Some of Kafka's tools report it in another way than other mistakes."""
