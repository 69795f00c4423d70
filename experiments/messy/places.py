"""Keys that are places, by all the names that they have."""

import unicodedata

from experiments.messy.keys import Domain

COUNTRIES = """
AFG AF Afghanistan|ALB AL Albania|DZA DZ Algeria|ARG AR Argentina|AUS AU Australia|AUT AT Austria
BHS BS Bahamas,Bahamas, The|BGD BD Bangladesh|BEL BE Belgium|BOL BO Bolivia,Bolivia (Plurinational State of)
BRA BR Brazil|CAN CA Canada|CHL CL Chile|CHN CN China,People's Republic of China|COL CO Colombia
COD CD DR Congo,Congo, Dem. Rep.|CIV CI Côte d'Ivoire,Ivory Coast|CUB CU Cuba|CZE CZ Czechia,Czech Republic
DNK DK Denmark|ECU EC Ecuador|EGY EG Egypt,Egypt, Arab Rep.|FIN FI Finland|FRA FR France
GMB GM Gambia,Gambia, The|GEO GE Georgia|DEU DE Germany|GRC GR Greece|HUN HU Hungary|IND IN India
IDN ID Indonesia|IRN IR Iran,Iran, Islamic Rep.|IRL IE Ireland|ISR IL Israel|ITA IT Italy|JPN JP Japan
KEN KE Kenya|PRK KP North Korea,Korea, Dem. People's Rep.|KOR KR South Korea,Korea, Rep.|LAO LA Laos,Lao PDR
MEX MX Mexico|MDA MD Moldova,Republic of Moldova|NAM NA Namibia|NLD NL Netherlands|NGA NG Nigeria
NOR NO Norway|PAK PK Pakistan|PER PE Peru|POL PL Poland|PRT PT Portugal|REU RE Réunion
RUS RU Russia,Russian Federation|STP ST São Tomé and Príncipe|ESP ES Spain|SWE SE Sweden|CHE CH Switzerland
SYR SY Syria,Syrian Arab Republic|TZA TZ Tanzania,United Republic of Tanzania|THA TH Thailand
TUR TR Türkiye,Turkey|GBR GB United Kingdom,UK|USA US United States,United States of America
VEN VE Venezuela,Venezuela, RB|VNM VN Vietnam,Viet Nam|ZMB ZM Zambia|ZWE ZW Zimbabwe
"""
STATES = """
AL Alabama|AK Alaska|AZ Arizona|AR Arkansas|CA California|CO Colorado|CT Connecticut|DE Delaware
DC District of Columbia|FL Florida|GA Georgia|HI Hawaii|ID Idaho|IL Illinois|IN Indiana|IA Iowa|KS Kansas
KY Kentucky|LA Louisiana|ME Maine|MD Maryland|MA Massachusetts|MI Michigan|MN Minnesota|MS Mississippi
MO Missouri|MT Montana|NE Nebraska|NV Nevada|NH New Hampshire|NJ New Jersey|NM New Mexico|NY New York
NC North Carolina|ND North Dakota|OH Ohio|OK Oklahoma|OR Oregon|PA Pennsylvania|RI Rhode Island
SC South Carolina|SD South Dakota|TN Tennessee|TX Texas|UT Utah|VT Vermont|VA Virginia|WA Washington
WV West Virginia|WI Wisconsin|WY Wyoming
"""
CITIES = """
Manhattan|Brooklyn|Queens|Bronx|Staten Island|Coeur d'Alene|O'Fallon|Land O' Lakes|Winston-Salem
Wilkes-Barre|Stratford-upon-Avon|Port-au-Prince|São Paulo|Bogotá|Málaga|Zürich|Genève|Kraków|Besançon|Québec
New Orleans|Salt Lake City|Los Angeles|San Diego|San José|Santa Fe|El Paso|Fort Worth|Long Beach
Oklahoma City|Kansas City|Virginia Beach|Colorado Springs|Corpus Christi|St. Paul|St. Louis|Baton Rouge
Grand Rapids|Des Moines|Rio Rancho|Cape Coral|Sioux Falls|Little Rock|Ann Arbor|Green Bay|Las Cruces
Palm Bay|West Jordan|Round Rock|Cedar Rapids|Broken Arrow|High Point|Thousand Oaks|College Station
Santa Rosa|Boston|Chicago|Denver|Houston|Seattle|Tampa|Omaha|Tucson|Memphis|Fresno|Buffalo|Newark|Toledo
Lincoln|Durham
"""
AIRPORTS = "ATL|LAX|ORD|DFW|DEN|JFK|SFO|SEA|LAS|MCO|EWR|CLT|PHX|IAH|MIA|LGA|BOS|FLL|MSP|SLC"


def _listed(text: str) -> list[str]:
    return [each for line in text.strip().splitlines() for each in line.split("|")]


def _stripped(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))


COUNTRY_NAMES = {
    iso3: (iso2, *names.split(",", 1)) for iso3, iso2, names in (e.split(" ", 2) for e in _listed(COUNTRIES))
}
STATE_NAMES = dict(each.split(" ", 1) for each in _listed(STATES))
PLACES = (
    Domain(
        "city",
        tuple(_listed(CITIES)),
        {
            "Coeur d'Alene": str,
            "COEUR D'ALENE ": lambda key: f"{key.upper()} ",
            "coeur d'alene": str.lower,
            "Staten  Island": lambda key: key.replace(" ", "  "),
            "Staten<nbsp>Island": lambda key: key.replace(" ", "\xa0"),
            "Coeur d’Alene, Winston–Salem": lambda key: key.replace("'", "’").replace("-", "–"),
            "São Paulo, decomposed": lambda key: unicodedata.normalize("NFD", key),
        },
        ("city", "City Name", "BOROUGH", "place", "municipality"),
    ),
    Domain(
        "country",
        tuple(COUNTRY_NAMES),
        {
            "Côte d'Ivoire": lambda key: COUNTRY_NAMES[key][1],
            "CI": lambda key: COUNTRY_NAMES[key][0],
            "CIV": str,
            "Ivory Coast": lambda key: COUNTRY_NAMES[key][-1],
            "Cote d'Ivoire": lambda key: _stripped(COUNTRY_NAMES[key][1]),
            "CÔTE D'IVOIRE": lambda key: COUNTRY_NAMES[key][1].upper(),
        },
        ("country", "Country Name", "nation", "COUNTRY"),
    ),
    Domain(
        "state",
        tuple(STATE_NAMES),
        {
            "New York": lambda key: STATE_NAMES[key],
            "NY": str,
            "US-NY": "US-{}".format,
            "NEW YORK": lambda key: STATE_NAMES[key].upper(),
        },
        ("state", "State", "state_name", "US State"),
    ),
    Domain(
        "airport",
        tuple(_listed(AIRPORTS)),
        {"JFK": str, "jfk": str.lower, "JFK ": "{} ".format},
        ("airport", "origin"),
    ),
)
