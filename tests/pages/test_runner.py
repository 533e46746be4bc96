"""The runner of the pages finds errors in a page."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.pages.environment import PageEnvironment, _closure
from tests.pages.outputs import matches
from tests.pages.running import Follower
from tests.support.blocks import PageError, parse_blocks
from tests.support.cases import for_each

FENCE = "```"


def page(*parts: str) -> str:
    """A page: each part `LANGUAGE|TEXT` is a block, the others are as they are."""
    pieces = []
    for part in parts:
        language, bar, text = part.partition("|")
        pieces.append(f"{FENCE}{language}\n{text}\n{FENCE}\n" if bar else part)
    return "\n".join(pieces)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> PageEnvironment:
    return PageEnvironment(tmp_path_factory.mktemp("pages") / "environment").create()


@pytest.fixture
def follow(environment: PageEnvironment, tmp_path: Path):
    def follow_page(*parts: str) -> Follower:
        (tmp_path / "page").mkdir()
        follower = Follower("page.md", tmp_path, environment, tmp_path)
        follower.follow(parse_blocks(page(*parts), "page.md"))
        return follower

    return follow_page


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (("sh|echo a; false; echo b",), "page.md:1: exit code 1"),
        (("sh|false | true",), "exit code 1"),
        (("python|import no_such_module",), "No module named 'no_such_module'"),
        (("python|import click",), "No module named 'click'"),
        (("<!-- test: prints 4 -->", "python|print(1 + 2)"), "'4' is not in the output:\n3"),
        (("<!-- test: fails 4 -->", "sh|echo 4"), "page.md:2: exit code 0"),
        (("<!-- test: fails 4 -->", "sh|echo 3; exit 1"), "'4' is not in the output:\n3"),
        (("console|$ echo hello\nhallo",), "the page shows\nhallo\n\nbut the output is\nhello"),
        (("console|hello",), "begins with `$ COMMAND`"),
        (("sh|echo one", "<!-- test: output -->", "text|two"), "page.md:6: the page shows\ntwo"),
        (("toml|a = ",), "not toml"),
        (("json|{'a': 1}",), "not json"),
        (("yaml|a: [",), "not yaml"),
        (("<!-- test: file a/b.json -->", "json|{"), "not json"),
        (("<!-- test: same as LICENSE -->", "text|free"), "is not the content of LICENSE"),
        (("<!-- test: targets they take too long -->", "sh|make tea"), "is not `make TARGET`"),
        (("<!-- test: targets they take too long -->", "sh|make test && rm x"), "is not `make TARGET`"),
        (("<!-- test: steps -->", "yaml|jobs: {a: {steps: [{run: exit 3}]}}"), "exit code 3"),
        (("<!-- test: steps -->", "yaml|jobs: {a: {steps: [{uses: actions/checkout}]}}"), "has no shell steps"),
        (("<!-- test: background -->", "sh|sh -c 'exit 3'"), "does not serve 127.0.0.1:9092"),
        (("sh|pip install no-such-package-anywhere",), "has no no-such-package-anywhere"),
        (("sh|pip install barnabas",), "no release of barnabas is on an index yet"),
        (("sh|pip install .",), "the directory . is no clone"),
    ],
)
def test_a_page_that_does_not_hold_is_found(follow, parts: tuple[str, ...], said: str) -> None:
    with pytest.raises(PageError) as caught:
        follow(*parts)
    assert said in str(caught.value)


@for_each(
    ("parts", "said"),
    [
        (("text|what is this",), "page.md:1: a block in 'text' needs a marker"),
        (("|what is this",), "a block in 'no language' needs a marker"),
        (("dockerfile|FROM x",), "a block in 'dockerfile' needs a marker"),
        (("Words.\n\n    barnabas serve\n",), "page.md:3: an indented block says no language"),
        (("<!-- test: skip -->", "sh|true"), "the marker 'skip' needs an argument"),
        (("<!-- test: skip dangerous -->", "sh|true"), "needs a reason, not 'dangerous'"),
        (("<!-- test: background now -->", "sh|true"), "the marker 'background' needs no argument"),
        (("<!-- test: ignore -->", "sh|true"), "there is no marker 'ignore'"),
        (("<!-- test: output -->", "Words.", "sh|true"), "page.md:1: there is no block below the marker 'output'"),
        (("<!-- test: output -->",), "there is no block below the marker 'output'"),
    ],
)
def test_a_marker_without_meaning_is_refused(parts: tuple[str, ...], said: str) -> None:
    with pytest.raises(PageError) as caught:
        parse_blocks(page(*parts), "page.md")
    assert said in str(caught.value)


def test_blocks_share_directory_output_and_ports(follow) -> None:
    follower = follow(
        "<!-- test: setup\necho hidden > hidden.txt\n-->",
        "<!-- test: file made/late.toml -->",
        "toml|address = '127.0.0.1:9092'",
        "console|$ cat hidden.txt made/late.toml\nhidden\naddress = '127.0.0.1:9092'",
        "<!-- test: steps -->",
        "yaml|test: {before_script: [echo a > steps], script: [echo b >> steps; cat steps]}",
        "<!-- test: output -->",
        "text|a\n...",
        "<!-- test: fails wanted -->",
        "sh|echo wanted; exit 3",
        "1. In a list:\n\n   ```sh\n   touch from-a-list\n   ```\n",
        "<!-- test: skip it would remove everything -->",
        "sh|rm -rf .",
        "<!-- test: soak it takes its time -->",
        "sh|exit 1",
    )
    assert (follower.directory / "from-a-list").exists()
    assert follower.ports["9092"] in (follower.directory / "made/late.toml").read_text()


@for_each(
    ("shown", "real", "equal"),
    [
        ("a  b", "a b\n", True),
        ("a\n...\nd", "a\nb\nc\nd", True),
        ("a\n...\nd", "a\nd", True),
        ("a\n...", "b\na", False),
        ("in ... s", "in 1.5 s", True),
        ("in ... s", "in 1.5 ms", False),
        ("in ... seconds", "in 1.5 s", False),
        ("a.c", "abc", False),
        ("green", "\x1b[32mgreen\x1b[0m", True),
        ("a", "a\nb", False),
        ("a\nb", "a", False),
    ],
)
def test_outputs_are_compared_as_a_whole(shown: str, real: str, equal: bool) -> None:
    assert matches(shown, real) is equal


def test_an_environment_has_what_metadata_asks_for_and_no_more() -> None:
    plain = {name for name, _ in _closure(Requirement("barnabas"), set())}
    assert {"barnabas", "trio", "click", "sniffio"} <= plain
    assert plain.isdisjoint({"pyspark", "confluent-kafka", "pytest"})
    with_spark = {name for name, _ in _closure(Requirement("barnabas[spark]"), set())}
    assert plain | {"pyspark", "py4j", "confluent-kafka"} <= with_spark
    for wrong in ("barnabas[no-such-extra]", "click>=1000", "no-such-package"):
        with pytest.raises(LookupError):
            list(_closure(Requirement(wrong), set()))
