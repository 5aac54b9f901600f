"""Encodings that readers open without believing them: archives, pickles, MATLAB, pictures."""
