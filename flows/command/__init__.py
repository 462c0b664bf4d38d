"""The command line: its commands, what a terminal shows, and how the program ends."""
