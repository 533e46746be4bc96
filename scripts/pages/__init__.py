"""The pages of docs/ that follow from the code, and the tables that they and their tests share.

`python -m scripts.pages --write` writes them; a test checks that the committed pages are up to date.
"""
