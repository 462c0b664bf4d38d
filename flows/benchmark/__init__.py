"""The benchmark: its flow, and its command."""
