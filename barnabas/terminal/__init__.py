"""Output that the command line and the pipeline share: tables, and suggestions for misspelt words."""
