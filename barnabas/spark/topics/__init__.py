"""Topics in Spark: reading them, writing them, also in transactions, and what is asked of the broker beside that."""
