"""Checks that the responses and records that clients received are consistent. README.md describes the format."""
