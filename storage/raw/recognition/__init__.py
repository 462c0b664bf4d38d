"""What public values of a column look like: dates, numbers and names that are written in many ways."""
