"""Costs are counted, not timed: what a request makes CPython execute, and the system calls, against a committed table.

`python -m tests.costs` prints the counts. A broker runs in a process of its own and serves real sockets from a real
directory; `injected` counts in it. docs/contributing/project-tests.md says how to read the table
and when to write a new one.
"""
