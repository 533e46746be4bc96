"""Topics: the list, one topic, and what can be changed."""
