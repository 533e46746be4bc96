"""Polling of sockets: epoll on Linux, elsewhere a selector."""
