"""How a parallel run shares the tests out: the groups, and that every path in the lists exists."""

from __future__ import annotations

from tests.parallel import EACH_ALONE, LONGEST_FIRST, OWN_PROCESSES, SESSIONS, group_of
from tests.support.cases import for_each
from tests.support.source import ROOT


@for_each(
    ("nodeid", "group"),
    [
        ("tests/wire/test_frame.py::test_a", "tests/wire/test_frame.py"),
        ("tests/wire/test_frame.py::TestB::test_b[1::2]", "tests/wire/test_frame.py"),
        ("tests/clients/spark/test_spark_sink.py::test_c", "Spark"),
        ("tests/pipeline/jobs/test_etl.py::test_d", "Spark"),
        ("tests/testkit/plugin/test_spark_kit.py::test_d", "Spark"),
        ("tests/pipeline/settings/test_config.py::test_e", "tests/pipeline/settings/test_config.py"),
        ("tests/pipeline/running/test_kills.py::test_f", "tests/pipeline/running/test_kills.py::test_f"),
        ("tests/simulation/test_simulation.py::test_g", "tests/simulation/test_simulation.py::test_g"),
    ],
)
def test_group_of_a_test(nodeid: str, group: str) -> None:
    assert group_of(nodeid) == group


@for_each("prefix", sorted({*EACH_ALONE, *LONGEST_FIRST, *OWN_PROCESSES, *SESSIONS}))
def test_listed_paths_exist(prefix: str) -> None:
    assert (ROOT / prefix).exists() or list(ROOT.glob(f"{prefix}*.py"))
