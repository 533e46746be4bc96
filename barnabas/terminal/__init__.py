"""What the command line and the pipeline print the same way: tables, and suggestions for misspelt words."""
