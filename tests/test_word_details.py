"""Word documents: characters and cells that stand in elements of their own."""

from __future__ import annotations

from pathlib import Path

import file_maker as make

from retrieval.loaders.docx_file import read


def text_of(folder: Path, body: str, **parts: str) -> str:
    path = folder / "a.docx"
    path.write_bytes(make.docx(body, **parts))
    return read(path, 100).pages[0].text


def test_hyphens_readings_and_signs_leave_a_paragraph_in_one_piece(tmp_path: Path) -> None:
    ruby = (
        "<w:p><w:r><w:ruby><w:rt><w:r><w:t>とうきょう</w:t></w:r></w:rt><w:rubyBase><w:r>"
        "<w:t>東京</w:t></w:r></w:rubyBase></w:ruby></w:r><w:r><w:t>に行く</w:t></w:r></w:p>"
    )
    hyphen = "<w:p><w:r><w:t>Call 555</w:t><w:noBreakHyphen/><w:t>0199</w:t></w:r></w:p>"
    sign = '<w:p><w:r><w:t>a</w:t><w:sym w:font="Symbol" w:char="F062"/><w:t>c</w:t></w:r></w:p>'
    text = text_of(tmp_path, ruby + hyphen + sign, header1=hyphen.replace("Call", "Fax"))
    first, second, third, *header = text.split("\n\n")
    assert (first, second) == ("東京(とうきょう)に行く", "Call 555-0199")
    assert third[0] + third[-1] == "ac" and header == ["Page header", "Fax 555-0199"]


def test_rows_that_begin_further_right_do_so(tmp_path: Path) -> None:
    table = make.table(*[[make.p(text) for text in row] for row in ("abc", "123", "23")])
    last = table.rindex("<w:tr>") + len("<w:tr>")
    skipped = '<w:trPr><w:gridBefore w:val="1"/></w:trPr>'
    text = text_of(tmp_path, table[:last] + skipped + table[last:])
    assert text.endswith("| 1 | 2 | 3 |\n|  | 2 | 3 |")
