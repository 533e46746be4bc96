"""Records as users write and read them: as JSON lines, selected by expressions and patterns, found by positions."""
