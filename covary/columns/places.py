"""Countries and US states under one text each, whatever name or ISO code a table writes them by."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import islice
from unicodedata import combining, normalize

import polars as pl

from covary.columns.number_forms import LONGEST_CELL

LOOKED_AT, LONGEST_NAME = 64, 60  # cells and their letters, before the library is read
MOST_TEXTS = 500  # distinct: there are 250 countries, and half of a column must be such
TEAM_SHARE = 0.9
NAME_SHARE = 0.5  # lists of countries also hold `world`, `euro area` and the like
CODE_SHARE, MANY_CODES_SHARE = 0.9, 0.75  # 18 % of the World Bank's country codes are of such groups
FEWEST_NAMES, FEWEST_CODES, FEWEST_NUMBERS = 3, 5, 5
FEWEST_NAMES_IF_NAMED, FEWEST_CODES_IF_NAMED = 2, 3
MANY_CODES = 20  # enough to be no accident
LANGUAGES = {"en", "ja", "ko", "zh"}  # codes of no country, of which few columns of languages lack all

# What the library lacks: short, former and statistical offices' names. Words may come in any order.
COUNTRY_ALIASES = {
    "are": "uae", "bes": "bonaire; caribbean netherlands", "bih": "bosnia", "brn": "brunei",
    "civ": "ivory coast; cote d ivoire", "cod": "dr congo; drc; congo kinshasa; zaire",
    "cog": "congo brazzaville", "cpv": "cape verde", "esh": "west sahara", "flk": "falkland islands",
    "fro": "faeroe islands", "fsm": "micronesia; micronesia country", "gbr": "uk; great britain; britain",
    "geo": "georgia country", "hkg": "hong kong china; hong kong sar; hong kong sar china",
    "irl": "republic of ireland", "kna": "saint kitts", "kor": "korea", "lao": "lao pdr",
    "lby": "libyan arab jamahiriya",
    "mac": "macau; macau china; macau sar; macao china; macao sar; macao sar china", "maf": "saint martin",
    "mkd": "macedonia; macedonia fyr; fyrom; former yugoslav republic of macedonia",
    "mmr": "burma; myanmar burma", "nld": "holland", "pcn": "pitcairn islands", "prk": "dprk",
    "pse": "palestine; west bank and gaza; west bank and gaza strip; palestinian territory; "
    "palestinian territories; occupied palestinian territory; palestinian authority", "rus": "russia",
    "shn": "saint helena", "sjm": "svalbard; svalbard and jan mayen islands", "stp": "sao tome e principe",
    "sur": "surinam", "swz": "swaziland", "sxm": "sint maarten; saint maarten", "tca": "turks and caicos",
    "tls": "east timor", "tur": "turkey", "twn": "chinese taipei; republic of china; taiwan china",
    "usa": "us; usa", "vat": "vatican; vatican city; holy see", "vct": "saint vincent",
    "ven": "venezuela rb", "wlf": "wallis and futuna islands", "wsm": "western samoa",
    "xkx": "kosovo; republic of kosovo",
}  # fmt: skip
COUNTRY_CODES = {"el": "grc", "uk": "gbr", "xk": "xkx", "xkx": "xkx"}  # the EU's and the World Bank's
STATE_ALIASES = {
    "dc": "dc; washington dc", "mp": "northern marianas; cnmi",
    "vi": "virgin islands; united states virgin islands",
}  # fmt: skip
FIPS = (  # in the order of their numbers, from 0
    "- al ak - az ar ca - co ct de dc fl ga - hi id il in ia ks ky la me md ma mi mn ms mo mt ne nv nh nj "
    "nm ny nc nd oh ok or pa - ri sc sd tn tx ut vt va - wa wv wi wy - - - as - - - - - gu - - mp - - pr "
    "- - - - - vi"
)
WORDS_IN_FULL = {
    "st": "saint", "rep": "republic", "dem": "democratic", "fed": "federated", "sts": "states",
    "is": "islands", "island": "islands", "herz": "herzegovina", "eq": "equatorial", "fr": "french",
    "n": "north", "s": "south", "e": "east", "w": "west",
}  # fmt: skip
UNHEARD = {"the", "of", "and"}
# Also first names, surnames, foods, breeds: mostly these make no column of places unless its name says so.
EVERYDAY = {
    "chad", "china", "cuba", "georgia", "guernsey", "guinea", "holland", "india", "ireland", "israel",
    "jersey", "jordan", "kenya", "mali", "reunion", "togo", "turkey", "delaware", "florida", "indiana",
    "montana", "nevada", "texas", "virginia", "washington", "wyoming",
}  # fmt: skip

_SHAPE = re.compile(r"(?=..)[^\W\d_]+(?:[ ,.'()&*_-]+[^\W\d_]+){0,9}[ .)*]*|\d{1,3}")
_WORD = re.compile(r"[^\W_]+")
_JOINTS = re.compile(r"(?<=[a-z])(?=[A-Z\d])|(?<=[A-Z])(?=\d)|(?<=\d)(?=[A-Za-z])|[\W_]+")
_OTHER_THINGS = re.compile(
    r"lang(uage)?s?\b|locale|currenc|airport|iata|carrier|airline|ticker|symbol|school|college"
    r"|universit|breed|surname|forename|(first|last|given|middle|family) ?name|player|person\b|people"
    r"|\b(639|4217)\b"  # ISO's numbers for languages and currencies
)
_TEAMS = re.compile(r"team|club")  # of countries, now and then
_COUNTRY = re.compile(r"country|countries|\bnations?\b")
_COUNTRY_CODE = re.compile(r"country|countries|\bnations?\b|\b(iso(code)?|cca|alpha|geo)\b")
_STATE = re.compile(r"\bstates?(code|name|abb|abbr|abbrev|id)?\b|\bst\b|stusps|\busps\b|\bprovinces?\b")
_COUNTRY_NUMBER = re.compile(
    r"^(?!.*(phone|dial|calling|\bcounts?\b|rank|total|year|week|date)).*(country|\biso(code)?\b)"
)
_STATE_NUMBER = re.compile(r"\bst(ate)?s? ?(fips|fp)\b|\bfips ?st(ate)?\b")


@dataclass(frozen=True, slots=True)
class Gazetteer:
    """The places of one kind: each code in use, under every name and code known for it."""

    names: dict[str, str]  # as `_normalise_words` writes them
    codes: dict[str, str]
    numbers: dict[str, str]

    def find(self, text: str) -> str | None:
        """The code of the place that a text writes, if any."""
        if len(text) > LONGEST_CELL:
            return None
        return self.codes.get(text) or self.names.get(_normalise_name(text)) or self.numbers.get(text)


def may_be_places(cells: Iterable[str]) -> bool:
    """Whether a few distinct texts have the shape of names or codes, without reading the library."""
    looked_at = list(islice(cells, LOOKED_AT))
    shaped = sum(len(cell) <= LONGEST_NAME and _SHAPE.fullmatch(cell) is not None for cell in looked_at)
    return len(looked_at) >= FEWEST_NAMES_IF_NAMED and shaped >= NAME_SHARE * len(looked_at)


def may_be_numbered(name: str) -> bool:
    """Whether a column's name says that its whole numbers are codes of countries or states."""
    heading = _spell_out(name)
    return bool(_COUNTRY_NUMBER.search(heading) or _STATE_NUMBER.search(heading))


def _spell_out(name: str) -> str:
    """Write the name of a column as words: stateCode as "state code"."""
    return _JOINTS.sub(" ", name).lower().strip()


def recognise_places(cells: pl.Series, name: str) -> str | None:
    """Tell whether distinct texts are mostly countries ("country"), mostly US states ("state"), or neither.

    Names may be half of the texts, codes must be nearly all, and numbers all; fewer will do under a column
    name that says what they are.
    """
    heading = _spell_out(name)
    if len(cells) > MOST_TEXTS or _OTHER_THINGS.search(heading):
        return None
    texts = {text for text in cells.to_list() if text is not None}
    if _TEAMS.search(heading):
        return _recognise_by_names(texts, heading, TEAM_SHARE)
    if all(map(str.isdecimal, texts)):
        return _recognise_by_numbers(texts, heading)
    return _recognise_by_names(texts, heading) or _recognise_by_codes(texts, heading)


def write_places(column: pl.Series, kind: str) -> pl.Series:
    """Write places as `country:civ` or `state:ny`; other texts stay as they are.

    Each text is judged alone, numbers too (ISO's of countries, FIPS's of states), so that the parts of a
    column come out as the whole does.
    """
    find = _load_gazetteers()[kind].find
    codes = {text: find(text) for text in column.unique().to_list() if text is not None}
    written = {text: f"{kind}:{code}" for text, code in codes.items() if code}
    return column.replace(list(written), list(written.values())) if written else column


def _recognise_by_numbers(texts: set[str], heading: str) -> str | None:
    """The kind that the column's name promises and every number keeps to."""
    kind = "state" if _STATE_NUMBER.search(heading) else "country"
    promised = kind == "state" or _COUNTRY_NUMBER.search(heading)
    if promised and len(texts) >= FEWEST_NUMBERS and _load_gazetteers()[kind].numbers.keys() >= texts:
        return kind
    return None


def _recognise_by_names(texts: set[str], heading: str, share: float = NAME_SHARE) -> str | None:
    books = _load_gazetteers()
    short = [text for text in texts if len(text) <= LONGEST_CELL]
    vocabulary = _collect_vocabulary()
    written = [_normalise_words(words) for words in map(_split_words, short) if vocabulary.issuperset(words)]
    known = {kind: [name for name in written if name in book.names] for kind, book in books.items()}
    says = {"country": bool(_COUNTRY.search(heading)), "state": bool(_STATE.search(heading))}

    def fits(kind: str) -> bool:
        fewest = FEWEST_NAMES_IF_NAMED if says[kind] else FEWEST_NAMES
        enough = len(known[kind]) >= max(fewest, share * len(texts))
        everyday = sum(name in EVERYDAY for name in known[kind])
        return enough and (says[kind] or everyday <= len(known[kind]) / 2)

    return _choose_kind({kind: len(names) if fits(kind) else 0 for kind, names in known.items()}, says)


def _recognise_by_codes(texts: set[str], heading: str) -> str | None:
    books = _load_gazetteers()
    says = {"country": bool(_COUNTRY_CODE.search(heading)), "state": bool(_STATE.search(heading))}

    def count(kind: str, length: int) -> int:
        known = sum(len(text) == length and text in books[kind].codes for text in texts)
        is_named = says[kind] or (length == 3 and "code" in heading)
        fewest = FEWEST_CODES_IF_NAMED if is_named else FEWEST_CODES
        share = MANY_CODES_SHARE if says[kind] and known >= MANY_CODES else CODE_SHARE
        return known if known >= max(fewest, share * len(texts)) else 0

    if count("country", 3):
        return "country"
    states, countries = count("state", 2), count("country", 2)
    # Other nations' states have codes of two letters too, and many of them are also a country's.
    if (says["state"] and not says["country"]) or not LANGUAGES.isdisjoint(texts):
        countries = 0
    best = _choose_kind({"state": states, "country": countries}, says)
    return best or ("state" if states >= MANY_CODES else None)


def _choose_kind(counts: dict[str, int], says: dict[str, bool]) -> str | None:
    """The kind with the most texts; on a tie, the one that the column's name speaks of."""
    most = [kind for kind, count in counts.items() if 0 < count == max(counts.values())]
    likely = [kind for kind in most if says[kind]]
    return most[0] if len(most) == 1 else likely[0] if len(likely) == 1 else None


def _split_words(text: str) -> list[str]:
    """The words of a text without accents, `u.s.` and `people's` being one each."""
    if not text.isascii():
        text = "".join(letter for letter in normalize("NFKD", text) if not combining(letter))
    return _WORD.findall(text.replace(".", "").replace("'", ""))


def _normalise_words(words: Iterable[str]) -> str:
    """Words in full and in alphabetical order, the same for `korea, rep.` and `the republic of korea`."""
    return " ".join(sorted({WORDS_IN_FULL.get(word, word) for word in words} - UNHEARD))


@cache
def _collect_vocabulary() -> set[str]:
    """Every word of a name: most texts hold another, and this is the quickest way to tell."""
    names = [name for book in _load_gazetteers().values() for name in book.names]
    return UNHEARD.union(WORDS_IN_FULL, *map(str.split, names))


@cache
def _load_gazetteers() -> dict[str, Gazetteer]:
    # Most tables hold no places, and reading the library takes longer than sketching a small table.
    import pycountry  # noqa: PLC0415

    countries = [dict(country) for country in pycountry.countries]

    def by(field: str, write: Callable[[str], str] = str) -> dict[str, str]:
        return {write(c[field].lower()): c["alpha_3"].lower() for c in countries if field in c}

    country_names: dict[str, str] = {}
    for field in ("official_name", "common_name", "name"):
        country_names |= by(field, _normalise_name)
    states = {
        state.code[3:].lower(): state.name.lower()
        for state in pycountry.subdivisions
        if state.code.startswith("US-") and state.code != "US-UM"  # the Minor Outlying Islands
    }
    state_names = {_normalise_name(name): code for code, name in states.items()}
    state_names |= {_normalise_name(f"us-{code}"): code for code in states}
    return {
        "country": Gazetteer(
            names=country_names | _list_aliases(COUNTRY_ALIASES),
            codes=by("alpha_2") | by("alpha_3") | COUNTRY_CODES,
            numbers=by("numeric", lambda digits: digits.lstrip("0")),
        ),
        "state": Gazetteer(
            names=state_names | _list_aliases(STATE_ALIASES),
            codes={code: code for code in states},
            numbers={str(number): code for number, code in enumerate(FIPS.split()) if code in states},
        ),
    }


def _normalise_name(text: str) -> str:
    return _normalise_words(_split_words(text))


def _list_aliases(table: dict[str, str]) -> dict[str, str]:
    return {_normalise_name(name): code for code, names in table.items() for name in names.split("; ")}
