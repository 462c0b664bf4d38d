"""Names of holders, the secret of their zone, and the modes of its files."""
