"""The control channel itself: the HTTP server, and the process that has it."""
