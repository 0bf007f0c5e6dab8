"""Where events come from when they do not come from Kafka: files, a real log, made-up traffic."""
