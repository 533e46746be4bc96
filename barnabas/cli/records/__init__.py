"""`barnabas produce` and `barnabas consume`: the commands, formats of records, and the loops that send and print."""
