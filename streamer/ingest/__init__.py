"""From records to events: the schema, rejected records, keys of users, and the spec of the core."""
