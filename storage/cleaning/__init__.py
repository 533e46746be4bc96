"""Compaction: which part of a log is cleaned (`selection`), the cleaner's task (`task`), and its work (`cleaner`)."""
