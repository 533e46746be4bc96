"""The demonstration: every flight that left New York in 2013, through all seven jobs, each result checked.

`barnabas pipeline demo` runs it (`run.py`). It is also an example: the `.toml` files beside this are the files of the
jobs, `aircraft.py` is a function of one's own, and `run.py` shows how a program runs jobs in a session that it has.
"""
