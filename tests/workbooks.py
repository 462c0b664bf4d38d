"""A small Excel workbook, made by hand: enough of the format that any reader of it reads it."""

import io
import zipfile

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_PARTS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_LINKS = "http://schemas.openxmlformats.org/package/2006/relationships"
DATE, TIME = 1, 2
"""Styles of cells: a number that is shown as a day, as a day and its time."""


def workbook(sheets, *, compression=zipfile.ZIP_DEFLATED):
    """The bytes of a workbook: name to rows of cells; a cell is a number, a text, a boolean, None or (number, style)."""
    names = list(enumerate(sheets, start=1))
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", compression) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("_rels/.rels", _links([("w", "officeDocument", "xl/workbook.xml")]))
        listed = "".join(f'<sheet name="{name}" sheetId="{i}" r:id="r{i}"/>' for i, name in names)
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{_MAIN}" xmlns:r="{_PARTS}"><sheets>{listed}</sheets></workbook>',
        )
        links = [(f"r{i}", "worksheet", f"worksheets/sheet{i}.xml") for i, _ in names]
        archive.writestr("xl/_rels/workbook.xml.rels", _links([*links, ("s", "styles", "styles.xml")]))
        styles = "".join(f'<xf numFmtId="{number}" applyNumberFormat="1"/>' for number in (0, 14, 22))
        archive.writestr(
            "xl/styles.xml", f'<styleSheet xmlns="{_MAIN}"><cellXfs count="3">{styles}</cellXfs></styleSheet>'
        )
        for i, name in names:
            rows = "".join(_row(number, cells) for number, cells in enumerate(sheets[name], start=1))
            archive.writestr(
                f"xl/worksheets/sheet{i}.xml",
                f'<worksheet xmlns="{_MAIN}"><sheetData>{rows}</sheetData></worksheet>',
            )
    return content.getvalue()


def _links(links):
    listed = "".join(
        f'<Relationship Id="{i}" Type="{_PARTS}/{kind}" Target="{to}"/>' for i, kind, to in links
    )
    return f'<Relationships xmlns="{_LINKS}">{listed}</Relationships>'


def _row(number, cells):
    written = "".join(_cell(f"{chr(65 + place)}{number}", cell) for place, cell in enumerate(cells))
    return f'<row r="{number}">{written}</row>'


def _cell(place, cell):
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return f'<c r="{place}" t="b"><v>{int(cell)}</v></c>'
    if isinstance(cell, str):
        return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{cell}</t></is></c>'
    value, style = cell if isinstance(cell, tuple) else (cell, 0)
    return f'<c r="{place}" s="{style}"><v>{value!r}</v></c>'
