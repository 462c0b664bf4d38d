"""Read reports that were handed in, as lines of clients (`lines`) or shards of the pipeline (`shards`)."""
