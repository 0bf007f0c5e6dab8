"""Reading: panes of all partitions, merged into windows and shown as readings. Pure."""
