"""The steps before any question: from raw files to checked, split and scaled rows."""
