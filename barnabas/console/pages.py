"""Pages from templates. Everything is escaped, and characters that a reader cannot see are shown as escapes."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from barnabas import __version__
from barnabas.console.values import to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from barnabas.console.console import Call

HERE = Path(__file__).parent
TEMPLATES = HERE / "templates"
STATIC = HERE / "static"
MAX_PRETTY = 200_000
"""Characters of JSON on a page."""
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff"
    "\ufff9-\ufffb\ud800-\udfff]"
)
"""Control characters but tab and line feed, characters without width, overrides of the direction, lone surrogates."""


def visible(text: str) -> str:
    """The text with characters that cannot be seen as escapes, as `\\u202e`."""
    return _INVISIBLE.sub(lambda match: match[0].encode("unicode_escape", "surrogatepass").decode(), text)


def _finalize(value: Any) -> Any:
    if value is None:
        return "–"
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value)
    return value


def exact(value: str) -> Markup:
    """A value for a form field that is sent back: escaped for HTML, but with every character."""
    return escape(value)


def size(count: float | None) -> str:
    """Bytes for people, in powers of 1024."""
    if count is None or count < 0:
        return "–"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024 or unit == "TiB":
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError


def number(count: float | None) -> str:
    """A number with separators of thousands: a thin space that does not break."""
    if count is None:
        return "–"
    text = (
        f"{count:,.0f}"
        if isinstance(count, int) or not count
        else f"{count:,.1f}"
        if abs(count) < 100
        else f"{count:,.0f}"
    )
    return text.replace(",", "\u202f")


def duration(seconds: float | None) -> str:
    """A time span for people, in its two largest units."""
    if seconds is None:
        return "–"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.0f} s"
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    largest = next(at for at, (_, unit_s) in enumerate(units) if seconds >= unit_s)
    (name, unit_s), (next_name, next_s) = units[largest], units[largest + 1]
    rest = int(seconds % unit_s // next_s)
    return f"{int(seconds // unit_s)} {name}" + (f" {rest} {next_name}" if rest else "")


def moment(time_ms: int | None) -> str | Markup:
    """A time in ms as an element `time`, in UTC; the page shows it in the reader's zone."""
    if time_ms is None or time_ms < 0:
        return "–"
    try:
        when = datetime.fromtimestamp(time_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(time_ms)
    text = when.strftime("%Y-%m-%d %H:%M:%S.") + f"{time_ms % 1000:03d}Z"
    return Markup('<time datetime="{}">{}</time>').format(when.isoformat(), text)


def part(text: str) -> str:
    """A name as one part of a path."""
    return quote(text, safe="")


def link(path: str, **parameters: object) -> str:
    """A path with a query string; parameters that are None or empty are left out."""
    chosen = {name: value for name, value in parameters.items() if value not in (None, "", False)}
    return f"{path}?{urlencode(chosen)}" if chosen else path


def json_text(value: object) -> str:
    """A value as JSON, for a `data-` attribute."""
    return to_json(value).decode()


def pretty(value: object) -> str:
    """A value as indented JSON, for readers; long ones are cut."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    return text if len(text) <= MAX_PRETTY else f"{text[:MAX_PRETTY]}\n… {len(text) - MAX_PRETTY:,} more characters"


class Pages:
    """The templates of a console."""

    def __init__(self, navigation: object) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_finalize,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.filters |= {
            "size": size,
            "number": number,
            "duration": duration,
            "moment": moment,
            "exact": exact,
            "part": part,
            "json_text": json_text,
            "pretty": pretty,
            "visible": visible,
        }
        self._environment.globals |= {"link": link, "navigation": navigation, "version": __version__}

    def render(self, template: str, call: Call, path: str, values: Mapping[str, Any]) -> str:
        """The HTML of a page at `path`."""
        return self._environment.get_template(template).render(
            call=call, settings=call.settings, session=call.session, path=path, **values
        )

    def plain(self, template: str, values: Mapping[str, Any]) -> str:
        """The HTML of a page without a session: the log-in, a request that the guard has refused."""
        return self._environment.get_template(template).render(**values)
