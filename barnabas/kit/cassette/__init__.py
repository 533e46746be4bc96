"""Sessions of clients: recorded by a proxy between client and broker, kept in a file, answered from it."""
