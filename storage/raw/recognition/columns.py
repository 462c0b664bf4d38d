"""What a raw column holds, told from its public values: it may be used as it stands, it must be read first, or nobody can use it.

Pure: texts in, a finding out. Which columns are looked at, and what follows, is in `storage.raw.column_types`.
"""

from __future__ import annotations

from ldptree.errors import DataError
from storage.raw.recognition import date_forms, names, number_forms
from storage.raw.recognition.findings import ColumnSample, Finding
from storage.sql import COLUMNS_SHOWN


def recognise(sample: ColumnSample) -> Finding | None:
    """What must be known of a column before it is a feature; None where it may be one as it stands."""
    if not sample.head or sample.is_truth:
        return None
    if sample.is_number:
        if date_forms.are_compact(sample):
            return date_forms.recognise(sample)
        return names.recognise_numbers(sample)
    found = number_forms.recognise(sample) or date_forms.recognise(sample)
    return found if found or sample.is_mostly_number else names.recognise_texts(sample)


def refusal(source: str, found: list[Finding], target: str) -> DataError:
    """The message for columns that must be read first: what each holds, and the lines to paste."""
    one = len(found) == 1
    listed = found[:COLUMNS_SHOWN]
    held = "\n".join(f"  {finding.column}: {finding.sentence}" for finding in listed)
    if len(found) > len(listed):
        held += f"\n  and so on; the first {len(listed)} are listed"
    lines = [line for finding in listed for line in _lines(finding)]
    if any(finding.column == target for finding in found):
        lines.append(f'Then name the new column in dataset.target: "{target}" itself is left out.')
    return DataError(
        f"{source}: {'a column holds' if one else f'{len(found)} columns hold'} numbers or dates that must be read first "
        f"(seen in public rows):\n{held}\n"
        f"Paste under [dataset.derive] what you want of {'it' if one else 'them'}; a column that is read so is left out itself:\n"
        + "\n".join(f"  {line}" for line in lines)
        + "\nOr add a column to dataset.drop; or to dataset.categorical, where its texts are categories."
    )


def _lines(finding: Finding) -> list[str]:
    """The lines of `[dataset.derive]`; where there is a choice, each choice under a comment."""
    if len(finding.readings) == 1:
        return finding.readings[0].toml_lines()
    return [
        line
        for reading in finding.readings
        for line in (
            f"# {finding.column}, if {reading.label}:",
            *(f"# {line}" for line in reading.toml_lines()),
        )
    ]
