"""Record batches of magic 2. `records.py` has the names that other packages use, `batch_format.py` the layout."""
