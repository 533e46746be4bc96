"""What `python -m bench` measures: one module for each group of cases, and their settings and goals."""
