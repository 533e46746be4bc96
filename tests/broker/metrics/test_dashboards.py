"""Two public dashboards: every query finds series at a broker that has topics and a group.

A query is not run: its selectors are looked up, without the labels that Prometheus would add.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.broker.metrics.pages import Metered, Samples, commit, fetch, produce

DASHBOARDS: list[dict[str, Any]] = tomllib.loads(
    (Path(__file__).parents[2] / "data" / "dashboards.toml").read_text(encoding="utf-8")
)["dashboard"]
SELECTOR = re.compile(r"\b([a-z_]\w*_\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r"""(\w+)\s*(=~|!~|!=|=)\s*(?:"([^"]*)"|'([^']*)')""")
FUNCTIONS = {"label_values", "query_result"}
BY = re.compile(r"by ?\([^)]*\)|(?<=\}), *\w+\)$|, job\)$")


def selectors(query: str) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """The metrics of a query, each with its matchers: label, operator, value."""
    for name, matchers in SELECTOR.findall(BY.sub("", query)):
        if name not in FUNCTIONS:
            yield name, [(label, how, one or two) for label, how, one, two in MATCHER.findall(matchers)]


def is_met(value: str, how: str, wanted: str) -> bool:
    """Whether the value of a label, which is empty if it is not there, meets a matcher."""
    if how in {"=~", "!~"}:
        return bool(re.fullmatch(wanted, value)) == (how == "=~")
    return (value == wanted) == (how == "=")


def found(samples: Samples, dashboard: Mapping[str, Any], query: str) -> Iterator[tuple[str, int]]:
    """The metrics of a query and the number of their series."""
    for name, matchers in selectors(query):
        own = [
            (label, how, re.sub(r"\$(\w+)", lambda match: dashboard["variables"][match[1]], wanted))
            for label, how, wanted in matchers
            if label not in dashboard["added"]
        ]
        series = [dict(labels) for labels in samples.get(name, {})]
        yield name, sum(all(is_met(labels.get(label, ""), *how) for label, *how in own) for labels in series)


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Samples]:
    memory = Metered(tmp_path_factory.mktemp("data"))
    client = memory.client()
    memory.create_topic("orders", 2)
    assert not produce(client, "orders", b"1", b"2")
    assert fetch(client, "orders")
    commit(client, "billing", "orders", 1)
    yield memory.samples()
    memory.close()


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard["title"].split(" (")[0].split(",")[0])
def test_every_query_finds_series(samples: Samples, dashboard: dict[str, Any]) -> None:
    elsewhere = set()
    for query in dashboard["queries"]:
        metrics = list(found(samples, dashboard, query))
        assert len(metrics) == 1, query
        for name, count in metrics:
            if name in dashboard["elsewhere"]:
                elsewhere.add(name)
            else:
                assert count, f"{query} finds nothing"
    assert elsewhere == set(dashboard["elsewhere"])


def test_a_query_of_another_topic_finds_nothing(samples: Samples) -> None:
    query = 'sum(rate(kafka_topic_partition_current_offset{topic="payments"}[1m])) by (topic)'
    assert list(found(samples, DASHBOARDS[0], query)) == [("kafka_topic_partition_current_offset", 0)]
