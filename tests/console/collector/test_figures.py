"""Rates and lags from readings, the bound of partition series, warnings: on plain values."""

from __future__ import annotations

from barnabas.client.offsets import TopicPartition
from barnabas.console.collector import figures as figures_module
from barnabas.console.collector.figures import (
    BrokerFigures,
    Figures,
    GroupFigures,
    HeldPartition,
    TopicFigures,
    TransactionFigures,
)
from barnabas.console.collector.views import chart, group_rows, overview, topic_rows, transaction_rows
from barnabas.console.collector.warnings import MAX_OF_A_KIND, duration, warnings

NOW_S = 1_800_000_000.0


def a_topic(figures: Figures, name: str, *ends: int, at_s: float = NOW_S) -> TopicFigures:
    topic = figures.topics.setdefault(name, TopicFigures(name))
    topic.describe([1] * len(ends), 0)
    topic.put_ends(dict(enumerate(ends)), at_s)
    return topic


def a_group(figures: Figures, name: str, offsets: dict[TopicPartition, int], at_s: float = NOW_S) -> GroupFigures:
    group = figures.groups.setdefault(name, GroupFigures(name, state="Empty"))
    figures.put_offsets(group, offsets, at_s)
    return group


def test_rates_come_from_two_readings_of_the_same_partitions() -> None:
    figures = Figures()
    topic = a_topic(figures, "orders", 10, 20)
    assert topic.in_per_s is None
    a_topic(figures, "orders", 30, 40, at_s=NOW_S + 2)
    assert topic.in_per_s == 20
    a_topic(figures, "orders", 30, 40, 1_000, at_s=NOW_S + 4)  # a new partition is no burst
    assert topic.in_per_s == 0
    a_topic(figures, "orders", 5, at_s=NOW_S + 6)  # made again with fewer partitions
    assert topic.in_per_s is None
    a_topic(figures, "orders", 9, at_s=NOW_S + 8)
    assert topic.in_per_s == 2
    quiet = a_topic(figures, "quiet", 0)
    a_topic(figures, "quiet", 0, at_s=NOW_S + 2)
    assert quiet.history is None  # a topic without records takes no memory for a series


def test_the_lag_of_a_group_is_what_it_has_not_read_of_the_known_ends() -> None:
    figures = Figures()
    a_topic(figures, "orders", 100, 50)
    group = a_group(figures, "readers", {("orders", 0): 40, ("orders", 1): 60, ("gone", 0): 1})
    assert group.lags == {("orders", 0): 60, ("orders", 1): 0}  # committed after the end was read: no negative lag
    a_group(figures, "readers", {("orders", 0): 60, ("orders", 1): 50}, NOW_S + 4)
    assert (group.lag, group.read_per_s) == (40, 5)  # the move back of partition 1 does not count
    figures.put_totals(NOW_S + 4)
    (row,) = topic_rows(figures)
    assert row.out_per_s == 5
    shared = figures.groups["queue"] = GroupFigures("queue", "share", "Stable")
    figures.put_offsets(shared, {("orders", 0): 1}, NOW_S, {("orders", 0): 3})
    assert shared.lag == 3  # a share group's own figure, not the distance to the end
    view = overview(figures, NOW_S + 4)
    assert (view.lag, view.topics, view.partitions, view.groups) == (43, 1, 2, 2)
    figures.groups["queue"].round, figures.groups["readers"].round = 1, 2
    figures.forget_groups(2)
    assert [row.group for row in group_rows(figures)] == ["readers"]


def test_series_of_partitions_are_bounded_and_the_group_that_is_looked_at_has_them(monkeypatch) -> None:
    monkeypatch.setattr(figures_module, "MAX_PARTITION_SERIES", 4)
    figures = Figures()
    a_topic(figures, "orders", 10, 10, 10)
    offsets: dict[TopicPartition, int] = {("orders", index): index for index in range(3)}
    first = a_group(figures, "first", offsets)
    second = a_group(figures, "second", offsets)
    assert (len(first.partition_histories), len(second.partition_histories)) == (3, 0)
    second.looked_at_s = NOW_S
    a_group(figures, "second", offsets, NOW_S + 2)
    a_group(figures, "first", offsets, NOW_S + 2)
    assert (len(first.partition_histories), len(second.partition_histories)) == (0, 3)
    lines = {str(index): second.partition_histories["orders", index] for index in (0, 1)}
    drawn = chart(lines, NOW_S + 2)
    assert drawn.times == [NOW_S + 2]
    assert [(line.label, line.values) for line in drawn.lines] == [("0", [10]), ("1", [9])]
    a_group(figures, "second", {("orders", 0): 10}, NOW_S + 4)
    assert figures.partition_series == len(second.partition_histories) == 1
    figures.groups["second"].round = -1
    figures.forget_groups(0)
    assert figures.partition_series == 0


def test_series_of_topics_are_bounded_and_the_last_active_ones_have_them(monkeypatch) -> None:
    monkeypatch.setattr(figures_module, "MAX_TOPIC_SERIES", 10)
    figures = Figures()
    for number in range(12):
        a_topic(figures, f"t{number:02}", 0)
        a_topic(figures, f"t{number:02}", 5, at_s=NOW_S + 1 + number)
    figures.put_totals(NOW_S + 20)
    assert [name for name, topic in figures.topics.items() if topic.history is None] == ["t00", "t01", "t02"]


def test_each_trouble_of_a_cluster_is_a_sentence_with_a_link() -> None:
    figures = Figures()
    figures.brokers[1] = BrokerFigures(1, "a", 9092, answers=True, disk_used=0.95, certificate_end_s=NOW_S + 3 * 86_400)
    figures.brokers[2] = BrokerFigures(2, "b", 9092, answers=False, failure="no broker answers at b:9092")
    figures.topics["a/b"] = TopicFigures("a/b")
    figures.topics["a/b"].describe([1, -1], 1)
    a_topic(figures, "orders", 10)
    figures.transactions = [
        TransactionFigures(
            "pay", "Ongoing", 7, 0, 1, int((NOW_S - 75) * 1000), 60_000, (HeldPartition("orders", 0, 4, 9),)
        ),
        TransactionFigures("new", "Ongoing", 8, 0, 1, int(NOW_S * 1000), 60_000, (HeldPartition("orders", 0, 4, 9),)),
    ]
    a_group(figures, "late", {("orders", 0): 0}, NOW_S - 30)
    a_topic(figures, "orders", 25)
    a_group(figures, "late", {("orders", 0): 0})
    figures.failures["transactions"] = "not authorized"
    shown = [(warning.kind, warning.subject, warning.link) for warning in warnings(figures, NOW_S)]
    assert shown == [
        ("unreachable", "2", "/cluster"),
        ("no-leader", "a/b", "/topics/a%2Fb"),
        ("under-replicated", "a/b", "/topics/a%2Fb"),
        ("disk", "1", "/cluster"),
        ("certificate", "1", "/cluster"),
        ("transaction", "pay", "/transactions/pay"),
        ("group", "late", "/groups/late"),
        ("refused", "transactions", "/cluster"),
    ]
    sentences = {warning.kind: warning.sentence for warning in warnings(figures, NOW_S)}
    assert "open for 1 min 15 s and holds back 5 offsets" in sentences["transaction"]
    assert "lag grows: 25 records, 15 more" in sentences["group"]
    assert "ends in 3 days" in sentences["certificate"]
    assert "95% full" in sentences["disk"]
    rows = transaction_rows(figures, NOW_S)
    assert [(row.transactional_id, row.held, row.partitions[0].groups) for row in rows] == [
        ("pay", 5, ["late"]),
        ("new", 5, ["late"]),
    ]


def test_many_warnings_of_one_kind_are_summed() -> None:
    figures = Figures()
    for number in range(MAX_OF_A_KIND + 5):
        figures.topics[f"t{number}"] = TopicFigures(f"t{number}")
        figures.topics[f"t{number}"].describe([-1], 0)
    shown = warnings(figures, NOW_S)
    assert len(shown) == MAX_OF_A_KIND + 1
    assert shown[-1].sentence.startswith("5 more of this kind")


def test_durations_have_two_units() -> None:
    texts = [duration(seconds) for seconds in (0.4, 59, 60, 3_725, 90_000)]
    assert texts == ["0 s", "59 s", "1 min", "1 h 2 min", "1 d 1 h"]
