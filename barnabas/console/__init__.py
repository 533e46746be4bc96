"""The console: pages in a browser about a cluster, in a process of its own."""
