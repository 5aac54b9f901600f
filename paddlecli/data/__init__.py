"""Data: cards, fetching, readers, columns, the loader, and what `predict` reads.

    card (YAML) -> files (fetching) -> reader -> Dataset of columns -> Loader -> rows of each batch

    cards, card_files   what a data set's YAML says      opening    describe and open one by name
    spec, columns       what is known, and the values    prepared   columns kept on the disk
    vocab, frozen       ids; fields as plain data        loader     the order of an epoch
    inputs, records     what `predict` reads             manage, samples, checking   `dataset ...`
    fetching/  the cache, downloads, imports             formats/   archives, pictures, pickles
    readers/   one per format or book set                own/       users' files to fields
    transforms/  steps that recipes list

Modules are imported from where they are defined; this package imports nothing, so that listing data
sets stays cheap.
"""
