"""`barnabas cat`: kcat's options and output, for scripts and fingers that know kcat."""
