"""Small workbooks, written by hand: XLSX, OpenDocument, and the shell of an encrypted one."""

import io
import struct
import zipfile
from xml.sax.saxutils import escape

ODS = "application/vnd.oasis.opendocument.spreadsheet"
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_REL = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def xlsx(sheets):
    """A workbook of `{name: rows}`; a cell is a text, a number, a truth value, or `("date", serial)`."""
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="xml"'
        ' ContentType="application/xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r" Type="{_REL}/'
        'officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_REL}"><sheets>'
        + "".join(
            f'<sheet name="{escape(name)}" sheetId="{n}" r:id="r{n}"/>' for n, name in enumerate(sheets, 1)
        )
        + "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
        + "".join(
            f'<Relationship Id="r{n}" Type="{_REL}/worksheet" Target="worksheets/sheet{n}.xml"/>'
            for n in range(1, len(sheets) + 1)
        )
        + f'<Relationship Id="s" Type="{_REL}/styles" Target="styles.xml"/></Relationships>',
        "xl/styles.xml": f'<styleSheet xmlns="{_MAIN}"><cellXfs><xf numFmtId="0"/>'
        '<xf numFmtId="14"/></cellXfs></styleSheet>',
    }
    for number, rows in enumerate(sheets.values(), 1):
        lines = "".join(f'<row r="{n}">{_cells(row, n)}</row>' for n, row in enumerate(rows, 1))
        parts[f"xl/worksheets/sheet{number}.xml"] = (
            f'<worksheet xmlns="{_MAIN}"><sheetData>{lines}</sheetData></worksheet>'
        )
    return zipped(parts)


def huge_xlsx():
    """A cell in the first place and one in the last, which a full rectangle between them would hold."""
    rows = '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
    body = f'<worksheet xmlns="{_MAIN}"><sheetData>{rows}</sheetData></worksheet>'
    with zipfile.ZipFile(io.BytesIO(xlsx({"one": []}))) as plain:
        parts = {name: plain.read(name) for name in plain.namelist()}
    return zipped({**parts, "xl/worksheets/sheet1.xml": body})


def ods(sheets):
    """The same for OpenDocument; cells are texts or numbers."""
    tables = "".join(
        f'<table:table table:name="{escape(name)}">'
        + "".join(f"<table:table-row>{''.join(map(_ods_cell, row))}</table:table-row>" for row in rows)
        + "</table:table>"
        for name, rows in sheets.items()
    )
    oasis = "urn:oasis:names:tc:opendocument:xmlns:"
    content = (
        f'<office:document-content xmlns:office="{oasis}office:1.0" xmlns:table="{oasis}table:1.0"'
        f' xmlns:text="{oasis}text:1.0"><office:body><office:spreadsheet>{tables}</office:spreadsheet>'
        "</office:body></office:document-content>"
    )
    manifest = (
        f'<manifest:manifest xmlns:manifest="{oasis}manifest:1.0"><manifest:file-entry manifest:full-path="/"'
        f' manifest:media-type="{ODS}"/></manifest:manifest>'
    )
    return zipped({"mimetype": ODS, "content.xml": content, "META-INF/manifest.xml": manifest})


def encrypted():
    """A compound file with the one stream that says: a workbook is in here, behind a password."""
    sector, end, free = 512, 0xFFFFFFFE, 0xFFFFFFFF
    data = b"\x00" * 4096
    streams = len(data) // sector
    fat = [0xFFFFFFFD, end, *range(3, 2 + streams), end]
    fat += [free] * (sector // 4 - len(fat))
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH6x", 0x3E, 3, 0xFFFE, 9, 6)
    header += struct.pack("<9I", 0, 1, 1, 0, 4096, end, 0, end, 0) + struct.pack("<109I", 0, *[free] * 108)
    directory = _entry("Root Entry", 5, 1, end, 0) + _entry("EncryptedPackage", 2, free, 2, len(data))
    directory += bytes(sector - len(directory))
    return header + struct.pack("<128I", *fat) + directory + data


def zipped(parts):
    """A zip archive of `{name: content}`."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _cells(row, number):
    return "".join(_cell(value, f"{_letters(place)}{number}") for place, value in enumerate(row))


def _cell(value, at):
    if isinstance(value, tuple):
        return f'<c r="{at}" s="1"><v>{value[1]}</v></c>'
    if isinstance(value, bool):
        return f'<c r="{at}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, str):
        return f'<c r="{at}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f'<c r="{at}"><v>{value}</v></c>'


def _letters(place):
    letters = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


def _ods_cell(value):
    kind = (
        'office:value-type="string"'
        if isinstance(value, str)
        else f'office:value-type="float" office:value="{value}"'
    )
    return f"<table:table-cell {kind}><text:p>{escape(str(value))}</text:p></table:table-cell>"


def _entry(name, kind, child, start, size):
    text = name.encode("utf-16-le").ljust(64, b"\0")
    free = 0xFFFFFFFF
    return (
        text
        + struct.pack("<HBB", 2 * len(name) + 2, kind, 1)
        + struct.pack("<III", free, free, child if kind == 5 else free)
        + bytes(16 + 4 + 16)
        + struct.pack("<IQ", start, size)
    )
