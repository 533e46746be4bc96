"""`ssl.cipher.suites`: translates the names of Java and IANA to OpenSSL's names.

The suites of TLS 1.3 cannot be chosen one by one through Python's ssl module: all three are allowed, or TLS 1.3 is not.
A list with only some of them is refused, since it would allow suites that it does not name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from barnabas.wire.configdef import ConfigError

TLS_1_3: Final = frozenset({"TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"})
_NAME: Final = re.compile(r"TLS_(?:(ECDHE|DHE|RSA)(?:_(RSA|ECDSA))?)_WITH_(\w+)")
_CIPHERS: Final = {
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_256_CBC_SHA256": "AES256-SHA256",
    "AES_256_CBC_SHA384": "AES256-SHA384",
    "AES_128_CBC_SHA": "AES128-SHA",
    "AES_256_CBC_SHA": "AES256-SHA",
}


def split_suites(names: Sequence[str]) -> tuple[bool, str]:
    """Whether the names allow TLS 1.3, and OpenSSL's list of the others. ConfigError for a name that is unknown."""
    newer = TLS_1_3.intersection(names)
    if newer and newer != TLS_1_3:
        missing = ", ".join(sorted(TLS_1_3 - newer))
        raise ConfigError(
            f"ssl.cipher.suites has some suites of TLS 1.3, but not {missing}: all of them can be allowed here, or "
            "none. Name all three, or none of them to have TLS 1.2 only"
        )
    return bool(newer), ":".join(_openssl_name(name) for name in names if name not in TLS_1_3)


def _openssl_name(name: str) -> str:
    found = _NAME.fullmatch(name)
    cipher = _CIPHERS.get(found[3]) if found is not None else None
    if found is None or cipher is None:
        raise ConfigError(f"ssl.cipher.suites has {name}, which is unknown or too weak to be supported")
    exchange = [part for part in found.group(1, 2) if part is not None]
    return cipher if exchange == ["RSA"] else "-".join((*exchange, cipher))
