"""testcontainers with the image apache/kafka-native: what most people use. It needs a container engine.

Nothing of it is measured here. What its own page says stands in the table, marked so.
"""

from __future__ import annotations

TITLE = "testcontainers, apache/kafka-native"
