"""Clients of coordinators work while a cluster of real processes is broken, and find nothing wrong.

`python -m tests.cluster.faults --work transactions,groups,share,streams --client mixed` does the same for longer, with
more clients.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.faults import Faults, Outcome
from tests.cluster.load import coordinator_work
from tests.support.cluster.clusters import Cluster
from tests.support.volume import first_seed

SEED = first_seed()
PLAN = {"kill": 2, "pause": 1, "controller": 1}


@pytest.mark.soak
@pytest.mark.timeout(1500)
def test_coordinators_survive_faults(tmp_path: Path) -> None:
    print(f"repeat with BARNABAS_SEED={SEED}")
    with Cluster(tmp_path / "cluster", config=coordinator_work.CONFIG) as cluster:
        run = Faults(cluster, tmp_path / "histories", SEED, "confluent", None, 100, ("transactions", "groups", "share"))
        outcome = run(PLAN)
    assert outcome.findings == [], str(outcome)
    assert outcome.faults == PLAN
    assert outcome.counts.keys() == {"transactions", "offset commits", "share acks"}


def test_the_answers_of_each_kind_are_counted(tmp_path: Path) -> None:
    """The line of a run, of which `make soak` takes its figures."""
    outcome = Outcome(21, {"kill": 2}, 100, counts={"transactions": 3, "share acks": 5}, seconds=7.0)
    assert str(outcome) == "seed 21: 2 kill; 100 acknowledged, 3 transactions, 5 share acks in 7 s; 0 findings"
    (tmp_path / "one.jsonl").write_text(
        '{"type": "committed", "txn": "a"}\n'
        '{"type": "committed_offsets", "txn": "a"}\n{"type": "committed_offsets"}\n{"type": "committing_offsets"}\n'
        '{"type": "acknowledged", "records": [[], []]}\n{"type": "aborted", "txn": "b"}\n'
    )
    counts = dict.fromkeys(coordinator_work.COUNTED, 0)
    coordinator_work._count(tmp_path, counts)
    assert counts == {"transactions": 1, "offset commits": 1, "share acks": 2, "words": 0}


def test_unknown_work_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no work 'dreams', only records, transactions, groups, share, str"):
        list(coordinator_work._made("dreams", None, tmp_path, 1, "mixed"))  # type: ignore[arg-type]
