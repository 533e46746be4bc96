"""Groups that change between the protocols while members work: each process uses one or the other (rule G4).

The checks are those of consumer groups, whatever the type of the group is at the moment.
"""

from __future__ import annotations

from tests.simulation.group_clients import BOTH
from tests.simulation.groups import Groups


class Migration(Groups):
    """A run of this kind."""

    protocol = BOTH
