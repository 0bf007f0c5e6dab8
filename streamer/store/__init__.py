"""Where state is kept: cells, tables and offsets of a partition change in one fenced step."""
