"""The structure of the source: which file imports which, how long files and functions are, and a picture of it."""
