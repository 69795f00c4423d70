"""Keys that are codes, numbers or groups: zip codes, schools, phones, yes and no; how each is written."""

import zlib

import numpy as np

from experiments.messy.keys import Domain, Write


def _codes(width: int) -> dict[str, Write]:
    """Ways to write a code of digits, of which spreadsheets take the leading zeros."""
    return {
        "07030": lambda key: key.zfill(width),
        "7030": lambda key: str(int(key)),
        "7030.0": lambda key: f"{int(key)}.0",
        " 07030 ": lambda key: f" {key.zfill(width)} ",
    }


def _draw(name: str, low: int, high: int, count: int, form: str) -> tuple[str, ...]:
    numbers = np.random.default_rng(zlib.crc32(name.encode())).choice(high - low, count, replace=False) + low
    return tuple(form.format(number) for number in np.sort(numbers).tolist())


ZIPS = _draw("NJ", 7001, 7200, 100, "{:05}") + _draw("NY", 10001, 11700, 200, "{:05}")
FIPS = tuple(
    f"{state:02}{county:03}"
    for state in (1, 6, 9, 36)
    for county in range(1, 2 * (124 if state == 36 else 90), 2)
)
SCHOOLS = tuple(
    f"{district:02}{'MXKQR'[district % 5]}{100 + (district * 37 + number * 29) % 600}"
    for district in range(1, 33)
    for number in range(9)
)
CODES = (
    Domain(
        "zip",
        ZIPS,
        _codes(5),
        ("zip", "ZIP Code", "zipcode", "postal_code", "Incident Zip"),
        typed=int,
    ),
    Domain("fips", FIPS, _codes(5), ("fips", "county_fips", "GEOID", "FIPS Code"), typed=int),
    Domain(
        "school",
        SCHOOLS,
        {"01M292": str, "01m292": str.lower, " 01M292 ": " {} ".format, "01M292 ": "{} ".format},
        ("DBN", "dbn", "School DBN", "ats_system_code"),
    ),
    Domain(
        "customer",
        tuple(map(str, range(1, 501))),
        _codes(5),
        ("customer_id", "Customer ID", "CustomerID"),
        typed=int,
    ),
    Domain(
        "station",
        tuple(map(str, range(1990, 2300))),
        _codes(4),
        ("station_id", "Station #"),
        typed=int,
    ),
    Domain("order", _draw("order", 10**6, 10**7, 2_000, "{}"), {"1234567": str}, ("order_id", "Order #")),
    Domain(
        "district",
        tuple(map(str, range(1, 52))),
        {"7": str, "07": lambda key: key.zfill(2), "7.0": "{}.0".format},
        ("district", "Council District", "COMMUNITY DISTRICT"),
        typed=int,
    ),
    Domain(
        "phone",
        _draw("phone", 2_120_000_000, 2_129_999_999, 300, "{}"),
        {
            "2125551234": str,
            "(212) 555-1234": lambda key: f"({key[:3]}) {key[3:6]}-{key[6:]}",
            "212-555-1234": lambda key: f"{key[:3]}-{key[3:6]}-{key[6:]}",
            "+1 212 555 1234": lambda key: f"+1 {key[:3]} {key[3:6]} {key[6:]}",
            "212.555.1234": lambda key: f"{key[:3]}.{key[3:6]}.{key[6:]}",
        },
        ("phone", "Phone Number", "telephone", "contact"),
        meets=False,
    ),
)
GROUPS = (
    Domain(
        "flag",
        ("yes", "no"),
        {
            "yes": str,
            "Y": lambda key: key[0].upper(),
            "true": {"yes": "true", "no": "false"}.__getitem__,
            "TRUE": {"yes": "TRUE", "no": "FALSE"}.__getitem__,
            "Yes": str.title,
        },
        ("urban", "active", "certified"),
        typed="yes".__eq__,
    ),
    Domain(
        "account",
        _draw("account", 10**4, 10**7, 50_000, "{:08}"),
        {"00412345": str},
        ("account", "acct no"),
        meets=False,
    ),
    Domain(
        "ages",
        ("0-4", "5-12", "13-21", "22-34", "35-49", "50-64", "65-79"),
        {"13-21": str, "13–21": lambda key: key.replace("-", "–")},
        ("age group", "ages"),
        meets=False,
    ),
    Domain(
        "districts",
        tuple(f"{number}, {number + 1}" for number in range(1, 40)),
        {"8, 9": str},
        ("Council Districts", "areas served"),
        meets=False,
    ),
    Domain(
        "grade",
        ("K", *map(str, range(1, 13))),
        {"K, 1": str, "0K, 01": lambda key: key.zfill(2)},
        ("grade", "Grade Level"),
        meets=False,
    ),
)
