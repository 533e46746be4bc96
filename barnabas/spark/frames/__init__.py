"""Work on DataFrames: decoding by a schema, records that do not match it, SQL, and functions of the user."""
