"""The demonstration: runs all seven jobs on every flight from New York in 2013, and checks each result.

`barnabas pipeline demo` runs it (`run.py`). It is also an example: the `.toml` files in this directory configure the
jobs, `aircraft.py` is a user-defined function, and `run.py` shows how to run jobs in an existing Spark session.
"""
