"""Objects, bytes under a name, whole or absent. Their meaning and readers are for `storage.store` and above."""
