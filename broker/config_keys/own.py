"""Barnabas' own keys. Kafka's name is taken wherever Kafka has one; what is left is here, under `barnabas.`."""

from __future__ import annotations
