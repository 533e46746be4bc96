"""Barnabas: a broker that speaks Kafka's wire protocol. The installed package.

Importing it is cheap: broker, client and command line are imported on first use.
"""

from __future__ import annotations

__version__ = "0.1.0"
