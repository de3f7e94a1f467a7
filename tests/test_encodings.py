"""Encodings of text files, judged on the whole file (BC-54, BC-55)."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import file_maker as make
import pytest

from retrieval.load import LoadLimits, load_file
from retrieval.loaders.encoding import decode
from retrieval.types import LoadError

LIMITS = LoadLimits(max_bytes=20 << 20, timeout_s=30, memory_bytes=1 << 30, max_pages=500)
KOREAN = "제1조 (목적) 이 법은 근로자의 휴가에 관한 사항을 정한다. 사용자는 이를 지켜야 한다."
JAPANESE = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。"
CHINESE = "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。"
RUSSIAN = "Все люди рождаются свободными и равными в своем достоинстве и правах."
FRENCH = "Tous les êtres humains naissent libres et égaux en dignité et en droits. L'année passée."


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        *[
            (KOREAN, encoding)
            for encoding in (
                "utf-8", "utf-8-sig", "cp949", "johab", "utf-16", "utf-16-le", "utf-16-be",
                "utf-32", "utf-32-le",
            )
        ],
        ("Plain English, in two bytes each.", "utf-16-le"),
        ("Plain English, in two bytes each.", "utf-16-be"),
        ("정규직", "cp949"),
        ("똠방각하가 온다고 해서 모두 나갔다", "cp949"),  # a syllable that EUC-KR lacks
        ("法律 제21조의 規定에 따라 大統領이 任命한다. 이를 다시 정한다.", "cp949"),
        (JAPANESE, "cp932"),
        (JAPANESE, "euc_jp"),
        (CHINESE, "gb18030"),
        (RUSSIAN, "cp1251"),
        *[(f"{RUSSIAN} " * 30, page) for page in ("cp1251", "koi8_r", "iso8859_5", "cp866")],
        ("Усі люди народжуються вільними і рівними у своїй гідності.", "koi8_u"),
        ("ДОГОВОР ОБ ОКАЗАНИИ УСЛУГ", "koi8_r"),
        (RUSSIAN, "utf-16-le"),
        (RUSSIAN, "utf-16-be"),
        ("Όλοι οι άνθρωποι γεννιούνται ελεύθεροι.", "utf-16-le"),
        (FRENCH, "cp1252"),
        ("À l'été, où naïveté coûte chère, ça.", "cp1252"),
        ("Það er gott veður í dag, og börnin þurfa að fara í skóla.", "cp1252"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy. Zażółć gęślą jaźń.", "cp1250"),
        ("İstanbul'da yağmurlu bir gün; çocuklar şarkı söylüyor.", "cp1254"),
        ("Ąžuolas šlama žalioje girioje, o ūkininkas dirba. Šeštadienį lyja.", "cp1257"),
        ("café", "cp1252"),
        ("Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i praw.", "cp1250"),
        ("Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv.", "cp1250"),
        ("A szerződés időtartama két év, a felmondási idő három hónap.", "cp1250"),
        ("Šuma je mračna, a kuća čista. Želim žutu ružu.", "cp1250"),
        ("Toate fiinţele umane se nasc libere şi egale în demnitate şi în drepturi.", "cp1250"),
        ("Rīgā šodien līst, bet Jūrmalā spīd saule.", "cp1257"),
        ("Øll menniskju eru fødd fræls og jøvn til virðingar og mannarættindi.", "cp1252"),
        ("Søren met José García at the café in Málaga, and Åsa was there.", "cp1252"),
        ("The long road. " * 40 + "Zoë, Søren, Jiménez and Lefèvre sang.", "cp1252"),
        ("São ações e opções para além do português.", "cp1252"),
        ("コンピュータのメモリ", "utf-16-le"),
        ("コンピュータのメモリ", "utf-16-be"),
    ],
)  # fmt: skip
def test_the_whole_text_comes_back(text: str, encoding: str) -> None:
    found = decode(text.encode(encoding))
    assert (found.text, found.warning) == (text, "")


def test_one_korean_line_behind_much_english(tmp_path: Path) -> None:
    text = "This header is long and plain English only.\n" * 120 + "한글 한 줄이 끝에 있다.\n"
    loaded = load_file(make.write(tmp_path, "a.txt", text.encode("cp949")), LIMITS)
    assert loaded.pages[0].text == text and not loaded.warnings


@pytest.mark.parametrize("words", ["펲시 콜라", "똠방각하", "펲시 “콜라” · 똠방각하"])
def test_korean_words_with_rare_syllables_behind_much_english(words: str) -> None:
    """A quarter of the syllables is not among those of EUC-KR; it is no accented English."""
    text = "The meeting room of the office can be booked. " * 110 + f"\n{words}"
    found = decode(text.encode("cp949"))
    assert (found.text, found.warning) == (text, "")
    alone = decode(words.encode("cp949"))
    assert alone.text == words and "uncertain" in alone.warning


@pytest.mark.parametrize("words", ["뷁", "설렜 뷁"])
def test_rare_syllables_alone_make_a_guess_uncertain(words: str) -> None:
    found = decode(("The room can be booked. " * 110 + words).encode("cp949"))
    assert "uncertain" in found.warning


@pytest.mark.parametrize(
    "words", ["don’t say it’s “Hello”", "Ärger mit Äpfeln", "10°–20°C", "Ängstlich 25° – 30°"]
)
def test_western_signs_and_accents_do_not_look_korean(words: str) -> None:
    text = "The meeting room of the office can be booked. " * 20 + words
    found = decode(text.encode("cp1252"))
    assert (found.text, found.warning) == (text, "")


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Re: 東京の会議室は九時から。\nA room.\n", "iso2022_jp"),
        ("ﾒﾓﾘ 東京の会議室は九時から。", "iso2022_jp_ext"),
        ("서울 사무소의 회의실은 9시부터.\nA room.\n", "iso2022_kr"),
    ],
)
def test_escape_sequences_tell_iso_2022(text: str, encoding: str) -> None:
    found = decode(text.encode(encoding))
    assert (found.text, found.warning) == (text, "")


@pytest.mark.parametrize(
    "data", [b"\x1b[31mred\x1b[0m \x1b$B%3\x1b(B", b"cost \x1b$Bzz", b"\x1b$B", b"a \x1b[1m b"]
)
def test_other_escape_sequences_stay_as_they_are(data: bytes) -> None:
    assert decode(data).text == data.decode("ascii")


def test_damaged_utf8_stays_utf8_with_a_warning(tmp_path: Path) -> None:
    data = (KOREAN * 5).encode() + b"\xff" + KOREAN.encode()
    loaded = load_file(make.write(tmp_path, "a.txt", data), LIMITS)
    assert loaded.pages[0].text == KOREAN * 5 + "\ufffd" + KOREAN
    assert "1 characters could not be read" in loaded.warnings[0]


def test_cut_utf16_keeps_the_rest() -> None:
    found = decode(KOREAN.encode("utf-16-le") + b"\xac")
    assert found.text == KOREAN and "cut off" in found.warning


@pytest.mark.parametrize("data", [bytes(range(256)) * 4, b"\xff\xd8\xff\xe0" + b"x" * 50])
def test_what_is_no_text_is_refused(data: bytes) -> None:
    with pytest.raises(LoadError):
        decode(data)


@pytest.mark.parametrize("encoding", ["euc-kr", "utf-8", "utf-16"])
@pytest.mark.parametrize("meta", ['<meta charset="euc-kr">', ""])
def test_korean_html(tmp_path: Path, encoding: str, meta: str) -> None:
    """With and without a declaration, and with a wrong one."""
    html = f"<html><head>{meta}<title>한글 제목</title></head><body><p>{KOREAN}</p></body></html>"
    loaded = load_file(make.write(tmp_path, "a.html", html.encode(encoding)), LIMITS)
    assert KOREAN in loaded.pages[0].text and "# 한글 제목" in loaded.pages[0].text
    assert not loaded.warnings


@pytest.mark.parametrize("named", ["iso-8859-1", "windows-1252", "ISO-8859-15"])
def test_korean_that_is_said_to_be_western(named: str) -> None:
    """Any bytes are Western letters, so that they agree says nothing."""
    found = decode(KOREAN.encode("cp949"), named)
    assert found.text == KOREAN and "it was read as cp949" in found.warning
    found = decode(KOREAN.encode(), named)
    assert (found.text, found.warning) == (KOREAN, "")  # nothing else looks like UTF-8


def test_html_that_says_western_of_korean(tmp_path: Path) -> None:
    html = f'<meta charset="iso-8859-1"><p>{KOREAN}</p>'.encode("cp949")
    loaded = load_file(make.write(tmp_path, "a.html", html), LIMITS)
    assert loaded.pages[0].text.strip() == KOREAN
    assert "it was read as cp949" in loaded.warnings[0]


@pytest.mark.parametrize("text", [FRENCH, "À ÉTÉ ÄÖÜ, don’t", "Plain English.", "½ £5 für Öl"])
def test_html_that_says_western_and_is(text: str) -> None:
    found = decode(f"<p>{text}</p>".encode("cp1252"), "cp1252")
    assert (found.text, found.encoding, found.warning) == (f"<p>{text}</p>", "cp1252", "")


@pytest.mark.parametrize(
    "named", ["undefined", "a\0b", "punycode", "unicode_escape", "hex", "\udc80", "no such thing"]
)
def test_a_declared_name_of_no_charset_is_passed_over(named: str) -> None:
    assert decode(KOREAN.encode("cp949"), named).text == KOREAN
    assert decode(b"C:\\new", named).text == "C:\\new"


def test_byte_order_mark_does_not_join_the_first_column(tmp_path: Path) -> None:
    data = '\ufeff"name, full",age\n"Kim, A",3\n'
    for encoding in ("utf-8", "utf-16-le", "utf-16-be"):
        loaded = load_file(make.write(tmp_path, "a.csv", data.encode(encoding)), LIMITS)
        assert loaded.pages[0].text == "| name, full | age |\n| --- | --- |\n| Kim, A | 3 |"


def test_text_is_the_file_character_for_character(tmp_path: Path) -> None:
    text = "  first\n\n\tsecond  \n제3조\t끝\u00a0\u200b ﬁ Å\n"
    data = text.replace("\n", "\r\n").encode()
    assert load_file(make.write(tmp_path, "a.txt", data), LIMITS).pages[0].text == text


def test_decomposed_hangul_is_composed(tmp_path: Path) -> None:
    """As macOS writes it; nobody would find it by typing."""
    data = unicodedata.normalize("NFD", "서울에서 café").encode()
    loaded = load_file(make.write(tmp_path, "a.md", data), LIMITS)
    assert loaded.pages[0].text == "서울에서 café"


@pytest.mark.parametrize("bad", [b"\xff\n", b"\xff", b"\x80\n"])
def test_damaged_cp949_stays_korean_with_a_warning(bad: bytes) -> None:
    base = KOREAN.encode("cp949")
    found = decode(base + bad + base)
    assert found.encoding == "cp949" and found.text.count(KOREAN) == 2
    assert "\ufffd" in found.text and "could not be read (cp949)" in found.warning


@pytest.mark.parametrize("bad", [b"\xff\n" * 20, b"\xc8"])
def test_a_guess_that_may_be_wrong_is_said_to_be(bad: bytes) -> None:
    """Too many damaged bytes for Korean, or too little text to tell."""
    found = decode("휴가".encode("cp949") + bad)
    assert found.encoding != "cp949" and found.warning


@pytest.mark.parametrize(("text", "encoding"), [(CHINESE, "gb18030"), (JAPANESE, "euc_jp")])
def test_damaged_bytes_of_others_do_not_become_korean(text: str, encoding: str) -> None:
    assert decode((text * 4).encode(encoding) + b"\xff\n").encoding != "cp949"


def test_stray_nuls_do_not_make_text_utf16() -> None:
    assert decode(b"caf\xe9 pass\0word gold").text == "caf\xe9 password gold"
    assert decode("비밀\0번호는 무지개".encode("cp949")).text == "비밀번호는 무지개"
    chinese = f"“{CHINESE}”\n“{CHINESE}” 匠"
    for encoding in ("utf-16-le", "utf-16-be"):
        assert decode(chinese.encode(encoding)).text == chinese


def test_lines_of_two_encodings_are_read_each_in_its_own() -> None:
    lines = [f"{at}: 서버가 다시 시작되었습니다. 연결을 확인하세요." for at in range(6)]
    data = b"\n".join(line.encode("cp949" if at % 2 else "utf-8") for at, line in enumerate(lines))
    found = decode(data)
    assert found.text.split("\n") == lines and "3 lines were read as cp949" in found.warning
    damaged = data[:20] + b"\xff" + "\n".join(lines).encode()[20:]
    assert "mixed" not in decode(damaged).warning
