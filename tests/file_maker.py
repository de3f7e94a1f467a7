"""Makes the files that the loader tests read, byte by byte. Knows no loader."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

IMAGE = "\x00image"  # as the only line of a page: a picture instead of text
_PAD = bytes.fromhex("28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a")
_DENIED = -44  # the permission bits, as a signed number

# Characters are their own codes: any text can be written without a font file.
_TO_UNICODE = (
    b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapType 2 def "
    b"1 begincodespacerange <0000> <FFFF> endcodespacerange "
    b"1 beginbfrange <0000> <FFFF> <0000> endbfrange endcmap end end"
)


def pdf(
    pages: Sequence[Sequence[str]],
    *,
    first_label: int | None = None,
    user: str | None = None,
    owner: str | None = None,
    info: bytes = b"",
) -> bytes:
    """A PDF with one line of text under the other on each page; encrypted (RC4) on demand."""
    objects: dict[int, tuple[bytes, bytes | None]] = {}
    kids = " ".join(f"{10 + 2 * at} 0 R" for at in range(len(pages)))
    labels = f"/PageLabels << /Nums [0 << /S /D /St {first_label} >>] >>" if first_label else ""
    objects[1] = f"<< /Type /Catalog /Pages 2 0 R {labels} >>".encode(), None
    objects[2] = f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(), None
    objects[3] = (
        (
            b"<< /Type /Font /Subtype /Type0 /BaseFont /Any /Encoding /Identity-H "
            b"/DescendantFonts [4 0 R] /ToUnicode 5 0 R >>"
        ),
        None,
    )
    objects[4] = (
        (
            b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Any /DW 1000 /W [0 255 500] "
            b"/CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> "
            b"/FontDescriptor 6 0 R >>"
        ),
        None,
    )
    objects[5] = b"<< /Length %d >>" % len(_TO_UNICODE), _TO_UNICODE
    objects[6] = (
        (
            b"<< /Type /FontDescriptor /FontName /Any /Flags 4 /FontBBox [0 0 1000 1000] "
            b"/ItalicAngle 0 /Ascent 800 /Descent -200 /CapHeight 700 /StemV 80 >>"
        ),
        None,
    )
    objects[7] = b"<< " + info + b" >>", None
    for at, lines in enumerate(pages):
        number = 10 + 2 * at
        objects[number] = (
            (
                b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 1200 1200] "
                b"/Resources << /Font << /F 3 0 R >> >> /Contents %d 0 R >>" % (number + 1)
            ),
            None,
        )
        content = _content(lines)
        objects[number + 1] = b"<< /Length %d >>" % len(content), content
    return _assembled(objects, _Lock(user or "", owner or "") if user or owner else None)


def _content(lines: Sequence[str]) -> bytes:
    if list(lines) == [IMAGE]:
        return b"q 900 0 0 900 50 50 cm BI /W 1 /H 1 /CS /G /BPC 8 ID \x7f EI Q"
    codes = [line.encode("utf-16-be", "surrogatepass").hex() for line in lines]
    parts = [
        f"BT /F 10 Tf 1 0 0 1 40 {1150 - 14 * at} Tm <{code}> Tj ET"
        for at, code in enumerate(codes)
        if code
    ]
    return "\n".join(parts).encode()


class _Lock:
    """The standard security handler, revision 2 (RC4, 40 bits)."""

    file_id = b"0123456789abcdef"

    def __init__(self, user: str, owner: str) -> None:
        owner_key = hashlib.md5(_padded(owner or user)).digest()[:5]
        self.o = _rc4(owner_key, _padded(user))
        permissions = _DENIED.to_bytes(4, "little", signed=True)
        self.key = hashlib.md5(_padded(user) + self.o + permissions + self.file_id).digest()[:5]
        self.u = _rc4(self.key, _PAD)

    def stream(self, number: int, data: bytes) -> bytes:
        key = self.key + number.to_bytes(3, "little") + b"\0\0"
        return _rc4(hashlib.md5(key).digest()[:10], data)

    def trailer(self) -> bytes:
        return (
            f"/Encrypt << /Filter /Standard /V 1 /R 2 /Length 40 /P {_DENIED} /O <{self.o.hex()}> "
            f"/U <{self.u.hex()}> >> /ID [<{self.file_id.hex()}> <{self.file_id.hex()}>]"
        ).encode()


def _padded(password: str) -> bytes:
    return (password.encode() + _PAD)[:32]


def _rc4(key: bytes, data: bytes) -> bytes:
    box = list(range(256))
    j = 0
    for i in range(256):
        j = (j + box[i] + key[i % len(key)]) % 256
        box[i], box[j] = box[j], box[i]
    i = j = 0
    out = bytearray()
    for byte in data:
        i = (i + 1) % 256
        j = (j + box[i]) % 256
        box[i], box[j] = box[j], box[i]
        out.append(byte ^ box[(box[i] + box[j]) % 256])
    return bytes(out)


def _assembled(objects: dict[int, tuple[bytes, bytes | None]], lock: _Lock | None) -> bytes:
    out = bytearray(b"%PDF-1.4\n")
    places = {}
    for number, (head, stream) in sorted(objects.items()):
        places[number] = len(out)
        out += b"%d 0 obj\n" % number + head
        if stream is not None:
            out += b"\nstream\n" + (lock.stream(number, stream) if lock else stream)
            out += b"\nendstream"
        out += b"\nendobj\n"
    start = len(out)
    size = max(objects) + 1
    out += b"xref\n0 %d\n0000000000 65535 f \n" % size
    for number in range(1, size):
        if number in places:
            out += b"%010d 00000 n \n" % places[number]
        else:
            out += b"0000000000 00000 f \n"
    trailer = lock.trailer() if lock else b""
    out += b"trailer << /Size %d /Root 1 0 R /Info 7 0 R " % size + trailer + b" >>\n"
    return bytes(out + b"startxref\n%d\n%%%%EOF\n" % start)


_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_MORE = (
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
    'xmlns:v="urn:schemas-microsoft-com:vml" '
    'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
)


def docx(body: str, **parts: str) -> bytes:
    """A Word document with this body (XML of WordprocessingML).

    `parts` are further files of its folder: header1="<w:p>...", numbering="...", each the inside
    of its root element.
    """
    roots = {"header": "hdr", "footer": "ftr"}
    types, links = [], []
    files: dict[str, str] = {}
    for number, (name, inner) in enumerate(parts.items()):
        kind = name.rstrip("0123456789")
        root = roots.get(kind, kind)
        files[f"word/{name}.xml"] = f"<w:{root} {_W} {_MORE}>{inner}</w:{root}>"
        types.append(
            f'<Override PartName="/word/{name}.xml" ContentType="application/vnd.openxmlformats-'
            f'officedocument.wordprocessingml.{kind}+xml"/>'
        )
        links.append(
            f'<Relationship Id="rId{number}" Target="{name}.xml" Type="http://schemas.'
            f'openxmlformats.org/officeDocument/2006/relationships/{kind}"/>'
        )
    relations = "http://schemas.openxmlformats.org/package/2006/relationships"
    files["[Content_Types].xml"] = (
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="xml" ContentType="application/xml"/>'
        '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-'
        f'officedocument.wordprocessingml.document.main+xml"/>{"".join(types)}</Types>'
    )
    files["_rels/.rels"] = (
        f'<Relationships xmlns="{relations}"><Relationship Id="d" Target="word/document.xml" '
        'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/'
        'officeDocument"/></Relationships>'
    )
    files["word/_rels/document.xml.rels"] = (
        f'<Relationships xmlns="{relations}">{"".join(links)}</Relationships>'
    )
    files["word/document.xml"] = (
        f"<w:document {_W} {_MORE}><w:body>{body}<w:sectPr/></w:body></w:document>"
    )
    return archive(files)


def archive(files: Mapping[str, str | bytes]) -> bytes:
    package = io.BytesIO()
    with zipfile.ZipFile(package, "w", zipfile.ZIP_DEFLATED) as out:
        for name, text in files.items():
            out.writestr(name, text)
    return package.getvalue()


def p(text: str, properties: str = "") -> str:
    """A paragraph of Word."""
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def table(*rows: Sequence[str]) -> str:
    """A table of Word; cells are XML of paragraphs."""
    lines = "".join(
        "<w:tr>" + "".join(f"<w:tc>{cell}</w:tc>" for cell in row) + "</w:tr>" for row in rows
    )
    return f"<w:tbl>{lines}</w:tbl>"


def write(folder: Path, name: str, data: bytes | str) -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path
