"""Reads the parts of an X.509 certificate that the broker looks at: subject, alternative names, validity.

Only the structure that RFC 5280 prescribes is read; OpenSSL has checked the certificate before. This needs no other
package, so that a log-in with a certificate imports none.

The subject as text is exactly what Java's `X500Principal.getName()` returns (RFC 2253), since rules and access control
lists are written against it: the last relative name comes first; types that RFC 2253 names have their keyword, all
others are their number with the value in hexadecimal. Source: `sun.security.x509.AVA`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

_UTC_TIME: Final = 0x17
_VERSION: Final = 0xA0
_EXTENSIONS: Final = 0xA3
_SUBJECT_ALTERNATIVE_NAMES: Final = bytes((0x55, 0x1D, 0x11))
_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "2.5.4.9": "STREET",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_STRINGS: Final = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E})
"""UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString: Java 17 reads all as UTF-8."""
_ESCAPED: Final = frozenset(',=+<>#;"\\')
_BLANKS: Final = " \r"


class Element(NamedTuple):
    """One value: its tag, its content, and all of its bytes."""

    tag: int
    content: bytes
    whole: bytes


class Certificate(NamedTuple):
    """The parts of a certificate that are read."""

    subject: tuple[tuple[tuple[bytes, Element], ...], ...]
    """The relative distinguished names in the order of the certificate: pairs of an OID's content and a value."""
    alternative_names: frozenset[bytes]
    """The subject alternative names, each as its DER bytes."""
    validity: tuple[str, str]
    """The first and the last second, as `2026-11-24T13:00:00Z`."""


def elements(data: bytes) -> Iterator[Element]:
    """The values in `data`, one after the other. ValueError if it is not DER."""
    position = 0
    while position < len(data):
        element = _element(data, position)
        position += len(element.whole)
        yield element


def _element(data: bytes, start: int) -> Element:
    if start + 2 > len(data):
        raise ValueError("a certificate ends early")
    size, position = data[start + 1], start + 2
    if size & 0x80:
        count = size & 0x7F
        size = int.from_bytes(data[position : position + count], "big")
        position += count
    end = position + size
    if end > len(data):
        raise ValueError("a certificate ends early")
    return Element(data[start], data[position:end], data[start:end])


def parse_certificate(data: bytes) -> Certificate:
    """Read a certificate. ValueError if it is none."""
    try:
        (certificate,) = elements(data)
        to_be_signed = next(elements(certificate.content))
        fields = list(elements(to_be_signed.content))
        validity, subject = fields[4:6] if fields[0].tag == _VERSION else fields[3:5]
        extensions = next((field for field in fields if field.tag == _EXTENSIONS), None)
        names = frozenset[bytes]() if extensions is None else _alternative_names(extensions)
        first, last = map(_time, elements(validity.content))
        return Certificate(_name(subject), names, (first, last))
    except (StopIteration, IndexError) as error:
        raise ValueError("it is no X.509 certificate") from error


def _time(value: Element) -> str:
    text = value.content.decode("ascii")
    if value.tag == _UTC_TIME:
        text = ("19" if text >= "50" else "20") + text
    return f"{text[:4]}-{text[4:6]}-{text[6:8]}T{text[8:10]}:{text[10:12]}:{text[12:]}"


def _name(name: Element) -> tuple[tuple[tuple[bytes, Element], ...], ...]:
    return tuple(tuple(_attribute(pair) for pair in elements(relative.content)) for relative in elements(name.content))


def _attribute(pair: Element) -> tuple[bytes, Element]:
    kind, value = elements(pair.content)
    return kind.content, value


def _alternative_names(wrapper: Element) -> frozenset[bytes]:
    for extension in elements(next(elements(wrapper.content)).content):
        parts = list(elements(extension.content))
        if parts[0].content == _SUBJECT_ALTERNATIVE_NAMES:
            names = next(elements(parts[-1].content))
            return frozenset(name.whole for name in elements(names.content))
    return frozenset()


# -- the subject as text


def subject_name(certificate: Certificate) -> str:
    """The subject of a certificate."""
    return ",".join(
        "+".join(_attribute_text(kind, value) for kind, value in relative) for relative in reversed(certificate.subject)
    )


def _attribute_text(kind: bytes, value: Element) -> str:
    number = _dotted(kind)
    keyword = _KEYWORDS.get(number)
    if keyword is None or value.tag not in _STRINGS:
        return f"{keyword or number}=#{value.whole.hex()}"
    return f"{keyword}={_escaped(value.content.decode('utf-8', 'replace'))}"


def _dotted(kind: bytes) -> str:
    """The usual form of an object identifier's content."""
    numbers: list[int] = []
    number = 0
    for byte in kind:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2) if numbers else 0
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:]) if numbers else ()))


def _escaped(text: str) -> str:
    escaped = "".join(f"\\{char}" if char in _ESCAPED else "\\00" if char == "\0" else char for char in text)
    inner = escaped.lstrip(_BLANKS)
    lead = escaped[: len(escaped) - len(inner)]
    stripped = inner.rstrip(_BLANKS)
    trail = inner[len(stripped) :]
    return "".join(f"\\{char}" for char in lead) + stripped + "".join(f"\\{char}" for char in trail)
