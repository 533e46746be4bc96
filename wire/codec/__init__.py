"""Parses and builds messages: constructs of one version, compiled to straight-line code on first use."""
