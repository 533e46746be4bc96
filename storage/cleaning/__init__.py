"""Removes old records: by deleting segments (`retention`), and by compaction.

For compaction: which part of a log is cleaned (`selection`), the cleaner's task (`task`), and its work (`cleaner`).
"""
