"""Groups of the consumer protocol (rule G3, KIP-848).

A partition has no new owner before the old one has revoked it or was removed from the group; the log never assigns it
to two members; only commits of its owner are accepted.
"""

from __future__ import annotations

from tests.simulation.group_clients import CONSUMER
from tests.simulation.groups import Groups


class ConsumerGroups(Groups):
    """A run of this kind."""

    protocol = CONSUMER
