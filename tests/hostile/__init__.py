"""Attacks on a broker process, each beside a healthy client on a connection of its own.

    with beside_healthy_client(victim) as healthy:      # harness.py
        attacker = Attacker(victim.bootstrap)           # attacker.py
        ...

The healthy client sends ApiVersions, Produce and Fetch without a pause. Each of its waits is measured in CPU seconds of
the broker process, not on the clock, so that a busy machine changes nothing: the broker may not spend more than
`STALL_LIMIT_S` on others while a request of the healthy client waits. At the end of the block the broker must still
answer, its memory must have stayed below a limit, and its log may have no traceback.

`victim` is one broker for all tests of a file; `start_victim` starts one for a single test (conftest.py).
`python -m tests.hostile` runs the long form, `python -m tests.hostile.fuzz` the fuzz.
"""
