"""Configuration: the declared keys, the sources of their values, and the settings computed from them.

Every key is declared once, in `keys` (topic keys: `storage.topic_keys`); the keys without effect are one table.
Run `python -m scripts.pages --write` after a change: docs/reference/keys.md is generated from the declarations.
This package imports `coord`, `storage` and `wire`, and nothing else of the broker.
"""
