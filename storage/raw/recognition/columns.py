"""Tell from a raw column's public values whether it is used as it stands, must be read first, or is of no use.

Pure: texts in, a finding out. Which columns are looked at, and what follows, is in `storage.raw.column_types`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from ldptree.errors import DataError
from storage.raw.recognition import date_forms, names, number_forms
from storage.raw.recognition.findings import ODD, ColumnSample, Finding, Reading, tell_unread
from storage.sql import COLUMNS_SHOWN, quote, scratch_cursor


def recognise(sample: ColumnSample) -> Finding | None:
    """What must be known of a column before it is a feature; None where it may be one as it stands."""
    if not sample.head or sample.is_truth:
        return None
    if sample.is_number:
        if date_forms.are_compact(sample):
            return date_forms.recognise(sample)
        return number_forms.recognise_thousands(sample) or names.recognise_numbers(sample)
    finding = _recognise_form(sample) or _recognise_form(_without_odd(sample))
    if finding is not None and finding.readings:
        unread = _unread(sample, finding.readings[0])
        return replace(finding, sentence=finding.sentence + tell_unread(sample.spread, unread))
    return finding if finding or sample.is_mostly_number else names.recognise_texts(sample)


def _recognise_form(sample: ColumnSample) -> Finding | None:
    return number_forms.recognise(sample) or date_forms.recognise(sample)


def _without_odd(sample: ColumnSample) -> ColumnSample:
    """The sample without its rarest values, of which no more than a few are faults."""
    odd, most = set(), ODD * len(sample.spread)
    for text, count in sorted(Counter(sample.spread).items(), key=lambda item: (item[1], item[0])):
        most -= count
        if most < 0:
            break
        odd.add(text)
    return replace(sample, spread=[text for text in sample.spread if text not in odd])


def _unread(sample: ColumnSample, reading: Reading) -> set[str]:
    """The values that a reading makes nothing of."""
    texts = list(dict.fromkeys(sample.spread))
    with scratch_cursor() as cursor:
        given = f"SELECT unnest(?::VARCHAR[]) AS {quote(sample.column)}"
        query = f"SELECT {quote(sample.column)} FROM ({given}) WHERE TRY({reading.order}) IS NULL"
        return {text for (text,) in cursor.execute(query, [texts]).fetchall()}


class ColumnsToRead(DataError):  # noqa: N818 - what is found, as the others
    """Columns must be read first. The message has what each holds, and the lines to paste.

    in_python: the same with what to write where Python is what one writes in.
    """

    in_python: str = ""


def refusal(source: str, findings: list[Finding], target: str) -> ColumnsToRead:
    """What is said of columns that must be read first."""
    alone = len(findings) == 1
    listed = findings[:COLUMNS_SHOWN]
    held = "\n".join(f"  {finding.column}: {finding.sentence}" for finding in listed)
    if len(findings) > len(listed):
        held += f"\n  and so on; the first {len(listed)} are listed"
    is_target = any(finding.column == target for finding in findings)
    begin = (
        f"{source}: {'a column holds' if alone else f'{len(findings)} columns hold'} numbers or dates that must be read first "
        f"(seen in public rows):\n{held}\n"
    )
    wanted = f"what you want of {'it' if alone else 'them'}; a column that is read so is left out itself:\n"
    in_toml = [line for finding in listed for line in _lines(finding, Reading.toml_lines)]
    if is_target:
        in_toml.append(f'Then name the new column in dataset.target: "{target}" itself is left out.')
    fault = ColumnsToRead(
        f"{begin}Paste under [dataset.derive] {wanted}"
        + "\n".join(f"  {line}" for line in in_toml)
        + "\nOr add a column to dataset.drop; or to dataset.categorical, where its texts are categories."
    )
    in_python = [line for finding in listed for line in _lines(finding, Reading.python_lines)]
    fault.in_python = (
        f"{begin}Give {wanted}  derive={{\n"
        + "\n".join(f"    {line}" for line in in_python)
        + "\n  }\n"
        + (f"Then name the new column as target=...: {target!r} itself is left out.\n" if is_target else "")
        + f"Or leave a column out, drop=[{findings[0].column!r}]; or, where its texts are categories, "
        f"categorical=[{findings[0].column!r}]."
    )
    return fault


def _lines(finding: Finding, lines_of: Callable[[Reading], list[str]]) -> list[str]:
    """The lines of all readings of a finding; where there is a choice, each choice under a comment."""
    if len(finding.readings) == 1:
        return lines_of(finding.readings[0])
    return [
        line
        for reading in finding.readings
        for line in (
            f"# {finding.column}, if {reading.label}:",
            *(f"# {line}" for line in lines_of(reading)),
        )
    ]
