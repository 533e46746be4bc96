"""A distinguished name as text, exactly as Java's `X500Principal.getName()` returns it (RFC 2253).

The last relative name comes first. Types that RFC 2253 names have their keyword, all others are their number with the
value in hexadecimal. Rules and access control lists are written against this text. Source: `sun.security.x509.AVA`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from barnabas.broker.security.der import Certificate, Element

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


def subject_name(certificate: Certificate) -> str:
    """The subject of a certificate."""
    return ",".join(
        "+".join(_attribute(kind, value) for kind, value in relative) for relative in reversed(certificate.subject)
    )


def _attribute(kind: bytes, value: Element) -> str:
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
    escaped = "".join(f"\\{one}" if one in _ESCAPED else "\\00" if one == "\0" else one for one in text)
    inner = escaped.lstrip(_BLANKS)
    lead = escaped[: len(escaped) - len(inner)]
    stripped = inner.rstrip(_BLANKS)
    trail = inner[len(stripped) :]
    return "".join(f"\\{one}" for one in lead) + stripped + "".join(f"\\{one}" for one in trail)
