"""Bugs that answer everything correctly, and cost more: calls that were added to the hot path."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_TEST = "tests/costs/test_costs.py::test_no_request_costs_more_than_the_table_says"
COSTS = (
    Mutant(
        "rolling-asked-twice",
        "storage/log.py",
        "            if may_roll(segment, config, header) and should_roll(\n",
        "            if should_roll(\n"
        "                segment, config, header.size, header.last_offset, header.max_timestamp, now\n"
        "            ) or should_roll(\n",
        _TEST,
    ),
    Mutant(
        "access-checked-without-an-authorizer",
        "broker/apis/produce/produce.py",
        "    if broker.authorizer is not None and known.name not in",
        "    if known.name not in",
        _TEST,
    ),
    Mutant(
        "peer-asked-for-each-response",
        "broker/net/channel.py",
        "                sent = self.socket.send(response)\n",
        "                self.socket.getpeername()\n                sent = self.socket.send(response)\n",
        _TEST,
    ),
)
