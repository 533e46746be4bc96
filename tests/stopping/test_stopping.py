"""Every command stops as with Ctrl-C when SIGTERM comes to all of its processes.

`python -m tests.stopping` does the same at a hundred moments of each.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.stopping.subjects import SUBJECTS, fill
from tests.stopping.sweep import moments, stop_at
from tests.support.cases import for_each


@for_each("subject", [subject for subject in SUBJECTS if not subject.is_job])
def test_a_command_stops_at_any_moment(broker: Any, tmp_path: Path, subject: Any) -> None:
    fill(broker.bootstrap)
    wrong = [
        stop_at(subject, moment, tmp_path / f"{subject.name}-{number}", broker.bootstrap)
        for number, moment in enumerate(moments(subject, 2, seed=1))
    ]
    assert wrong == [None, None]


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.jvm
@pytest.mark.timeout(900)
@for_each("subject", [subject for subject in SUBJECTS if subject.is_job])
def test_a_job_stops_at_any_moment(broker: Any, tmp_path: Path, subject: Any) -> None:
    fill(broker.bootstrap)
    for number, moment in enumerate(moments(subject, 6, seed=1)):
        assert stop_at(subject, moment, tmp_path / f"{subject.name}-{number}", broker.bootstrap) is None
