"""A first look at a raw file, before there is a configuration: what it holds, and the configuration that it suggests."""
