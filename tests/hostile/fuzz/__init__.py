"""A fuzz of a broker process: mutated frames and absurd requests, beside a healthy client.

`python -m tests.hostile.fuzz --mutated 100000 --absurd 10000 --seed 7 --jobs 2`

- `values.py` makes well-formed requests with absurd values, from the declarations of the messages.
- `mutations.py` changes the bytes of valid frames.
- `doors.py` are the listeners that are attacked: plain, before and after a log-in, TLS, mutated TLS (`--door`).
- `traffic.py` sends frames, pipelined on many connections, and finds out which of them closes its connection.
- `watch.py` looks for findings: in the log, in the broker's memory, in the healthy client's waits.
- `job.py` is one broker with its attackers, from the start to a check of what it leaves on the disk.
"""
