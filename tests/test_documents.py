"""What comes out of PDF, Word, HTML and CSV files: everything that people read, in order."""

from __future__ import annotations

from pathlib import Path

import file_maker as make
import pytest

from retrieval.load import LoadLimits, load_file
from retrieval.types import LoadedFile, LoadError

LIMITS = LoadLimits(max_bytes=20 << 20, timeout_s=30, memory_bytes=1 << 30, max_pages=500)
BOX = '<w:p><w:r><w:t xml:space="preserve">{}</w:t></w:r></w:p>'


def loaded(folder: Path, name: str, data: bytes | str) -> LoadedFile:
    return load_file(make.write(folder, name, data), LIMITS)


def text_of(folder: Path, name: str, data: bytes | str) -> str:
    return loaded(folder, name, data).pages[0].text


def test_pdf_pages_labels_and_scans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """BC-50, BC-75: numbers of sheets, printed labels apart, every page without text named."""
    monkeypatch.setenv("PATH", "")  # without text recognition
    pages = [[f"PAGE{at:02d}", "둘째 줄"] for at in range(1, 13)]
    pages[2] = pages[3] = []
    pages[7] = pages[8] = [make.IMAGE]
    found = loaded(tmp_path, "a.pdf", make.pdf(pages, first_label=217))
    assert [page.number for page in found.pages] == list(range(1, 13))
    assert [page.label for page in found.pages][:2] == ["217", "218"]
    for at in (1, 2, 5, 12):
        assert found.pages[at - 1].text == f"PAGE{at:02d}\n둘째 줄"
    assert len(found.warnings) == 1 and "pages 8-9" in found.warnings[0]
    assert "images" in found.warnings[0]


@pytest.mark.parametrize(
    ("page", "sentence"), [([make.IMAGE], "looks like images"), ([], "nothing is there")]
)
def test_pdf_without_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: list[str], sentence: str
) -> None:
    monkeypatch.setenv("PATH", "")  # without text recognition
    found = loaded(tmp_path, "a.pdf", make.pdf([page] * 3))
    assert all(not page.text for page in found.pages)
    assert len(found.warnings) == 1
    assert sentence in found.warnings[0] and "pages 1-3" in found.warnings[0]


def test_pdf_passwords(tmp_path: Path) -> None:
    """BC-49: only a user password keeps us out."""
    assert text_of(tmp_path, "a.pdf", make.pdf([["open text"]], owner="x")) == "open text"
    with pytest.raises(LoadError, match="This PDF is password-protected"):
        loaded(tmp_path, "b.pdf", make.pdf([["secret"]], user="x"))


def test_pdf_with_too_many_pages_is_refused_not_cut(tmp_path: Path) -> None:
    path = make.write(tmp_path, "a.pdf", make.pdf([["x"]] * 4))
    with pytest.raises(LoadError, match="4 pages, 3 are allowed"):
        load_file(path, LoadLimits(1 << 20, 30, 1 << 30, 3))


def test_truncated_pdf_is_read_or_refused(tmp_path: Path) -> None:
    whole = make.pdf([["first page"], ["second page"]])
    for n_bytes in range(20, len(whole), 331):
        try:
            loaded(tmp_path, "a.pdf", whole[:n_bytes])
        except LoadError as error:
            assert str(error).endswith(".")


def test_docx_loses_nothing(tmp_path: Path) -> None:
    """BC-58: one fact each in all the places where facts hide."""
    nested = make.table([make.p("inner name"), make.p("FACT-NESTED")])
    run = "<w:r><w:t>{}</w:t></w:r>"
    body = (
        make.p("FACT-PARAGRAPH")
        + make.table(
            [make.p("Name"), make.p("Value")],
            [make.p("Kim"), make.p("FACT-TABLE")],
            [make.p("more"), nested + make.p("")],
        )
        + "<w:p><w:r><w:pict><v:shape><v:textbox><w:txbxContent>"
        + BOX.format("FACT-OLDBOX")
        + "</w:txbxContent></v:textbox></v:shape></w:pict></w:r></w:p>"
        + '<w:p><w:r><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing><wps:txbx>'
        + f"<w:txbxContent>{BOX.format('FACT-NEWBOX')}</w:txbxContent></wps:txbx></w:drawing>"
        + "</mc:Choice></mc:AlternateContent></w:r></w:p>"
        + f'<w:p><w:ins w:id="1">{run.format("FACT-INSERTED")}</w:ins><w:del w:id="2">'
        + "<w:r><w:delText>GONE-DELETED</w:delText></w:r></w:del></w:p>"
        + f"<w:p><w:fldSimple w:instr='DATE'>{run.format('FACT-FIELD')}</w:fldSimple></w:p>"
        + "<w:p><w:r><w:t>Area </w:t></w:r><m:oMath><m:sSup><m:e><m:r><m:t>r</m:t></m:r></m:e>"
        + "<m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup></m:oMath></w:p>"
        + '<w:p><w:r><w:t>noted</w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r></w:p>'
        + make.p("LAST-PARAGRAPH")
    )
    data = make.docx(
        body,
        header1=make.table([make.p("FACT-HEADER-TABLE"), make.p("x")]),
        footer1=make.p("FACT-FOOTER"),
        footnotes='<w:footnote w:id="2">' + make.p("FACT-FOOTNOTE") + "</w:footnote>",
        comments='<w:comment w:id="1" w:author="Lee">' + make.p("FACT-COMMENT") + "</w:comment>",
    )
    text = text_of(tmp_path, "a.docx", data)
    order = [
        "FACT-PARAGRAPH", "| Name | Value |", "| Kim | FACT-TABLE |", "FACT-NESTED", "FACT-OLDBOX",
        "FACT-NEWBOX", "FACT-INSERTED", "FACT-FIELD", "Area r^2", "noted", "LAST-PARAGRAPH",
    ]  # fmt: skip
    places = [text.index(fact) for fact in order]
    assert places == sorted(places)
    for fact in ("FACT-HEADER-TABLE", "FACT-FOOTER", "FACT-FOOTNOTE", "FACT-COMMENT"):
        assert text.count(fact) == 1
    assert "GONE-DELETED" not in text and "Other text" not in text


def test_docx_numbers_and_headings(tmp_path: Path) -> None:
    """Articles that Word numbers by itself keep their numbers."""
    level = (
        '<w:lvl w:ilvl="{}"><w:start w:val="1"/><w:numFmt w:val="{}"/><w:lvlText w:val="{}"/>'
        "</w:lvl>"
    )
    numbering = (
        '<w:abstractNum w:abstractNumId="7">'
        + level.format(0, "decimal", "제%1조")
        + level.format(1, "ganada", "%2.")
        + '</w:abstractNum><w:num w:numId="3"><w:abstractNumId w:val="7"/></w:num>'
    )

    def numbered(text: str, at: int) -> str:
        return make.p(text, f'<w:numPr><w:ilvl w:val="{at}"/><w:numId w:val="3"/></w:numPr>')

    body = numbered("목적", 0) + numbered("하나", 1) + numbered("둘", 1) + numbered("정의", 0)
    body += numbered("다시", 1) + make.p("Big", '<w:pStyle w:val="H"/>')
    styles = '<w:style w:type="paragraph" w:styleId="H"><w:name w:val="heading 2"/></w:style>'
    text = text_of(tmp_path, "a.docx", make.docx(body, numbering=numbering, styles=styles))
    assert text.split("\n\n") == [
        "제1조 목적",
        "가. 하나",
        "나. 둘",
        "제2조 정의",
        "가. 다시",
        "## Big",
    ]


def test_docx_that_declares_entities_is_refused(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "ha">]><x>&a;</x>'
    data = make.archive({"word/document.xml": bomb, "[Content_Types].xml": "<Types/>"})
    with pytest.raises(LoadError, match="entities"):
        loaded(tmp_path, "a.docx", data)


def test_html_is_what_people_read(tmp_path: Path) -> None:
    html = (
        "<title>The Title</title><nav>MENU</nav><style>p{}</style><script>alert(1)</script>"
        "<h2>Sub</h2><p>snake_case *star* <b>bo</b>ld 10<sup>5</sup> H<sub>2</sub>O&nbsp;x "
        '<a href="http://x.test/long">link</a></p><p style="display: none">HIDDEN</p>'
        "<ul><li>one<ul><li>inner</li></ul></li></ul><pre>a\n  b</pre><footer>FOOT</footer>"
    )
    text = text_of(tmp_path, "a.html", html)
    assert text.startswith("# The Title\n\n## Sub\n\nsnake_case *star* bold 10^5 H2O x link\n\n")
    assert "- one\n  - inner" in text and "a\n  b" in text
    for gone in ("MENU", "alert", "HIDDEN", "FOOT", "x.test", "p{}"):
        assert gone not in text


def test_html_tables_have_one_shape(tmp_path: Path) -> None:
    html = (
        "<table><tr><th>A</th><th>B|C</th></tr><tr><td rowspan=2>one\ntwo</td><td>1</td></tr>"
        "<tr><td>2</td></tr></table><table><tr><td>only a frame</td></tr></table>"
    )
    text = text_of(tmp_path, "a.html", html)
    rows = "| A | B\\|C |\n| --- | --- |\n| one two | 1 |\n| one two | 2 |"
    assert text == rows + "\n\nonly a frame"


def test_html_may_leave_out_end_tags(tmp_path: Path) -> None:
    html = (
        "<!DOCTYPE html><h1>Menu</h1><table><tr><th>Item<th>Price<tr><td>Tea<td>3</table>"
        "<ul><li>Apple 5<li>Pear 7</ul>"
    )
    table = "| Item | Price |\n| --- | --- |\n| Tea | 3 |"
    assert text_of(tmp_path, "a.html", html) == f"# Menu\n\n{table}\n\n- Apple 5\n- Pear 7"
    xhtml = '<html xmlns="http://www.w3.org/1999/xhtml"><title/><script src="x"/><p>fact</p></html>'
    assert text_of(tmp_path, "a.xhtml", xhtml) == "fact"
    declared = '<?xml version="1.0"?><!DOCTYPE html [<!ENTITY a "aa">]>'
    assert text_of(tmp_path, "a.xhtml", declared + xhtml) == "fact"


def test_html_boxes_and_blocks_stand_apart(tmp_path: Path) -> None:
    html = (
        "<details><summary>Refund period?</summary>Thirty days</details>Size"
        "<select><option>Small<option>Large</select><output>5</output>EUR<p>the \0end"
    )
    blocks = ["Refund period?", "Thirty days", "Size Small, Large 5 EUR", "the end"]
    assert text_of(tmp_path, "a.html", html).split("\n\n") == blocks


def test_html_buttons_are_text_but_for_tools(tmp_path: Path) -> None:
    row = "<p>a = {}</p><button>Copy</button>"
    html = (
        '<h3><button aria-expanded="false">How do I return it?</button></h3><p>In 30 days.'
        "<p>Press<button>Send</button>to go on." + "".join(map(row.format, range(3)))
    )
    lines = ["### How do I return it?", "In 30 days.", "Press Send to go on."]
    text = text_of(tmp_path, "a.html", html)
    assert text.split("\n\n")[:3] == lines and "Copy" not in text


def test_html_menus_stay_where_they_are_all(tmp_path: Path) -> None:
    html = "<p>Start</p><nav><ul>" + "<li>the list is the page</li>" * 9 + "</ul></nav>"
    assert text_of(tmp_path, "a.html", html).count("the list is the page") == 9


def test_title_rows_of_tables_are_no_headers(tmp_path: Path) -> None:
    html = (
        "<table><tr><td colspan=2>Prices 2026</td></tr><tr><th>Item</th><th>EUR</th></tr>"
        "<tr><td>Pear</td><td>3</td></tr></table>"
    )
    table = "Prices 2026\n\n| Item | EUR |\n| --- | --- |\n| Pear | 3 |"
    assert text_of(tmp_path, "a.html", html) == table


def test_deep_html_keeps_its_text(tmp_path: Path) -> None:
    found = loaded(tmp_path, "a.html", "<title>Title</title>" + "<div>" * 20_000 + "deep fact")
    assert found.pages[0].text == "# Title\n\ndeep fact"
    assert "nested" in found.warnings[0]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_csv_delimiters(tmp_path: Path, delimiter: str) -> None:
    """BC-57: each row one line under one header, whatever separates the cells."""
    rows = [["id", "name, full", "price"]]
    rows += [[str(at), f'"Kim; {at}, Seoul"', f'"{at},5"'] for at in range(500)]
    data = "\n".join(delimiter.join(row) for row in rows)
    if delimiter == ",":
        data = data.replace("name, full", '"name, full"', 1)
    lines = text_of(tmp_path, "a.csv", data).split("\n")
    assert len(lines) == 502 and lines[0] == "| id | name, full | price |"
    assert lines[1] == "| --- | --- | --- |"
    assert lines[2 + 487] == "| 487 | Kim; 487, Seoul | 487,5 |"


def test_csv_oddities(tmp_path: Path) -> None:
    text = text_of(tmp_path, "a.csv", '2026년 현황,,\n이름,값,비고\n"두\n줄",1\n\nx,2,a|b,more\n')
    assert text.split("\n") == [
        "2026년 현황", "", "| 이름 | 값 | 비고 | Column 4 |", "| --- | --- | --- | --- |",
        "| 두 줄 | 1 |  |  |", "| x | 2 | a\\|b | more |",
    ]  # fmt: skip
    stray = "a,b\n" + '1,"5 inch\n' + "\n".join(f"{at},some words here" for at in range(2000))
    assert "| 1999 | some words here |" in text_of(tmp_path, "b.csv", stray)
