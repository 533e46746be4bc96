"""Runs the group, transaction and share coordinators of `coord` on the partitions of their internal topics (G2, T1).

A coordinator is a pure state machine: `runtime` gives it events, appends and replays the records of the result, and
sends the replies when the records are committed. The differences between the kinds are in `groups`, `transactions` and
`share_coordinators`. State changes only in `replay`; handlers and connections are not known here. This package gets the
parts of the broker in `services`; it imports `replicas`, `config` and `event_loop` of the broker, and `coord`.
"""
