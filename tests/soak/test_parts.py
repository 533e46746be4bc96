"""The parts are declared so that each can be called, counted and repeated."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.floods import FLOODS
from tests.mutants.all import MUTANTS
from tests.soak.marked import files_with_mark, files_with_sizes, marked_names, other_files_with_mark
from tests.soak.parts import BUGS, FAULTS, FIGURES, all_parts
from tests.soak.parts import FLOODS as FLOOD_CALLS
from tests.soak.process import split
from tests.soak.records import ROOT

PARTS = all_parts()


def test_names_differ_and_every_command_is_a_module_of_ours_with_its_seed_or_turn() -> None:
    assert len({part.name for part in PARTS}) == len(PARTS)
    for part in PARTS:
        commands = {part.command_of(seed, turn) for seed in (1, 2) for turn in part.turns}
        assert len(commands) >= max(2, len(part.turns)), part.name
        for command in commands:
            _, words = split(command)
            assert words[:2] == ["python", "-m"]
            module = ROOT / words[2].replace(".", "/")
            assert words[2] == "pytest" or (module / "__main__.py").exists() or module.with_suffix(".py").exists()
            assert all((ROOT / word).exists() for word in words if word.startswith("tests/"))


def test_no_call_is_expected_to_take_longer_than_its_limit() -> None:
    assert [part.name for part in PARTS if part.seconds * 3 > part.limit_s] == []


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_each_figure_is_the_sum_of_counts_of_parts(figure) -> None:
    counts = {part.name: [count.name for count in part.counts] for part in PARTS}
    assert all(figure.count in counts[name] for name in figure.parts if name != "planted-bugs-sample")
    assert any(figure.count in names for names in counts.values())


def test_calls_of_planted_bugs_and_floods_are_short() -> None:
    assert len(MUTANTS) / BUGS <= 10
    assert sum(len(flood.listeners) for flood in FLOODS) / FLOOD_CALLS <= 7


def test_faults_are_read_from_the_last_line_only() -> None:
    output = "1/3 kill\n2/3 kill\nseed 7: 2 cut, 115 kill, 1 whole; 203346 acknowledged in 78 s; 0 findings\n"
    assert [count.read(output) for count in FAULTS[:5]] == [203346, 115, None, 1, 2]


@pytest.mark.parametrize(
    ("name", "output", "counts"),
    [
        ("fuzz", "tls: 90 mutated and 10 absurd requests from seed 7 in 10 s with 1 jobs: 1253 connections", [90, 10]),
        ("floods", "flood  listener\n6 floods, 0 findings\n", [6]),
        ("planted-bugs", "caught 2.4 s  a  b\n8 of 9 mutants caught\n", [8, 9]),
        ("scaled-tests", "2 skipped\n11 passed, 2 skipped in 2.31s\n", [11]),
        ("scaled-tests", "1,204 passed, 5 deselected in 402.31s (0:06:42)\n", [204]),
        ("scaled-tests", "2 skipped, 5 deselected in 0.31s\n", [None]),
        ("crash-states", "300 states of 1 histories from seed 3 in 0 s (662 a second), 0 failures; KEPT 73\n", [300]),
        ("metadata-images", "log of our controller 8: image: ...\n3999 of 4000 logs have the same image\n", [3999]),
        ("fault-sweep", "36 cases in 3 s, 0 failures; produce 3\n", [36]),
    ],
)
def test_counts_are_read(name: str, output: str, counts: list[int | None]) -> None:
    (part,) = [part for part in PARTS if part.name == name]
    assert [count.read(output) for count in part.counts] == counts


def test_every_file_with_the_mark_is_a_part() -> None:
    assert set(files_with_mark()) <= {part.name for part in PARTS}
    assert other_files_with_mark() == [], "only the names of test files and of a conftest.py are found"


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / "tests" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_marks_are_found_in_files_and_by_way_of_a_conftest(tmp_path: Path) -> None:
    mark = "pytest.mark." + "soak"
    fixture = "@pytest.fixture(scope='session', params=KINDS)\ndef cluster(request): ...\n"
    write(
        tmp_path,
        {
            "a/test_marked.py": f"@{mark}\ndef test(): ...\n",
            "a/test_plain.py": "def test(): ...\n",
            "a/test_longer_name.py": "@pytest.mark.soaked\ndef test(): ...\n",
            "b/conftest.py": f"_LONG = [{mark}]\nKINDS = ['one', pytest.param('two', marks=_LONG)]\n{fixture}"
            "@pytest.fixture\ndef topic(cluster): ...\n@pytest.fixture\ndef other(): ...\n",
            "b/test_fixture.py": "def test(cluster): ...\n",
            "b/below/test_by_way_of_another.py": "def test(topic): ...\n",
            "b/test_plain.py": "# a cluster with a topic\nfrom tests.b import other_kinds\ndef test(other): ...\n",
            "b/test_used.py": "pytestmark = pytest.mark.usefixtures('cluster')\n",
            "soak/test_parts.py": f"EXAMPLE = {mark!r}\n",
            "b/helpers.py": f"LONG = {mark}\n",
        },
    )
    paths = ["a/test_marked.py", "b/below/test_by_way_of_another.py", "b/test_fixture.py", "b/test_used.py"]
    assert files_with_mark(tmp_path) == [f"tests/{name}" for name in paths]
    assert marked_names((tmp_path / "tests/b/conftest.py").read_text()) == {"_LONG", "KINDS", "cluster", "topic"}
    assert other_files_with_mark(tmp_path) == ["tests/b/helpers.py"]


def test_files_whose_sizes_the_environment_sets_are_found(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "test_own.py": "from tests.support.volume import first_seed\n",
            "test_plain.py": 'assert settings({"BARNABAS_EXAMPLES": "9"})\n',
            "test_property.py": "from hypothesis import given\n",
            "storage/test_shared.py": "from tests.support.logs.log_driver import EXAMPLES, append\n",
            "storage/test_plain.py": "from tests.support.logs.log_driver import append\n",
        },
    )
    paths = ("storage/test_shared.py", "test_own.py", "test_property.py")
    assert files_with_sizes(tmp_path) == [f"tests/{name}" for name in paths]
