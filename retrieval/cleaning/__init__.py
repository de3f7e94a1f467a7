"""The steps of cleaning, one a file: running lines, wrapped lines. Knows no file format."""
