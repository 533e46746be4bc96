"""The project's own scripts; none of them is in the wheel."""
