"""New random ids, as Kafka makes them."""

from __future__ import annotations

from collections.abc import Callable


def new_uuid(random_bytes: Callable[[int], bytes]) -> bytes:
    """A random uuid of version 4, which never begins with a dash in Kafka's text form."""
    while True:
        value = bytearray(random_bytes(16))
        value[6] = value[6] & 0x0F | 0x40
        value[8] = value[8] & 0x3F | 0x80
        if value[0] >> 2 != 62:  # base64's 62 is "-": it would look like an option on a command line
            return bytes(value)
