"""What configurations, data sets and manifests may say."""
