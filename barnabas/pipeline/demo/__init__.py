"""The demonstration: all seven jobs on the flights from New York in 2013, with a check of each result.

`barnabas pipeline demo` runs it (`run.py`). It is also an example: the `.toml` files are those of the jobs,
`aircraft.py` is a user's function, and `run.py` runs jobs in an existing session.
"""
