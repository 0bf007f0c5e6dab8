"""From snapshots of partitions to windows and readings. Pure."""
