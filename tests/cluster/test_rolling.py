"""Nodes replaced one by one under load: another version of ours, and Apache Kafka; clients see retries only.

`python -m tests.cluster.upgrade` and `python -m tests.cluster.migration` do the same for longer, with more clients.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cluster import migration, upgrade
from tests.support.volume import first_seed

SEED = first_seed()


@pytest.mark.soak
@pytest.mark.timeout(1500)
def test_upgrade(tmp_path: Path) -> None:
    """From the previous release and back."""
    print(f"repeat with BARNABAS_SEED={SEED}")
    try:
        commit = upgrade.previous()
    except upgrade.NoSuchVersionError as error:
        pytest.skip(f"the previous release is not in this clone: {error}")
    outcome = upgrade.run(commit, tmp_path, SEED, ["classic"], rate=100)
    assert outcome.findings == [], str(outcome)
    assert len(outcome.steps) == 8


@pytest.mark.soak
@pytest.mark.jvm
@pytest.mark.timeout(1500)
@pytest.mark.skipif(not shutil.which("javac") or not shutil.which("mvn"), reason="needs a JDK and Maven")
def test_migration(tmp_path: Path) -> None:
    """From Kafka to Barnabas and back."""
    print(f"repeat with BARNABAS_SEED={SEED}")
    outcome = migration.run(tmp_path, ["confluent"], "both", SEED, rate=100)
    assert outcome.findings == [], str(outcome)
    assert len(outcome.steps) == 6


def test_a_clone_without_history_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(upgrade, "ROOT", tmp_path)
    with pytest.raises(upgrade.NoSuchVersionError, match="not a git repository"):
        upgrade.previous()
    assert upgrade.main(["--from", "v0.1.0"]) == 2


def test_git_that_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(upgrade.NoSuchVersionError, match="git is not installed"):
        upgrade.previous()
