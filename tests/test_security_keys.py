"""The table of keys that limit clients is complete: a new key of this kind must be in it."""

from __future__ import annotations

import re
from collections import Counter

from barnabas.broker.config.keys import BROKER_KEYS, OWN_KEYS
from scripts.pages.security_keys import AREAS, rows

ABOUT_SECURITY = re.compile(
    r"(^|\.)(ssl|sasl|authorizer|principal|delegation|connections?|queued|quota|decompressed|inter)\."
)
OF_THE_BROKER_ITSELF = re.compile(r"^(remote\.|socket\.connection\.setup\.|controller\.quorum\.)")


def test_every_key_about_security_is_in_one_row() -> None:
    listed = Counter(name for _, names, _ in rows() for name in re.findall(r"`([^`]+)`", names))
    expected = {name for name in BROKER_KEYS if ABOUT_SECURITY.search(name) and not OF_THE_BROKER_ITSELF.match(name)}
    assert not {*expected, *OWN_KEYS} - set(listed)
    assert set(listed.values()) == {1}


def test_every_prefix_has_a_key() -> None:
    prefixes = [prefix for area in AREAS for prefix in area.prefixes]
    assert [prefix for prefix in prefixes if not any(name.startswith(prefix) for name in BROKER_KEYS)] == []
