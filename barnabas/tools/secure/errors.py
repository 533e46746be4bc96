"""What the user can fix about certificates; apart, since reading certificates needs a large package."""

from __future__ import annotations


class SecureError(Exception):
    """A certificate cannot be made or read; the text is one sentence without a secret."""
