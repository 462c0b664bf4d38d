"""Tell from a raw column's public values whether it is used as it stands, must be read first, or is of no use.

Pure: texts in, a finding out. Which columns are looked at, and what follows, is in `storage.raw.column_types`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from ldptree.errors import DataError
from storage.raw.recognition import date_forms, names, number_forms
from storage.raw.recognition.findings import (
    ODD,
    ColumnSample,
    Finding,
    Reading,
    new_name,
    sql_name,
    tell_unread,
)
from storage.sql import COLUMNS_SHOWN, literal, quote, scratch_cursor

_POINTED = re.compile(r"([AaPp])[.] ?[Mm][.]?")
_STAND_IN = "respelled"
"""The name of a column for which an expression is put in."""


def recognise(sample: ColumnSample) -> Finding | None:
    """What must be known of a column before it is a feature; None where it may be one as it stands."""
    if not sample.spread or sample.is_truth:
        return None
    if sample.is_number:
        if date_forms.are_compact(sample):
            return date_forms.recognise(sample)
        return number_forms.recognise_thousands(sample) or names.recognise_numbers(sample)
    finding = _recognise_form(sample) or _recognise_form(_without_odd(sample)) or _recognise_respelled(sample)
    if finding is not None and finding.readings:
        unread = _unread(sample, finding.readings[0])
        return replace(finding, sentence=finding.sentence + tell_unread(sample.spread, unread))
    return finding if finding or sample.is_mostly_number else names.recognise_texts(sample)


def _recognise_form(sample: ColumnSample) -> Finding | None:
    return number_forms.recognise(sample) or date_forms.recognise(sample)


def _recognise_respelled(sample: ColumnSample) -> Finding | None:
    """What the column holds once digits of another script are written as 0 to 9, or "a.m." as "am"."""
    digits = sorted(
        {
            character
            for text in sample.spread
            for character in text
            if character > "9" and character.isdecimal()
        }
    )
    zeros = dict.fromkeys(chr(ord(digit) - int(digit)) for digit in digits)
    scripts = "".join(chr(ord(zero) + i) for zero in zeros for i in range(10))
    ascii_digits = "0123456789" * len(zeros)
    name = sql_name(sample.column)
    what, expression = "a.m. and p.m. with points", f"regexp_replace({name}, '([AaPp])[.] ?[Mm][.]?', '\\1m')"
    texts = [_POINTED.sub(r"\1m", text) for text in sample.spread]
    if digits:
        what = "digits of another script"
        expression = f"translate({name}, {literal(scripts)}, {literal(ascii_digits)})"
        texts = [text.translate(str.maketrans(scripts, ascii_digits)) for text in sample.spread]
    if texts == list(sample.spread):
        return None
    if all(map(number_forms.is_plain_number, texts)):
        expression = f"CAST({expression} AS DOUBLE)"
        number = Reading("", ((new_name(sample.column, "number"), expression),), order=expression)
        return Finding(
            column=sample.column,
            sentence=f"numbers in {what}, as in {sample.spread[0]!r}",
            readings=(number,),
        )
    finding = _recognise_form(ColumnSample.of(_STAND_IN, texts))
    if finding is None or not finding.readings:
        return None
    readings = tuple(
        replace(
            reading,
            derive=tuple(
                (
                    new_name(sample.column, new.removeprefix(f"{_STAND_IN}_")),
                    text.replace(_STAND_IN, expression),
                )
                for new, text in reading.derive
            ),
            order=reading.order.replace(_STAND_IN, expression),
        )
        for reading in finding.readings
    )
    return replace(finding, column=sample.column, sentence=f"{what}: {finding.sentence}", readings=readings)


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
