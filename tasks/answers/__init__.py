"""Answers to a question, which are checked as they come from other machines, and added up in a round."""
