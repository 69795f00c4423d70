import subprocess
import sys

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covary.columns.places import may_be_places, recognise_places, write_places

COUNTRIES = ["afghanistan", "brazil", "canada", "denmark", "egypt", "france", "ghana", "hungary"]
STATES = ["alabama", "california", "idaho", "maine", "ohio", "oregon", "utah", "vermont"]
SHARED_CODES = [  # of states and of countries
    "al", "ar", "az", "ca", "co", "de", "ga", "id", "il", "in", "ky", "la", "ma", "md", "me", "mn", "mo",
    "ms", "mt", "nc", "ne", "pa", "sc", "sd", "tn", "va",
]  # fmt: skip

SPELLINGS = {
    "country:civ": ["côte d'ivoire", "cote d'ivoire", "cote d ivoire", "ivory coast", "civ", "ci", "384"],
    "country:usa": ["usa", "u.s.a.", "us", "u.s.", "united states", "the united states of america", "840"],
    "country:gbr": ["uk", "u.k.", "united kingdom", "great britain", "gb", "gbr", "826"],
    "country:rus": ["russia", "russian federation", "the russian federation", "rus", "ru"],
    "country:kor": ["south korea", "korea, rep.", "republic of korea", "korea, republic of", "korea, south"],
    "country:prk": ["north korea", "korea, dem. people's rep.", "democratic people's republic of korea"],
    "country:cod": ["congo, dem. rep.", "dr congo", "congo (kinshasa)", "democratic republic of congo"],
    "country:cog": ["congo, rep.", "congo", "congo-brazzaville", "republic of the congo"],
    "country:irn": ["iran", "iran, islamic rep.", "iran (islamic republic of)"],
    "country:bhs": ["bahamas", "the bahamas", "bahamas, the", "bahamas (the)"],
    "country:vct": ["st. vincent & the grenadines", "saint vincent and the grenadines", "st vincent"],
    "country:bih": ["bosnia & herzegovina", "bosnia-herzegovina", "bosnia_herzegovina", "bosnia and herz."],
    "country:stp": ["são tomé and príncipe", "sao tome & principe"],
    "country:hkg": ["hong kong", "hong kong sar, china", "china, hong kong sar"],
    "country:mkd": ["north macedonia", "macedonia, fyr", "the former yugoslav republic of macedonia"],
    "country:fsm": ["micronesia, fed. sts.", "micronesia (federated states of)", "micronesia (country)"],
    "country:tur": ["turkey", "türkiye", "turkiye"],
    "country:cze": ["czechia", "czech republic", "czech rep."],
    "country:swz": ["eswatini", "swaziland"],
    "country:pse": ["palestine", "west bank and gaza", "state of palestine"],
    "country:vir": ["virgin islands (u.s.)", "u.s. virgin islands", "united states virgin islands"],
    "country:grc": ["greece", "gr", "el"],
    "country:xkx": ["kosovo", "xk", "xkx"],
    "country:nam": ["namibia", "na"],
    "country:aze": ["azerbaijan", "31"],
    "country:ner": ["niger", "ne"],
    "country:nga": ["nigeria", "ng"],
    "country:dma": ["dominica"],
    "country:dom": ["dominican republic", "dominican rep."],
    "state:ny": ["new york", "ny", "us-ny", "36"],
    "state:dc": ["dc", "d.c.", "washington dc", "washington, d.c.", "district of columbia", "11"],
    "state:wa": ["washington", "wa"],
    "state:va": ["virginia", "va", "51"],
    "state:wv": ["west virginia", "w. virginia", "wv", "54"],
    "state:nc": ["north carolina", "n. carolina", "us-nc"],
    "state:pr": ["puerto rico", "pr", "72"],
    "state:vi": ["virgin islands", "u.s. virgin islands", "vi"],
    "state:mp": ["northern mariana islands", "mp"],
    "state:gu": ["guam", "gu"],
    "state:as": ["american samoa", "as"],
}


def kind_of(texts, name="column"):
    return recognise_places(pl.Series(texts, dtype=pl.String), name)


def written(texts, kind):
    return write_places(pl.Series(texts, dtype=pl.String), kind).to_list()


@pytest.mark.parametrize("place", SPELLINGS)
def test_a_place_has_one_text_under_all_its_names_and_codes(place):
    assert set(written(SPELLINGS[place], place.partition(":")[0])) == {place}


def test_texts_that_are_no_place_stay_as_they_are():
    others = ["world", "euro area", "england", "soviet union", "", "guinea pig", "1", None, "france"]
    assert written(others, "country") == [*others[:-1], "country:fra"]
    assert written(["ontario", "california, nevada", "national", "03"], "state") == [
        "ontario", "california, nevada", "national", "03",
    ]  # fmt: skip


def test_a_column_keeps_its_name_its_rows_and_its_nulls():
    column = write_places(pl.Series("land", ["france", None, "fr", "france"]), "country")
    assert column.name == "land"
    assert column.to_list() == ["country:fra", None, "country:fra", "country:fra"]


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (COUNTRIES, "country"),
        ([*COUNTRIES, "world", "euro area", "africa", "oecd total"], "country"),
        (["georgia", "armenia", "azerbaijan", "turkey"], "country"),
        (STATES, "state"),
        (["georgia", "alabama", "utah", "ohio"], "state"),
        (["us-ny", "us-ca", "us-tx"], "state"),
        ([*STATES, "national", "me-1"], "state"),
    ],
)
def test_names_tell_countries_from_states(texts, kind):
    assert kind_of(texts) == kind


def test_fewer_names_will_do_under_a_telling_column_name():
    assert kind_of(["france", "canada"]) is None
    assert kind_of(["france", "canada"], "birthCountry") == "country"
    assert kind_of(["georgia", "virginia"], "State") == "state"


@pytest.mark.parametrize("name", ["origin", "Country Code", "iso_a3", "geo"])
def test_codes_of_three_letters_tell_countries(name):
    assert kind_of(["afg", "bra", "can", "dnk", "fra", "gha"], name) == "country"


def test_groups_among_many_codes_do_no_harm_under_a_telling_name():
    codes = [
        "afg", "ago", "alb", "and", "arg", "arm", "aus", "aut", "aze", "bel", "ben", "bgd", "bhr", "bhs",
        "blr", "blz", "bol", "brb", "btn", "dza",
    ]  # fmt: skip
    assert kind_of([*codes, "wld", "emu", "ssf", "arb"], "Country Code") == "country"
    assert kind_of([*codes, "wld", "emu", "ssf", "arb"], "column") is None


def test_codes_of_two_letters_go_to_the_kind_that_holds_more():
    assert kind_of(["ny", "ca", "tx", "wa", "il"]) == "state"
    assert kind_of(["fr", "de", "it", "es", "ca"]) == "country"


def test_name_or_count_decides_between_codes_of_states_and_countries():
    assert kind_of(SHARED_CODES[:10]) is None
    assert kind_of(SHARED_CODES[:10], "st") == "state"
    assert kind_of(SHARED_CODES[:10], "country_code") == "country"
    assert kind_of(SHARED_CODES) == "state"


def test_codes_in_a_column_of_states_are_never_countries():
    assert kind_of(["be", "by", "ni", "sh", "th", "sn"], "state") is None


def test_few_codes_are_places_only_under_a_telling_name():
    assert kind_of(["fra", "deu", "ita"]) is None
    assert kind_of(["fra", "deu", "ita"], "iso3") == "country"
    assert kind_of(["ny", "nj", "ct"]) is None
    assert kind_of(["ny", "nj", "ct"], "STUSPS") == "state"


def test_numbers_are_countries_only_when_all_are_and_the_name_says_so():
    numbers = ["4", "8", "31", "384", "840"]
    assert kind_of(numbers, "country_code") == kind_of(numbers, "iso_n3") == "country"
    assert kind_of(numbers) is kind_of(numbers, "prison") is kind_of(numbers[:4], "iso_n3") is None
    assert kind_of([*numbers, "1"], "country_code") is None
    assert kind_of(numbers, "country calling code") is None


def test_numbers_are_states_only_under_a_name_that_says_state_fips():
    numbers = ["1", "2", "4", "36", "56"]
    assert {kind_of(numbers, name) for name in ("state_fips", "STATEFP", "StateFIPS", "state_fp")} == {
        "state"
    }
    assert kind_of(numbers, "state") is kind_of(numbers, "fips") is None
    assert kind_of([*numbers, "3"], "state_fips") is None


@pytest.mark.parametrize(
    ("texts", "name"),
    [
        (["jordan", "chad", "georgia"], "person"),
        (["jordan", "chad", "georgia"], "first"),
        (["jordan", "chad", "georgia", "michael", "emma", "liam"], "name"),
        (["turkey", "ham", "chicken", "china"], "dish"),
        (["jersey", "guernsey", "holstein", "ayrshire"], "cattle"),
        (["jfk", "lga", "ewr", "atl", "ord", "lax", "per", "can"], "origin"),
        (["aapl", "msft", "ibm", "ge", "can", "arm"], "stock"),
        (["en", "fr", "de", "es", "it", "pt", "nl", "pl", "ru", "se", "no"], "code"),
        (["fr", "de", "es", "it", "pt"], "language"),
        (["fr", "de", "es", "it", "pt"], "iso_639_1"),
        (["alabama", "florida", "georgia", "auburn", "kentucky"], "team_name"),
        (["can", "arg", "bra", "fra", "ita"], "team"),
        (["jan", "feb", "mar", "apr", "may", "jun"], "month"),
        (["pf", "pg", "sf", "sg", "c"], "position"),
        (["no", "yes"], "country"),
        ([], "country"),
        ([None], "country"),
    ],
)
def test_other_things_are_no_places(texts, name):
    assert kind_of(texts, name) is None


def test_more_texts_than_countries_could_fill_are_no_places():
    assert kind_of([*COUNTRIES, *(f"town {number}" for number in range(600))], "country") is None


@pytest.mark.parametrize(
    "texts", [COUNTRIES, STATES, ["fra", "deu"], ["ny", "nj"], ["4", "36"], ["são tomé & príncipe", "u.s."]]
)
def test_names_and_codes_may_be_places(texts):
    assert may_be_places(texts)


@pytest.mark.parametrize(
    "texts", [[], ["france"], ["2021-01-02", "2021-01-03"], ["10001", "10002"], ["m", "f"], ["a" * 70] * 2]
)
def test_other_shapes_may_not_be_places(texts):
    assert not may_be_places(texts)


def test_the_library_is_read_only_for_columns_that_may_be_places_and_never_brings_pandas():
    script = (
        "import sys, polars as pl\n"
        "from covary.columns.places import may_be_places, recognise_places\n"
        "may_be_places(['10001', 'a1']); recognise_places(pl.Series(['fr', 'de']), 'language')\n"
        "recognise_places(pl.Series(['4', '8', '12', '16', '20']), 'rank')\n"
        "assert 'pycountry' not in sys.modules\n"
        "recognise_places(pl.Series(['fr', 'de']), 'country')\n"
        "assert 'pycountry' in sys.modules and 'pandas' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


texts_of_all_sorts = st.one_of(
    st.sampled_from([*SPELLINGS, *(text for texts in SPELLINGS.values() for text in texts), *SHARED_CODES]),
    st.text(max_size=12),
    st.from_regex(r"(country|state):[a-z]{2,3}", fullmatch=True),
)


@given(st.lists(st.none() | texts_of_all_sorts), st.sampled_from(["country", "state"]))
def test_writing_places_twice_equals_once(texts, kind):
    once = written(texts, kind)
    assert written(once, kind) == once


@given(st.lists(texts_of_all_sorts, min_size=1), st.sampled_from(["country", "state"]), st.data())
def test_parts_of_a_column_come_out_as_the_whole_does(texts, kind, data):
    cut = data.draw(st.integers(0, len(texts)))
    assert written(texts[:cut], kind) + written(texts[cut:], kind) == written(texts, kind)


@given(
    st.lists(texts_of_all_sorts, unique=True), st.sampled_from(["x", "country", "state", "iso"]), st.data()
)
def test_the_kind_does_not_depend_on_the_order_of_the_texts(texts, name, data):
    assert kind_of(data.draw(st.permutations(texts)), name) == kind_of(texts, name)
