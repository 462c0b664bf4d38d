"""Raw files as they come: opened, typed, faults put aside, public rows told from private ones."""
