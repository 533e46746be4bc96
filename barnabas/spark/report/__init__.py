"""What a run shows: on the terminal while it runs, as results, and as a page afterwards."""
