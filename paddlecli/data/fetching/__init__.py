"""Files of data sets: where they lie, how they get there, and whether they are right."""
