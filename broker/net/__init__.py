"""Sockets and connections: bytes in, frames to the dispatcher, responses out. Only here are sockets touched."""
