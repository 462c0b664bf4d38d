"""The steps before any question, from raw files to typed, checked and scaled rows."""
