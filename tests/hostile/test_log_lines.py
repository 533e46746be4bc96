"""Text from clients cannot forge a line of the log, nor steer the terminal that shows it."""

from __future__ import annotations

import re
import struct

from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.groups.classic_groups import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.wire.messages.groups.consumer_groups import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.transactions import EndTxnRequest
from tests.hostile.attacker import Attacker
from tests.hostile.harness import beside_healthy_client

FORGED = "x\n[2026-01-01 00:00:00,000] INFO forged (kafka.server.KafkaServer)\r\x1b[2J\x1b]0;title\x07\u2028\u202e\x85"
LINE = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] [A-Z]+ |\t|$")


def attack(attacker: Attacker) -> None:
    """Send the text wherever a client's text may be logged."""
    attacker.client_id = FORGED
    attacker(ApiVersionsRequest(client_software_name=FORGED, client_software_version=FORGED), 3)
    attacker(CreateTopicsRequest(topics=[CreatableTopic(name=FORGED, num_partitions=1, replication_factor=1)]), 7)
    attacker(MetadataRequest(topics=[MetadataRequestTopic(name=FORGED)], allow_auto_topic_creation=True), 12)
    attacker.find("g")
    protocols = [JoinGroupRequestProtocol(name=FORGED, metadata=b"")]
    join = JoinGroupRequest(
        group_id=FORGED, session_timeout_ms=6000, rebalance_timeout_ms=6000, protocol_type=FORGED, protocols=protocols
    )
    attacker(join, 2)
    attacker(ConsumerGroupHeartbeatRequest(group_id=FORGED, member_id=FORGED, instance_id=FORGED), 1)
    attacker(EndTxnRequest(transactional_id=FORGED, producer_id=1), 4)
    attacker.socket.sendall(struct.pack(">i", 30) + struct.pack(">hhih", 3, 12, 0, 20) + b"\xff\n\x1b[2J" + bytes(14))
    attacker.is_closed_by_broker()


def test_no_line_is_forged(start_victim) -> None:
    victim = start_victim(log_level="debug")
    start = len(victim.log())  # after the lines for people at a terminal
    with beside_healthy_client(victim) as healthy:
        attack(Attacker(victim, healthy))
    log = victim.log()[start:]
    assert "forged" in log  # something of it was logged
    wrong = [line for line in log.split("\n") if not LINE.match(line) or not line.replace("\t", "").isprintable()]
    assert not wrong, wrong
