"""Texts that ingest takes as they stand and that mean something else: numbers with words between them, and words in capitals here
and there. Each is read by one expression, from a column that is declared a text.
"""

from __future__ import annotations

from storage.raw.recognition.findings import LEVELS_LISTED, ColumnSample, Finding, Reading, new_name, sql_name


def recognise(sample: ColumnSample) -> Finding | None:
    """What the column means, and how it is read; None where it means what stands there."""
    if not sample.head or sample.is_number or sample.is_truth:
        return None
    if sample.is_mostly_number:
        return _found(sample, "numbers, and words that then are missing", "number", "CAST({} AS DOUBLE)")
    texts = {*sample.head, *sample.spread}
    if sample.n_distinct <= LEVELS_LISTED and len({text.lower() for text in texts}) < len(texts):
        return _found(sample, "texts that differ in capital letters alone", "lower", "lower(trim({}))")
    return None


def _found(sample: ColumnSample, sentence: str, part: str, expression: str) -> Finding:
    derive = (new_name(sample.column, part), expression.format(sql_name(sample.column)))
    return Finding(column=sample.column, sentence=sentence, readings=(Reading("", (derive,)),))
