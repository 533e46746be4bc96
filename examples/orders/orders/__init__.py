"""A small service around a topic of orders."""
