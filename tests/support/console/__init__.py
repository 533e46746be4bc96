"""Consoles for tests: a server in a thread of the test's process, a client for it, and the browser."""
