"""The error about certificates, in a module of its own, since reading certificates needs a large package."""

from __future__ import annotations


class SecureError(Exception):
    """A certificate cannot be made or read; the text is one sentence without a secret."""
