"""Data: cards, fetching, readers, columns, the loader, and what `predict` reads.

    card (YAML) -> files (fetch) -> reader -> Dataset of columns -> Loader -> rows of each batch

Modules are imported from where they are defined; this package imports nothing, so that listing data
sets stays cheap.
"""
