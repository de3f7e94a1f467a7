"""Presentations, workbooks, mails, books, OpenDocument, RTF, JSON, code: what must come out."""

from __future__ import annotations

import io
import json
import zipfile
from datetime import datetime
from pathlib import Path

import pytest
from openpyxl import Workbook
from openpyxl.chart import BarChart, Reference
from openpyxl.comments import Comment
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from retrieval.chunk import chunk
from retrieval.clean import clean
from retrieval.load import LoadLimits, load_file
from retrieval.loaders import LOADERS
from retrieval.loaders.parsed import Parsed
from retrieval.loaders.sheet_rows import sheet_text
from retrieval.types import CleanDocument, LoadError

LIMITS = LoadLimits(max_bytes=20 << 20, timeout_s=30, memory_bytes=1 << 30, max_pages=500)
SHARED = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "files"


def read(path: Path, max_pages: int = 100) -> Parsed:
    return LOADERS[path.suffix.lower()].read(path, max_pages=max_pages)


def text_of(path: Path) -> str:
    return "\n\n".join(page.text for page in read(path).pages)


def written(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def zipped(**parts: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name.replace("__", "/").replace("_xml", ".xml"), text)
    return made.getvalue()


@pytest.fixture
def slides(tmp_path: Path) -> Path:
    made = Presentation()
    first = made.slides.add_slide(made.slide_layouts[1])
    first.shapes.title.text = "연차 규정"
    body = first.placeholders[1].text_frame
    body.text = "입사 첫해는 11일"
    deeper = body.add_paragraph()
    deeper.text, deeper.level = "매달 1일씩", 1
    first.notes_slide.notes_text_frame.text = "Ask Minji about the exception."
    second = made.slides.add_slide(made.slide_layouts[5])
    second.shapes.title.text = "Figures"
    table = second.shapes.add_table(3, 2, Inches(1), Inches(1), Inches(4), Inches(1)).table
    for row, texts in enumerate((("City", "Rent"), ("Busan", "410"), ("", "430"))):
        for column, text in enumerate(texts):
            table.cell(row, column).text = text
    table.cell(1, 0).merge(table.cell(2, 0))
    data = CategoryChartData()
    data.categories = ["2024", "2025"]
    data.add_series("Sales", (17.5, 23))
    place = (Inches(1), Inches(3), Inches(4), Inches(3))
    second.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *place, data)
    group = second.shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, 99, 99).text_frame.text = "inside a group"
    path = tmp_path / "talk.pptx"
    made.save(str(path))
    return path


def test_a_slide_is_a_page_with_its_title_list_and_notes(slides: Path) -> None:
    pages = read(slides).pages
    assert [page.number for page in pages] == [1, 2]
    assert pages[0].text == (
        "# 연차 규정\n\n- 입사 첫해는 11일\n  - 매달 1일씩\n\n"
        "Speaker notes: Ask Minji about the exception."
    )


def test_tables_charts_and_groups_of_slides_are_read(slides: Path) -> None:
    text = read(slides).pages[1].text
    assert "| Busan | 430 |" in text  # the merged cell stands in both rows
    assert "| 2025 | 23 |" in text and "Sales" in text
    assert "inside a group" in text


@pytest.fixture
def workbook(tmp_path: Path) -> Path:
    book = Workbook()
    sheet = book.active
    sheet.title = "급여"
    rows = [
        ("이름", "시작", "비율"),
        ("김하늘", datetime(2026, 3, 14), 0.15),
        ("박민지", None, 0.2),
    ]
    for row in rows:
        sheet.append(row)
    sheet["C2"].number_format = sheet["C3"].number_format = "0%"
    sheet["A2"].comment = Comment("on leave", "Lee")
    sheet["XFD90000"] = "stray"
    other = book.create_sheet("Sums")
    for row in (("Item", "Sum"), ("Total", "=1+1"), ("Count", 3.0)):
        other.append(row)
    chart = BarChart()
    chart.title = "Sums by item"
    chart.add_data(Reference(other, min_col=2, min_row=1, max_row=3), titles_from_data=True)
    other.add_chart(chart, "E2")
    path = tmp_path / "book.xlsx"
    book.save(path)
    return path


def test_sheets_are_pages_with_values_as_shown(workbook: Path) -> None:
    parsed = read(workbook)
    assert [(page.number, page.label) for page in parsed.pages] == [(1, "급여"), (2, "Sums")]
    first = parsed.pages[0].text
    assert "| 이름 | 시작 | 비율 |" in first
    assert "| 김하늘 | 2026-03-14 | 15% |" in first
    assert "stray" in first
    assert "Comment on A2 (Lee): on leave" in first


def test_codes_in_sheets_keep_their_zeros(tmp_path: Path) -> None:
    book = Workbook()
    rows = ((1234, "000000"), (1012345678, "000-0000-0000"), (-7, '"A"000'), (5, "0.00"), (5, "0"))
    for at, (value, shape) in enumerate(rows, start=1):
        book.active.cell(at, 1, "code")
        book.active.cell(at, 2, value).number_format = shape
    book.save(tmp_path / "codes.xlsx")
    text = text_of(tmp_path / "codes.xlsx")
    assert [line.split()[3] for line in text.splitlines() if line.startswith("| code")] == [
        *("001234", "010-1234-5678", "-A007", "5", "5"),
    ]


def test_formulas_without_results_are_named(workbook: Path) -> None:
    parsed = read(workbook)
    assert (
        parsed.warnings
        and "Formulas without a stored result were left out: 1" in parsed.warnings[0]
    )
    assert "| Count | 3 |" in parsed.pages[1].text
    assert "Sums by item" in parsed.pages[1].text


def test_a_value_in_row_487_keeps_header_and_sheet(tmp_path: Path) -> None:
    book = Workbook()
    book.active.title = "Other"
    sheet = book.create_sheet("직원 명부")
    sheet.append(("Employee", "Badge", "Office"))
    for number in range(1, 501):
        sheet.append((f"Person {number}", f"B-{number:04d}", f"Room {number % 37}"))
    path = tmp_path / "staff.xlsx"
    book.save(path)
    document = clean(load_file(path, LIMITS))
    found = [one for one in cut(document) if "B-0487" in one.text]
    assert len(found) == 1
    assert "| Employee | Badge | Office |" in found[0].context
    assert "직원 명부" in found[0].context
    assert "| Person 487 | B-0487 | Room 6 |" in found[0].text


def cut(document: CleanDocument) -> list:
    return chunk(
        document, count_tokens=lambda text: len(text) // 4 + 1, min_tokens=100, max_tokens=200
    )


def test_years_are_a_header_in_csv_and_sheets(tmp_path: Path) -> None:
    rows = [["", "2021", "2022"], *([f"Region{at}", str(at), "7"] for at in range(9))]
    csv = "\n".join(",".join(row) for row in rows)
    head = "| Column 1 | 2021 | 2022 |\n| --- | --- | --- |\n| Region0 | 0 | 7 |"
    assert text_of(written(tmp_path, "a.csv", csv.encode())).startswith(head)
    assert sheet_text(rows).startswith(head)
    plain = text_of(written(tmp_path, "b.csv", b",2021\n1,2\n2,3"))
    assert plain.endswith("| Column 1 | Column 2 |\n| --- | --- |\n| 1 | 2 |\n| 2 | 3 |")
    narrow = [row[:2] for row in rows]
    assert sheet_text(narrow).startswith("| Column 1 | 2021 |\n| --- | --- |\n| Region0 |")
    csv = "\n".join(",".join(row) for row in narrow)
    assert text_of(written(tmp_path, "c.csv", csv.encode())) == sheet_text(narrow)
    again = sheet_text([*rows, [], ["Region", "2023", "2024"], ["Region0", "3", "4"]])
    assert again.endswith("| Region | 2023 | 2024 |\n| --- | --- | --- |\n| Region0 | 3 | 4 |")
    more = sheet_text([*rows, [], ["Region9", "2023", "11"], ["Region10", "3", "4"]])
    assert more.endswith(
        "| Column 1 | 2021 | 2022 |\n| --- | --- | --- |\n| Region9 | 2023 | 11 |\n"
        "| Region10 | 3 | 4 |"
    )


def test_what_is_called_a_workbook_is_read_as_what_it_is(tmp_path: Path) -> None:
    page = "<table><tr><th>이름<th>값<tr><td>가<td>5</table>"
    table = "| 이름 | 값 |\n| --- | --- |\n| 가 | 5 |"
    for data, kind in (
        (page.encode("utf-8-sig"), "a web page"),
        ("이름\t값\n가\t5\n".encode("utf-16"), "rows of text"),
        ("이름;값\n가;5\n".encode("cp949"), "rows of text"),
    ):
        found = read(written(tmp_path, "a.xls", data))
        assert [page.text for page in found.pages] == [table]
        assert kind in found.warnings[0]
    with pytest.raises(LoadError, match="not a workbook"):
        read(written(tmp_path, "a.xls", b"\xd0\xcf\x11\xe0" + bytes(600)))


def test_a_workbook_with_odd_parts_keeps_its_values(tmp_path: Path) -> None:
    book = Workbook()
    book.active.append(["Tea", 3])
    book.create_chartsheet()  # without a chart, which openpyxl writes and does not read
    book.save(str(tmp_path / "a.xlsx"))
    found = read(tmp_path / "a.xlsx")
    assert "| Tea | 3 |" in found.pages[0].text and "formats" in found.warnings[0]


def test_tables_beside_each_other_are_kept_apart(tmp_path: Path) -> None:
    book = Workbook()
    sheet = book.active
    for row in (("a", "b"), (1, 2), (3, 4)):
        sheet.append(row)
    for at, (x, y) in enumerate((("c", "d"), (5, 6), (7, 8)), start=2):
        sheet.cell(at, 4, x)
        sheet.cell(at, 5, y)
    path = tmp_path / "two.xlsx"
    book.save(path)
    text = text_of(path)
    assert "| a | b |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |" in text
    assert "| c | d |\n| --- | --- |\n| 5 | 6 |\n| 7 | 8 |" in text


MAIL = """\
From: =?EUC-KR?B?seg=?= <kim@example.com>
To: lee@example.com
Subject: =?UTF-8?B?67Cw7Y+sIOydvOyglQ==?=
Date: Mon, 30 Nov 2026 09:00:00 +0900
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="b"

--b
Content-Type: text/plain; charset=ks_c_5601-1987
Content-Transfer-Encoding: base64

{body}
--b
Content-Type: application/pdf; name="plan.pdf"
Content-Disposition: attachment; filename="plan.pdf"

x
--b
Content-Type: message/rfc822

From: park@example.com
Subject: Earlier
Content-Type: text/html; charset=utf-8

<p>The <b>old</b> date was 14 March.</p><script>never()</script>
--b--
"""


def test_mails_are_read_with_what_they_forward(tmp_path: Path) -> None:
    import base64

    body = base64.b64encode("배포는 3월 21일입니다. 뷁".encode("cp949")).decode()
    parsed = read(written(tmp_path, "a.eml", MAIL.format(body=body).encode()))
    text = parsed.pages[0].text
    assert text.startswith("# 배포 일정\n\nFrom: 김 <kim@example.com>")
    assert "배포는 3월 21일입니다. 뷁" in text
    assert "The old date was 14 March." in text and "never" not in text
    assert parsed.warnings == ("Files attached to this mail were not read: plan.pdf.",)


def test_a_real_outlook_mail() -> None:
    found = sorted(SHARED.rglob("*.msg")) if SHARED.exists() else []
    if not found:
        pytest.skip("no MSG file in ../shared")
    for path in found:
        assert "Subject:" in text_of(path) and "From:" in text_of(path)


def test_no_mail(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="not a mail"):
        read(written(tmp_path, "a.eml", b"\n\njust text"))


def test_books_follow_their_spine(tmp_path: Path) -> None:
    container = '<c xmlns="x"><rootfiles><rootfile full-path="O/p.opf"/></rootfiles></c>'
    package = """<package xmlns="p" xmlns:dc="d"><metadata><dc:title>Book</dc:title></metadata>
      <manifest><item id="a" href="one.xhtml" media-type="application/xhtml+xml"/>
      <item id="b" href="tw%6f.xhtml" media-type="application/xhtml+xml"/></manifest>
      <spine><itemref idref="b"/><itemref idref="a"/></spine></package>"""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("META-INF/container.xml", container)
        archive.writestr("O/p.opf", package)
        archive.writestr("O/one.xhtml", "<h1>Second</h1><p>끝</p>")
        archive.writestr("O/two.xhtml", "<h1>First</h1><p>시작</p>")
    text = text_of(written(tmp_path, "b.epub", made.getvalue()))
    assert text == "# Book\n\n# First\n\n시작\n\n# Second\n\n끝"


def test_locked_books_say_so(tmp_path: Path) -> None:
    data = zipped(**{"META-INF__encryption_xml": "<e/>", "META-INF__container_xml": "<c/>"})
    with pytest.raises(LoadError, match="protected"):
        read(written(tmp_path, "b.epub", data))


ODT = """<o:document-content xmlns:o="urn:o" xmlns:text="urn:text" xmlns:table="urn:table">
<o:body><o:text><text:p text:style-name="Title">규정</text:p>
<text:tracked-changes><text:p>deleted secret</text:p></text:tracked-changes>
<text:h text:outline-level="2">Leave</text:h>
<text:p>Fifteen<text:s/>days<text:note><text:note-citation>1</text:note-citation>
<text:note-body><text:p>since 2024</text:p></text:note-body></text:note>.</text:p>
<text:list><text:list-item><text:p>one</text:p><text:list><text:list-item><text:p>deep</text:p>
</text:list-item></text:list></text:list-item></text:list>
<table:table><table:table-header-rows><table:table-row><table:table-cell><text:p>City</text:p>
</table:table-cell><table:table-cell><text:p>Rent</text:p></table:table-cell></table:table-row>
</table:table-header-rows><table:table-row><table:table-cell table:number-rows-spanned="2">
<text:p>Busan</text:p></table:table-cell><table:table-cell><text:p>410</text:p></table:table-cell>
</table:table-row><table:table-row><table:covered-table-cell/><table:table-cell><text:p>430</text:p>
</table:table-cell></table:table-row></table:table></o:text></o:body></o:document-content>"""


def test_open_document_texts(tmp_path: Path) -> None:
    text = text_of(written(tmp_path, "a.odt", zipped(content_xml=ODT)))
    assert text.startswith("# 규정\n\n## Leave\n\nFifteen days [since 2024].")
    assert "- one\n  - deep" in text
    assert "| City | Rent |\n| --- | --- |\n| Busan | 410 |\n| Busan | 430 |" in text
    assert "secret" not in text


def test_open_document_slides(tmp_path: Path) -> None:
    content = """<o:c xmlns:o="o" xmlns:draw="d" xmlns:text="t" xmlns:presentation="p"><o:body>
    <o:presentation><draw:page><draw:frame><draw:text-box><text:p>Body</text:p></draw:text-box>
    </draw:frame><draw:frame presentation:class="title"><draw:text-box><text:p>제목</text:p>
    </draw:text-box></draw:frame><presentation:notes><draw:frame><draw:text-box>
    <text:p>Say it slowly.</text:p></draw:text-box></draw:frame></presentation:notes></draw:page>
    <draw:page/></o:presentation></o:body></o:c>"""
    pages = read(written(tmp_path, "a.odp", zipped(content_xml=content))).pages
    assert [page.text for page in pages] == [
        "# 제목\n\nBody\n\nSpeaker notes: Say it slowly.",
        "",
    ]


def test_locked_open_document(tmp_path: Path) -> None:
    data = zipped(**{"META-INF__manifest_xml": "<m><encryption-data/></m>", "content_xml": "?"})
    with pytest.raises(LoadError, match="password"):
        read(written(tmp_path, "a.odt", data))


def test_rtf_in_korean(tmp_path: Path) -> None:
    coded = "".join(f"\\'{byte:02x}" for byte in "휴가는 15일".encode("cp949"))
    data = (
        rf"{{\rtf1\ansi\ansicpg949{{\fonttbl{{\f0 Gulim;}}}}\f0 {coded}\par \u51060?\u51068? end}}"
    )
    text = text_of(written(tmp_path, "a.rtf", data.encode()))
    assert "휴가는 15일" in text and "이일 end" in text and "Gulim" not in text
    stray = read(written(tmp_path, "b.rtf", data.replace(" end", r" \'e9 end").encode()))
    assert "1 characters could not be read" in stray.warnings[0]


def test_json_records_are_a_table_and_other_json_is_itself(tmp_path: Path) -> None:
    records = [{"name": "김하늘", "age": 31}, {"name": "Lee", "age": None}]
    path = written(tmp_path, "a.json", json.dumps(records).encode())
    assert text_of(path) == "| name | age |\n| --- | --- |\n| 김하늘 | 31 |\n| Lee |  |"
    nested = '{\n  "a": {"b": ["한글"]}\n}'
    assert text_of(written(tmp_path, "b.json", nested.encode())) == nested
    lines = '{"a": 1, "b": "x"}\n{"a": 2, "b": "y"}\n'
    assert "| 2 | y |" in text_of(written(tmp_path, "c.jsonl", lines.encode()))
    broken = read(written(tmp_path, "d.json", b'{"a": 1'))
    assert broken.pages[0].text == '{"a": 1' and "not valid JSON" in broken.warnings[0]


def test_deep_json_and_empty_tables_are_told_simply(tmp_path: Path) -> None:
    deep = read(written(tmp_path, "a.json", b"[" * 100_000))
    assert deep.warnings == ("This file is nested too deeply; it was read as plain text.",)
    assert text_of(written(tmp_path, "a.csv", b"\n,,,\n;;\n")) == ""


def test_minified_json_gets_lines_that_can_be_cut(tmp_path: Path) -> None:
    value = {"rows": [{"k": "v" * 50, "n": [number]} for number in range(200)]}
    text = text_of(written(tmp_path, "a.json", json.dumps(value).encode()))
    assert max(map(len, text.split("\n"))) < 100 and json.loads(text) == value


def test_json_values_stay_as_they_are_written(tmp_path: Path) -> None:
    records = b'[{"name":"python","version":3.10},{"name":"go","version":12345678901234567890.50}]'
    table = text_of(written(tmp_path, "a.json", records))
    assert "| python | 3.10 |" in table and "| go | 12345678901234567890.50 |" in table
    twice = b'[{"a":1,"a":2},{"a":3,"b":4}]'
    assert text_of(written(tmp_path, "b.json", twice)) == twice.decode()
    long = '{"v":1.10,"n":[1e400,[],{}],"v":' + "7" * 2500 + ',"t":"\\ud55c, {x} \\"q\\""}'
    lines = ["{", ' "v": 1.10,', ' "n": [', "  1e400,", "  [],", "  {}", " ],"]
    last = [' "v": ' + "7" * 2500 + ",", ' "t": "한, {x} \\"q\\""', "}"]
    assert text_of(written(tmp_path, "c.json", long.encode())).split("\n") == lines + last


def test_notebooks_keep_text_and_code(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "text"]},
        {"cell_type": "code", "source": "x = 1", "outputs": ["secret"]},
    ]
    text = text_of(written(tmp_path, "a.ipynb", json.dumps({"cells": cells}).encode()))
    assert text == "# Title\ntext\n\n```\nx = 1\n```"


def test_code_is_cut_between_definitions_and_knows_its_place(tmp_path: Path) -> None:
    method = "    def m{0}(self):\n        value = {0}\n        return value * {0}\n\n"
    source = "import os\n\n\nclass Tall:\n" + "".join(method.format(n) for n in range(40))
    source += "\n\ndef last():\n    return 'end'\n"
    document = clean(load_file(written(tmp_path, "a.py", source.encode()), LIMITS))
    assert document.text == source
    chunks = cut(document)
    assert all(one.tokens <= 200 for one in chunks)
    middle = next(one for one in chunks if "value * 20" in one.text)
    assert "class Tall:" in middle.context


@pytest.mark.parametrize("suffix", ["pptx", "xlsx", "xls", "ods", "odt", "epub", "rtf", "msg"])
def test_damaged_files_end_as_one_sentence(tmp_path: Path, suffix: str) -> None:
    old = suffix in ("xls", "msg")
    data = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 cut off" if old else b"PK\x03\x04 cut off"
    with pytest.raises(LoadError) as caught:
        load_file(written(tmp_path, f"bad.{suffix}", data), LIMITS)
    assert "damaged" in str(caught.value) or "not" in str(caught.value)


def test_hostile_xml_is_not_opened(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><x>&b;</x>'
    with pytest.raises(LoadError, match="entities"):
        read(written(tmp_path, "a.odt", zipped(content_xml=bomb)))
