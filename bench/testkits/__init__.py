"""Barnabas' test kit beside what people use instead: `python -m bench.testkits`."""
