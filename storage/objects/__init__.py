"""Objects: bytes under a name, whole or absent. What the bytes mean, and who may see them, is for `storage.store` and above."""
