"""Configuration: the declared keys, where their values come from, and the settings of groups."""
