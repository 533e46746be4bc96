"""Barnabas: a broker that speaks Kafka's wire protocol. This package is the user's door.

Importing it costs nothing: the broker, the client and the command line are imported when they are used.
"""

from __future__ import annotations

__version__ = "0.1.0"
