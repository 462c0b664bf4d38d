"""Answers to a question: those of other machines checked as they come in, those of a round added up."""
