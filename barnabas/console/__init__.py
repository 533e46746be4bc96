"""The console: pages and a JSON API over a cluster, in a process of its own, which talks to brokers as any client."""
