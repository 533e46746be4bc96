"""The broker as a client of other nodes: connections that it opens, with TLS and log-ins, and requests over them."""
