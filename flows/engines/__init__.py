"""Where the shards of a step are computed: in threads of this process, or by a Ray cluster."""
