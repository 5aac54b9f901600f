"""From recipe text to checked settings: YAML with positions, composition, schema, registries."""
