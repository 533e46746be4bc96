"""Commands for tests in any language: the clock, fault rules and recordings of a broker with `serve --control`."""
