"""Compaction: which log is cleaned (`selection`), what a cleaner is told (`task`), how it cleans (`cleaner`)."""
