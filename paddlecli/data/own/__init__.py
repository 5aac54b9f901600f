"""Users' own files: read into frames, cut into splits, made into the fields of a network."""
