"""Keys that are times, from years to moments, and the ways to write them."""

from datetime import date, datetime, timedelta

from experiments.messy.keys import Domain, Write

HOURS_FROM, HOURS = datetime(2013, 3, 1), 480


def _time(form: str) -> Write:
    """A style of times; in the form, {d} and the like are parts without leading zeros."""

    def write(key: str) -> str:
        when = _when(key)
        bare = {"d": when.day, "m": when.month, "I": when.hour % 12 or 12, "q": (when.month + 2) // 3}
        return when.strftime(form).format(**bare)

    return write


def _when(key: str) -> datetime:
    if "Q" in key:
        return datetime(int(key[:4]), 3 * int(key[-1]) - 2, 1)
    return datetime.fromisoformat({4: f"{key}-01-01", 7: f"{key}-01", 13: f"{key}:00"}.get(len(key), key))


def _days(first: date, count: int) -> tuple[str, ...]:
    return tuple((first + timedelta(days=number)).isoformat() for number in range(count))


YEARS = tuple(map(str, range(1990, 2021)))
TIMES = (
    Domain(
        "time",
        YEARS,
        {"2013": str, "2013.0": "{}.0".format},
        ("year", "Cohort Year", "Fiscal Year", "yr"),
        "year",
        int,
    ),
    Domain(
        "time",
        tuple(f"{year}-Q{quarter}" for year in range(2006, 2017) for quarter in (1, 2, 3, 4)),
        {"2013-Q1": str, "2013Q1": _time("%YQ{q}"), "Q1 2013": _time("Q{q} %Y")},
        ("quarter", "Fiscal Quarter", "period"),
        "quarter",
    ),
    Domain(
        "time",
        tuple(f"{year}-{month:02}" for year in range(2008, 2017) for month in range(1, 13)),
        {
            "2013-01": str,
            "Jan 2013": _time("%b %Y"),
            "01/2013": _time("%m/%Y"),
            "January 2013": _time("%B %Y"),
        },
        ("month", "Report Month", "period"),
        "month",
    ),
    Domain(
        "time",
        _days(date(2011, 7, 1), 900),
        {
            "2013-01-05": str,
            "1/5/2013": _time("{m}/{d}/%Y"),
            "01/05/2013": _time("%m/%d/%Y"),
            "05.01.2013": _time("%d.%m.%Y"),
            "05/01/2013, day first": _time("%d/%m/%Y"),
            "5 Jan 2013": _time("{d} %b %Y"),
            "Jan 5, 2013": _time("%b {d}, %Y"),
            "05-Jan-13": _time("%d-%b-%y"),
            "2013-01-05T00:00:00": _time("%Y-%m-%dT00:00:00"),
            "20130105": _time("%Y%m%d"),
        },
        ("date", "day", "Report Date", "DATE", "Completion Date"),
        "day",
        date.fromisoformat,
    ),
    Domain(
        "time",
        tuple((HOURS_FROM + timedelta(hours=number)).strftime("%Y-%m-%dT%H") for number in range(HOURS)),
        {
            "2013-01-05T07:00:00": _time("%Y-%m-%dT%H:00:00"),
            "2013-01-05T07:00:00Z": _time("%Y-%m-%dT%H:00:00Z"),
            "2013-01-05 07:00": _time("%Y-%m-%d %H:00"),
            "1/5/2013 7:00 AM": _time("{m}/{d}/%Y {I}:00 %p"),
            "01/05/2013 07:00:00 AM": _time("%m/%d/%Y %I:00:00 %p"),
        },
        ("time_hour", "hour", "Date Time", "timestamp"),
        "hour",
        _when,
    ),
    Domain(
        "time",
        (),  # drawn anew for each table
        {
            "2013-01-05T07:12:33": str,
            "2013-01-05 07:12:33": _time("%Y-%m-%d %H:%M:%S"),
            "2013-01-05T07:12:33Z": "{}Z".format,
            "1/5/2013 7:12:33 AM": _time("{m}/{d}/%Y {I}:%M:%S %p"),
        },
        ("created_at", "Created Date", "pickup_datetime"),
        "moment",
        _when,
    ),
)
