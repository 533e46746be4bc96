"""Floods: attacks that go on, each against listeners of several kinds, with the limit that holds them.

A flood is a function of a `Run`, which says how long it goes on and keeps what it opens.
`tests/hostile/floods/test_floods.py` runs each for a few steps beside the healthy client of the harness; `python -m
tests.hostile.floods` runs each for seconds beside a healthy client in a process of its own, and prints what that client
noticed.
"""

from __future__ import annotations

from tests.hostile.floods import connections, groups, metadata, requests

FLOODS = [*connections.FLOODS, *requests.FLOODS, *groups.FLOODS, *metadata.FLOODS]
