"""The results of a suite, with scores and statements, and the page, the table and the file that it leaves."""
