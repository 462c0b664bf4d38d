"""The command line, with its commands, the display in a terminal and the end of the program."""
