"""Coverage-guided fuzzing of what reads bytes of others: `python -m tests.fuzz TARGET --seconds 60`.

- `targets/NAME.py` is one target: `check(data)` fails for anything but the declared exceptions, for a round trip that
  is none, and for a text that UTF-8 cannot encode; `seeds()` are inputs of real clients, Kafka's vectors and tests.
- `corpus.py` keeps inputs that reach something, in `tests/data/fuzz`; `test_corpus.py` replays them without a fuzzer.
- `engine.py` runs a target under Atheris (`pip install -e .[fuzz]`), in a process of its own.
- `minimise.py` chooses the smallest inputs that reach all lines the corpus reaches.
"""
