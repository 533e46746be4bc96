"""The pure parts of the supervisor: ports, keys of nodes, plans of drain and rebalance, the options."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.cli.serve.cluster import cluster_options
from barnabas.cli.serve.run import UsageError, parser
from barnabas.supervise import drains, plan, state
from barnabas.supervise.balance import Assignment, Impossible, Placed, drain, rebalance
from barnabas.supervise.members import Members, node_ports
from barnabas.supervise.options import ClusterOptions
from tests.support.cases import for_each

CONTROLLERS = [plan.Controller(3000, "127.0.0.1", 29093)]


def options_of(*arguments: str) -> ClusterOptions:
    return cluster_options(parser().parse_args(["--brokers", "3", *arguments]), {})


def test_ports_follow_the_first_one() -> None:
    assert node_ports("127.0.0.1", 9092, 3) == [9092, 9093, 9094]
    with pytest.raises(ValueError, match="65535"):
        node_ports("127.0.0.1", 65534, 3)
    assert len(set(node_ports("127.0.0.1", 0, 5))) == 5


def test_keys_for_all_and_for_one() -> None:
    options = options_of("--set", "num.partitions=2", "--set", "2:broker.rack=b", "--listen", "[::1]:1000")
    assert options.sets == {"num.partitions": "2"}
    assert options.node_sets == {2: {"broker.rack": "b"}}
    assert (options.host, options.port) == ("::1", 1000)


@for_each(
    ("address", "of_third"),
    [("127.0.0.1:9464", "127.0.0.1:9466"), ("[::1]:9464", "[::1]:9466"), ("127.0.0.1:0", "127.0.0.1:0"), ("x", "x")],
)
def test_each_broker_has_a_port_for_its_metrics(address: str, of_third: str) -> None:
    assert plan.metrics_address(address, 1) == address
    assert plan.metrics_address(address, 3) == of_third


def test_a_listener_of_metrics_for_one_broker_is_taken_as_it_is(tmp_path: Path) -> None:
    sets = ("--set", "barnabas.metrics.listener=127.0.0.1:9464", "--set", "2:barnabas.metrics.listener=127.0.0.1:7000")
    members = Members(options_of(*sets), str(tmp_path))
    listeners = {node.node_id: members._keys(node).get("barnabas.metrics.listener") for node in members.state.brokers}
    assert listeners == {1: "127.0.0.1:9464", 2: "127.0.0.1:7000", 3: "127.0.0.1:9466"}


@for_each("text", ["0", "100", "x", "-1"])
def test_the_number_of_brokers_is_checked(text: str) -> None:
    with pytest.raises(UsageError, match="--brokers must be"):
        cluster_options(parser().parse_args([f"--brokers={text}"]), {})


def test_keys_that_make_a_node_part_of_the_cluster_win() -> None:
    keys = plan.broker_keys(2, "127.0.0.1", 9093, "/d/broker-2", CONTROLLERS, {"num.partitions": "4"})
    assert keys["listeners"] == "PLAINTEXT://127.0.0.1:9093"
    assert keys["controller.quorum.voters"] == "3000@127.0.0.1:29093"
    assert keys["process.roles"] == "broker"
    assert keys["num.partitions"] == "4"
    assert plan.controller_keys(3000, "/d", CONTROLLERS, {})["listeners"] == "CONTROLLER://127.0.0.1:29093"


@for_each(("brokers", "replicas", "in_sync"), [(1, "1", "1"), (2, "2", "1"), (3, "3", "2"), (5, "3", "2")])
def test_replicas_of_a_cluster_in_the_dev_profile(brokers: int, replicas: str, in_sync: str) -> None:
    defaults = plan.replication_defaults(brokers)
    assert defaults["default.replication.factor"] == defaults["offsets.topic.replication.factor"] == replicas
    assert defaults["min.insync.replicas"] == defaults["transaction.state.log.min.isr"] == in_sync


def test_keys_of_the_supervisor_cannot_be_set(tmp_path: Path) -> None:
    with pytest.raises(plan.PlanError, match=r"node\.id"):
        Members(options_of("--set", "node.id=7"), str(tmp_path))
    with pytest.raises(plan.PlanError, match="there is no node 7"):
        Members(options_of("--set", "7:num.partitions=1", "--listen", "127.0.0.1:0"), str(tmp_path))


def test_a_directory_keeps_its_cluster(tmp_path: Path) -> None:
    first = Members(options_of("--listen", "127.0.0.1:0"), str(tmp_path))
    state.write(str(tmp_path), first.state)
    second = Members(options_of("--listen", "127.0.0.1:0"), str(tmp_path))
    assert second.state.cluster_id == first.state.cluster_id
    with pytest.raises(plan.PlanError, match="--controllers ours"):
        Members(options_of("--listen", "127.0.0.1:0", "--controllers", "kafka"), str(tmp_path))


def test_a_directory_without_a_cluster_is_said(tmp_path: Path) -> None:
    with pytest.raises(state.NoCluster, match="is not the directory of a cluster"):
        state.read(str(tmp_path))


def test_the_cluster_id_of_the_environment_is_kept(tmp_path: Path) -> None:
    environment = {"CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw"}
    options = replace(options_of("--listen", "127.0.0.1:0"), environment=environment)
    assert Members(options, str(tmp_path)).state.cluster_id == "4L6g3nShT-eMCtK--X86sw"


def test_fields_of_a_later_version_are_ignored_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = Members(options_of("--listen", "127.0.0.1:0"), str(tmp_path))
    state.write(str(tmp_path), first.state)
    later = json.loads((tmp_path / state.FILE).read_text()) | {"zones": ["a"]}
    later["nodes"][1] |= {"zone": "a"}
    (tmp_path / state.FILE).write_text(json.dumps(later))
    assert state.read(str(tmp_path)) == first.state
    again = Members(options_of("--listen", "127.0.0.1:0"), str(tmp_path))
    assert again.state.cluster_id == first.state.cluster_id
    assert "fields of a later version, which are ignored: zone, zones" in capsys.readouterr().err


def test_a_damaged_file_of_a_drained_broker_is_one_sentence(tmp_path: Path) -> None:
    drains.save(str(tmp_path), 2, {("t", 0): [1, 2]})
    assert drains.load(str(tmp_path), 2) == {("t", 0): [1, 2]}
    (tmp_path / "broker-2.drained.json").write_text("[[1]")
    with pytest.raises(state.NoCluster, match="cannot be read"):
        drains.load(str(tmp_path), 2)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[dict[tuple[str, int], Placed], list[int]]:
    """Partitions with one to three replicas each on up to six brokers; any that is in sync leads, after failures."""
    brokers = list(range(1, draw(st.integers(1, 6)) + 1))
    count = draw(st.integers(1, 12))
    replicas = draw(st.integers(1, min(3, len(brokers))))
    placed = {}
    for index in range(count):
        chosen = draw(st.permutations(brokers))[:replicas]
        in_sync = draw(st.sets(st.sampled_from(chosen)))
        placed["t", index] = Placed(chosen, draw(st.sampled_from(sorted(in_sync))) if in_sync else -1, sorted(in_sync))
    return placed, brokers


def spread(counts: Counter[int], brokers: list[int]) -> int:
    numbers = [counts[broker] for broker in brokers]
    return max(numbers) - min(numbers)


Clusters = tuple[dict[tuple[str, int], Placed], list[int]]


def carried_out(current: dict[tuple[str, int], Placed], plan: Assignment) -> dict[tuple[str, int], Placed]:
    """The partitions when a plan is done: all replicas are in sync, and of what was planned the first leads."""
    done = {partition: Placed(before.replicas, before.leader, before.replicas) for partition, before in current.items()}
    return done | {partition: Placed(placed, placed[0], placed) for partition, placed in plan.items()}


@given(clusters())
def test_a_rebalanced_cluster_is_even(made: Clusters) -> None:
    current, brokers = made
    placement = carried_out(current, rebalance(current, brokers))
    for partition, placed in placement.items():
        assert len(set(placed.replicas)) == len(placed.replicas) == len(current[partition].replicas)
        assert placed.leader == placed.replicas[0], "who leads now counts, not who is preferred"
    assert spread(Counter(replica for placed in placement.values() for replica in placed.replicas), brokers) <= 1
    assert rebalance(placement, brokers) == {}


def test_leaders_that_a_failure_has_moved_are_given_back() -> None:
    """The replicas are spread evenly, but after broker 1 came back it leads nothing."""
    replicas = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
    current = {("t", at): Placed(replica_list, 3, [1, 2, 3]) for at, replica_list in enumerate(replicas)}
    assert rebalance(current, [1, 2, 3]) == {("t", 0): [1, 2, 3], ("t", 1): [2, 3, 1]}


@given(clusters())
def test_brokers_that_are_left_out_lead_only_what_no_other_can(made: Clusters) -> None:
    current, brokers = made
    used = brokers[1:]
    for placed in carried_out(current, rebalance(current, used)).values():
        assert placed.leader in used or not set(placed.replicas) & set(used)


@given(clusters(), st.booleans())
def test_a_drained_broker_leads_nothing(made: Clusters, replicas: bool) -> None:
    current, brokers = made
    others = [broker for broker in brokers if broker != 1]
    try:
        plan = drain(current, 1, others, replicas=replicas)
    except Impossible:
        assert any(set(placed.replicas) >= set(others) for placed in current.values())
        return
    for partition, placed in carried_out(current, plan).items():
        before = current[partition]
        assert len(set(placed.replicas)) == len(before.replicas)
        if list(before.replicas) != [1] or replicas:
            assert placed.leader != 1
            assert placed.replicas[0] != 1, "it would be given back by the next election"
        assert not (replicas and 1 in placed.replicas)
        able = [broker for broker in before.in_sync if broker != 1]
        if partition in plan and able:
            assert placed.leader in able, "a new replica has no records to lead with"


def test_a_drained_broker_leads_nothing_for_others_either() -> None:
    """Broker 2 was down: broker 1 leads its partition, though it is not the first replica."""
    current = {("t", 0): Placed([2, 1, 3], 1, [1, 3]), ("t", 1): Placed([2, 1, 3], 1, [1, 2, 3])}
    assert drain(current, 1, [2, 3], replicas=False) == {("t", 0): [3, 2, 1], ("t", 1): [2, 1, 3]}
