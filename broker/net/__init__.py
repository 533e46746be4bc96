"""The network layer: listening sockets, connections, frames, sending. It is the only part that uses sockets.

It cuts received bytes into frames, passes each frame to a `dispatch` callable, and sends the bytes that `dispatch`
appends to the connection's output. It uses no API, no log and no configuration: of the broker it imports `event_loop`
alone, and of the other packages `wire`. All of it is a hot path: measure with `python -m bench` before and
after a change.
"""
