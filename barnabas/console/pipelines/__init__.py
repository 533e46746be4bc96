"""What runs of `barnabas pipeline` leave in a folder, read without Spark."""
