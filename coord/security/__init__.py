"""Decisions about security without network and clock: rules of access, credentials, tokens."""
