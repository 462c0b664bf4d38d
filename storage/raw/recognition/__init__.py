"""Recognise the public values of a column, such as dates, numbers and names that are written in many ways."""
