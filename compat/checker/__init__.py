"""A checker of client histories: what readers saw has to follow from what writers were told.

README.md has the format.
"""
