"""docs/evidence/threat-model.md names config keys and tests that exist."""

from __future__ import annotations

import re

from barnabas.broker.config.keys import BROKER_KEYS, OWN_KEYS
from tests.structure.named_tests import NAMED_TEST, ROOT, exists

PAGE = (ROOT / "docs" / "evidence" / "threat-model.md").read_text(encoding="utf-8")
KEY = re.compile(r"`([a-z]+(?:\.[a-z]+)+)`")


def test_every_key_is_declared() -> None:
    named = set(KEY.findall(PAGE))
    assert len(named) > 20
    assert named - {*BROKER_KEYS, *OWN_KEYS, "retention.bytes"} == set()


def test_every_test_exists() -> None:
    named = NAMED_TEST.findall(PAGE)
    assert len(named) > 15
    assert [f"{file}::{name}" for file, name in named if not exists(file, name)] == []
