import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from covary.tables.formats.csv_dialect import sniff


@pytest.mark.parametrize(
    ("delimiter", "name"), [(",", "comma"), ("\t", "tab"), (";", "semicolon"), ("|", "pipe")]
)
def test_finds_the_delimiter(delimiter, name):
    text = "\n".join(delimiter.join(row) for row in [["day", "place", "x"], ["a", "b", "1"], ["c", "d", "2"]])
    assert sniff(text.encode()).delimiter == delimiter


def test_a_space_delimits_only_if_every_line_agrees():
    assert sniff(b"a b\n1 2\n3 4\n").delimiter == " "
    assert sniff(b"title\nNew York\nLos Angeles\nRome\n").columns == ("title",)


def test_decimal_commas_do_not_beat_semicolons():
    dialect = sniff(b"day;x;y\n1;1,5;2,5\n2;3,5;4,5\n")
    assert dialect.delimiter == ";"
    assert dialect.columns == ("day", "x", "y")


def test_quoted_delimiters_and_line_ends_do_not_count():
    dialect = sniff(b'name,note,x\n"a, b","first;\nsecond;",1\n"c, d","x;y\nz;",2\n')
    assert (dialect.delimiter, dialect.columns) == (",", ("name", "note", "x"))


def test_finds_single_quotes_and_leaves_apostrophes_alone():
    assert sniff(b"a,b\n'x,1','y'\n'z','w'\n").quote == "'"
    assert sniff(b"a,b\nO'Hara,it's\nO'Neil,who's\n").quote == '"'


def test_inch_marks_are_no_quotes():
    assert sniff(b'part,size\npipe,5"\nrod,6"\nbar,7"\n').quote is None
    assert sniff(b'part,size,x\npipe,5" thick,1\nrod,6" long,2\n').quote is None


@pytest.mark.parametrize(
    ("sample", "encoding"),
    [
        ("käse,x\nä,1\n".encode(), "utf-8"),
        ("käse,x\nä,1\n".encode("utf-8-sig"), "utf-8"),
        ("käse,x\nä,1\n".encode("cp1252"), "cp1252"),
        (b"\xff\xfe" + "käse,x\nä,1\n".encode("utf-16-le"), "utf-16-le"),
        (b"\xfe\xff" + "käse,x\nä,1\n".encode("utf-16-be"), "utf-16-be"),
        ("kase,x\na,1\n".encode("utf-16-le"), "utf-16-le"),
        ("äöüßéèñçå".encode() * 20 + b"\xe4,x\na,1\n", "utf-8"),
    ],
)
def test_finds_the_encoding(sample, encoding):
    assert sniff(sample).encoding == encoding


def test_a_byte_order_mark_is_no_part_of_the_first_name():
    for sample in ("day,x\n1,2\n".encode("utf-8-sig"), b"\xff\xfe" + "day,x\n1,2\n".encode("utf-16-le")):
        assert sniff(sample).columns == ("day", "x")


@pytest.mark.parametrize(
    ("sample", "columns"),
    [
        (b"day,x\n2013-01-01,1\n2013-01-02,2\n", ("day", "x")),
        (b"2013-01-01,1\n2013-01-02,2\n", ("column_1", "column_2")),
        (b"name,town\nAnn,Rome\nBob,Oslo\n", ("name", "town")),
        (b"yes,Rome\nno,Oslo\nyes,Rome\n", ("column_1", "column_2")),
        (b"agency,2003,2004,2005\nA,1,2,3\nB,4,5,6\n", ("agency", "2003", "2004", "2005")),
        (b"state,2021\nOhio,3.5\nIowa,4.5\n", ("state", "2021")),
        (b"a,a,,a_2\n1,2,3,4\n", ("a", "a_3", "column_3", "a_2")),
        (b"name\nAnn\nBob\n", ("name",)),
        (b"\n\nday,x\n1,2\n", ("day", "x")),
        (b"Report of 2013\n\nday,x,y\n1,2,3\n4,5,6\n", ("day", "x", "y")),
        (b"Report,,\nday,x,y\n1,2,3\n4,5,6\n", ("day", "x", "y")),
        (b"# made by hand, today\nday,x,y\n1,2,3\n4,5,6\n", ("day", "x", "y")),
        (b"x,y\nrow1,1,2\nrow2,3,4\n", ("column_1", "x", "y")),
        (b"day,x\r\n1,2\r\n", ("day", "x")),
        (b"day,x\r1,2\r", ("day", "x")),
        (b"day,x", ("day", "x")),
        (b"", ()),
        (b"\n\n", ()),
    ],
)
def test_names_the_columns(sample, columns):
    assert sniff(sample).columns == columns


@pytest.mark.parametrize(
    ("sample", "body"),
    [
        (b"a,b\n1,2\n", b"1,2\n"),
        (b"a,b\r\n1,2\r\n", b"1,2\r\n"),
        (b'"a\nb",c\n1,2\n', b"1,2\n"),
        ("ä,b\n1,2\n".encode("utf-8-sig"), b"1,2\n"),
        ("1,2\n3,4\n".encode("utf-8-sig"), b"1,2\n3,4\n"),
        (b"title\na,b,c\n1,2,3\n4,5,6\n", b"1,2,3\n4,5,6\n"),
        (b"title\n1,2,3\n4,5,6\n7,8,9\n", b"1,2,3\n4,5,6\n7,8,9\n"),
    ],
)
def test_says_where_the_data_begin(sample, body):
    assert sample[sniff(sample).body_start :] == body


def test_half_a_last_line_of_a_long_sample_is_no_evidence():
    sample = (b"day,x\n" + b"2013-01-01,123456\n" * 10_000)[: 64 << 10]
    assert sniff(sample).columns == ("day", "x")


@given(st.binary(max_size=300))
@example(b'"')
@example(b"a\rb\n'c")
def test_any_bytes_have_some_dialect(sample):
    dialect = sniff(sample)
    assert dialect.body_start >= 0
    assert len(set(dialect.columns)) == len(dialect.columns)


TOWNS = {
    "cp1251": ["Москва", "Казань", "Самара", "Омск", "Нижний Новгород"],
    "koi8_r": ["Москва", "Казань", "Самара", "Омск", "Нижний Новгород"],
    "gb18030": ["北京", "上海", "广州", "深圳", "成都"],
    "big5": ["臺北", "高雄", "功學", "臺中", "臺南", "新竹"],
    "cp932": ["東京都", "大阪府", "北海道", "ソニー", "カタカナ"],
    "euc_jp": ["東京都", "大阪府", "北海道", "ひらがな"],
    "cp949": ["서울", "부산", "인천", "대구"],
    "cp1253": ["Αθήνα", "Θεσσαλονίκη", "Πάτρα", "Λάρισα"],
    "cp1255": ["ירושלים", "תל אביב", "חיפה"],
    "cp1256": ["القاهرة", "الرياض", "بغداد", "دمشق"],
    "cp1250": ["Łódź", "Kraków", "Wrocław", "Poznań", "Gdańsk"],
    "iso8859_2": ["Łódź", "Kraków", "Wrocław", "Poznań", "Gdańsk", "Świętochłowice"],
    "mac_roman": ["Orléans", "Besançon", "Nîmes", "Béziers"],
    "cp1252": ["Orléans", "Besançon", "Nîmes", "Málaga", "Göteborg", "Reykjavík", "l’été"],
    "utf-16-le": ["Москва", "Казань", "北京", "القاهرة"],
    "utf-16-be": ["Москва", "Казань", "北京", "القاهرة"],
}


@pytest.mark.parametrize("encoding", TOWNS)
@pytest.mark.parametrize("times", [1, 100, 3000])
def test_tells_an_encoding_by_the_look_of_its_text(encoding, times):
    text = "town,x\n" + "".join(f"{town},{n}.5\n" for n, town in enumerate(TOWNS[encoding] * times))
    sample = text.encode(encoding)[: 64 << 10]
    dialect = sniff(sample)
    assert sample.decode(dialect.encoding, "replace") == sample.decode(encoding, "replace")
    assert dialect.guessed
    assert not dialect.doubtful
    assert dialect.columns == ("town", "x")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_what_a_file_says_of_its_encoding_is_no_guess(encoding):
    assert not sniff("town,x\nМосква,1\nКазань,2\n".encode(encoding)).guessed


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_what_tells_excel_the_delimiter_is_no_header(mark):
    text = f"sep={mark}\r\nplace,x\r\n".replace(",", mark) + "".join(
        f"p{row}{mark}{row}\r\n" for row in range(40)
    )
    dialect = sniff(text.encode())
    assert dialect.columns == ("place", "x")
    assert dialect.body_start == len(f"sep={mark}\r\nplace,x\r\n")
