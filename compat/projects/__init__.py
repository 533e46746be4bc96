"""The tests of other projects, unchanged, on the test kit (README.md)."""
