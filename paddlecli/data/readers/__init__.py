"""Readers: one file a format. A reader turns a card's files into a Dataset.

`READERS` finds them by the name that a card gives in `reader:`; a user's own file may register
more.
"""
