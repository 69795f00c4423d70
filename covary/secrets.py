"""Secrets in what a person gives, kept out of the index, of logs, of errors and of the screen.

Of a URL only this is ever stored or shown: scheme, host, port, path, the names of its parameters, and the
table that is named after the # of a database. Everything else is hidden, whatever it is called, and shown
as "…". With a mark after it, as in ?page=…~1a2b3c4d, URLs can be told apart that differ only in that.
"""

import os
import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import islice, takewhile
from json import dumps
from typing import NamedTuple
from urllib.parse import quote, quote_plus, unquote, unquote_plus

HIDDEN = "…"
WEB = {"http", "https"}
BUCKETS = {"s3", "s3a", "gs", "gcs", "oss", "tos"}  # no port stands after their names
CONTAINERS = {"abfs", "abfss", "wasb", "wasbs"}  # before the @ is what others have in their path
# Where ? and # may be part of a name or a glob: what follows is hidden only if it looks like a parameter.
STORES = BUCKETS | CONTAINERS | {
    "adl", "arrow_hdfs", "az", "blockcache", "box", "cached", "dbfs", "dir", "dropbox", "file", "filecache",
    "ftp", "gdrive", "gist", "git", "github", "hdfs", "hf", "jlab", "jupyter", "lakefs", "libarchive",
    "local", "memory", "oci", "ocilake", "sftp", "simplecache", "smb", "ssh", "tar", "tosfs", "webdav",
    "webhdfs", "zip",
}  # fmt: skip
FILES = {"sqlite", "duckdb"}  # databases without a server, so without a user
FROM_THE_ENVIRONMENT = {"postgresql", "postgres"}  # whose user is found there if the URL names none
# Known without asking SQLAlchemy, so that a missing package is told and not taken for an unknown URL.
DIALECTS = {
    "postgresql", "sqlite", "mysql", "mariadb", "mssql", "oracle", "duckdb", "snowflake", "bigquery",
    "redshift", "trino", "clickhouse", "cockroachdb",
}  # fmt: skip
WITH_A_HOST = WEB | BUCKETS | CONTAINERS | {"ftp", "sftp", "ssh", "smb", "webdav", "webhdfs"}
# Who asks, not what for: another signature gives the same file.
CREDENTIALS = re.compile(
    r"(?i)x-(?:amz|goog|ms)-.*|sig|signature|awsaccesskeyid|googleaccessid|expires|policy|key-pair-id|"
    r"(?:\w*[_-])?token|(?:\w*[_-])?secret|api[_-]?key|pass|password|passwd|pwd|jwt|"
    r"s[pevrt]|spr|sip|srt|ss|ske|sks|skt|skv|skoid|sktid"
)

_SCHEME = r"[A-Za-z][\w+.-]{0,40}://"
_LINK = re.compile(rf"(::)(?={_SCHEME}|[A-Za-z]\w*+(?:::|$))")
# No group is repeated possessively: Python before 3.11.5 then matches wrongly, and here secrets would show.
_PREFIX = re.compile(rf"(?:[A-Za-z][\w+.-]*+:(?!//))*(?={_SCHEME})")
_NESTED = re.compile(_SCHEME)
_NAME = re.compile(r"[\w.\-\[\]$%]{1,64}")
_HOST = re.compile(r"(?:\[[\w:.%]*\]|[\w.\-*~$%+…]*)(?::\d*)?|arn:[\w:-]+")
_SHOWN_BEFORE = re.compile(r"…(?:~[0-9a-f]{8})?")
_STORES_QUERY, _STORES_FRAGMENT = re.compile(r"\?(?=[\w.\-\[\]%]+=)"), re.compile(r"#(?=[\w.\-%]*=)")
# Marks that people write in place of ? and &, too, where a name and a value follow.
_ODD_MARK = r"(?:[,&]|%3[fFbB]|%26)(?=[\w.\-\[\]]+=)"
_PATH_PARAMETER = re.compile(rf"(;|{_ODD_MARK})([^/;=]*)(?:(=)([^/;]*))?")
_LAST_PARAMETER = re.compile(r"(;)([^;=]*)(?:(=)([^;]*))?")
_PLAIN = re.compile(r"[A-Za-z][\w+.-]*://[\w.-]*(?::\d+)?(?:/[^@?#;:=]*)?|/.*", re.DOTALL)  # nothing to hide
_SPARK = re.compile(r"spark:(?!//)")  # a table or a query
_NO_URL = re.compile(r"(jdbc:(?:[A-Za-z]\w*:)*)(.*)", re.DOTALL)

# What was meant for a URL: a blank or a quote before it, or other marks than :// after the scheme.
_BEFORE = r"[\s'\"<(]*"
_KNOWN = "|".join(sorted(WEB | STORES | DIALECTS | FROM_THE_ENVIRONMENT, key=len, reverse=True))
_LED = re.compile(rf"(.*?)({_SCHEME}.*)", re.DOTALL)
_MISWRITTEN = re.compile(
    rf"(?i)({_BEFORE}({_KNOWN})(?:\+\w+)?)(\s*[:;]\s*(?::(?=[/\\]))?[/\\]*\s*|[/\\]{{2,}})(?!:)(.*)",
    re.DOTALL,
)
_USER = r"[^/\\\s:@]+"
_ANY_SCHEME_AND_USER = re.compile(
    rf"({_BEFORE}(?://)?[A-Za-z][\w+.-]+:[/\\]*)({_USER}:(?!{HIDDEN}@).*@.+)", re.DOTALL
)
_USER_ALONE = re.compile(rf"({_BEFORE}(?://)?)({_USER}:(?![/\\]|{HIDDEN}@).*@.+)", re.DOTALL)
_HOSTED = "|".join(sorted(WITH_A_HOST))
_IN_WORDS = r"[^\s'\"<>]{1,1000}@"
_SLIPS = r"(?:\s?[:;](?!//|:)|\s:|:(?=:/)|;//|://\s)[:/\\]*"
_MISWRITTEN_IN_WORDS = [
    re.compile(rf"(?i)(?<![\w.+-])((?:{_KNOWN})(?:\+\w+)?{_SLIPS}){_IN_WORDS}"),
    re.compile(rf"(?i)(?<![\w.+-])((?:{_HOSTED}):///+){_IN_WORDS}"),
    re.compile(rf"(?i)(?<![\w.+/-])(https?//+){_IN_WORDS}"),
    re.compile(
        rf"(?<![\w.+/-])([A-Za-z][\w+.-]{{1,40}}:(?!//[^/])[/\\]*)[^/\\\s:@'\"<>]{{1,200}}:{_IN_WORDS}"
    ),
]

_SUSPECT = re.compile(r"(?i)://|=|@|jdbc:|password|secret|token|identified|bearer|authorization")
_URL_IN_WORDS = re.compile(rf"{_SCHEME}[^\s'\"<>`|\\^]*")
# A password with marks in it that end a URL; a port is none.
_ORACLE_USER = re.compile(r"(jdbc:(?:[A-Za-z]\w*:){1,4})[^\s@'\"]*@")
_ODD_USER = re.compile(r"(?<=://)([^/?#@\s:\[\]]*):(?!\d*(?:[/?#\s:,;.)'\"]|$))(?!\s)[^\n]*@")
_SECRET_WORD = (
    r"(?:[\w.-]{0,40}(?:secret|token|passw|passphrase|pwd|credential|api_?key|access_?key|account_?key)"
    r"[\w.-]{0,40}|pass|pw|jwt|sig|uid)"
)
_VALUE = r"(?:\{(?:[^}]|\}\})*\}|'[^']*'|\"[^\"]*\"|[^\s;,&'\"]+)"
_SECRET_SETTING = re.compile(
    rf"(?i)((?:^|[\s;,&?(\{{'\"]){_SECRET_WORD}['\"]?\s*(?:=|:(?=\s*['\"]))\s*){_VALUE}"
)
_SQL_PASSWORD = re.compile(r"(?i)\b((?:password|secret|token|identified by)\s+)('[^']*'|\"[^\"]*\")")
_HEADER = re.compile(r"(?i)\b(bearer|authorization['\"]?\s*[:=]\s*['\"]?\w+)\s+[\w+/=.~-]{8,}")
_SETTING = r"[A-Za-z][\w ]{0,40}=(?:\{(?:[^}]|\}\})*\}|[^;{}\n]*)"
_CONNECTION = re.compile(rf"\b{_SETTING};\s*(?:{_SETTING}(?:;\s*|$|(?=['\"\n])))+")
_IN_CONNECTION = re.compile(r"=(\{(?:[^}]|\}\})*\}|[^;{}\n]*)")

_SECRET_OF_ENVIRONMENT = re.compile(
    r"(?i).*(?:secret|passw|pwd|token|credential|api_?key|access_?key|account_?key|private_?key|connection_?string)"
    r"(?!.*(?:file|path|dir|uri|url|provider|application_credentials)).*"
)
_DELIMITERS = re.compile(r"[/?#@:;&,{}|\r\n]")
DEEPEST = 4  # of a URL in the path of a URL
MOST_VALUES = 30  # in one hidden value; each is another word as long as what is left of it
LONG_ENOUGH = 4  # to be hidden in the middle of a word, too
LONG_IN_ENVIRONMENT = 6  # to be a secret and no setting
LONGEST_TEXT, LONGEST_SENTENCE = 10_000, 2_000


class Part(NamedTuple):
    """A part of a URL, as given and as it may be shown; `told_apart` if another makes another source."""

    text: str
    shown: str
    told_apart: bool = False


def shown_url(text: str, mark: str = "") -> str:
    """Return a source, as given or as shown before, as it may be stored and shown; a file's path as it is.

    `mark` tells it from another of the same names and other values.
    """
    if not _may_be_url(text):
        return without_secrets(text) if _SPARK.match(text) else text
    parts = list(_parts(text))
    told_apart = [number for number, part in enumerate(parts) if part.told_apart]
    if mark and told_apart:
        parts[told_apart[-1]] = Part("", f"{HIDDEN}~{mark}")
    return "".join(part.shown for part in parts)


def bare_url(url: str) -> str:
    """Return a URL up to its parameters: what names its file."""
    if not _may_be_url(url):
        return url
    before = takewhile(lambda part: part.text not in {"?", "#", ";"}, _parts(url))
    return "".join(part.shown for part in before)


def values_told_apart(url: str) -> list[str]:
    """Return the hidden values of a URL that make it another than one with others, in their order."""
    return [part.text for part in _parts(url) if part.told_apart] if _may_be_url(url) else []


def lacks_values(source: str) -> bool:
    """Whether a source is named by what may be shown of it alone, so that it can't be looked into."""
    if _may_be_url(source):
        return any(_SHOWN_BEFORE.fullmatch(part.text) for part in _parts(source))
    return HIDDEN in source and _SPARK.match(source) is not None


def is_connection_string(source: str) -> bool:
    """Whether a source is no URL, but a connection string or the like, with a secret in it."""
    return "://" not in source and without_secrets(source) != source


def is_mistyped(source: str) -> bool:
    """Whether a source looks like a URL and is none, unless there is a file of that name."""
    return not _is_of_another_kind(source) and any(
        _mistyped(link) or _led(link) for link in _LINK.split(source) if link != "::"
    )


def _may_be_url(text: str) -> bool:
    if _SPARK.match(text):
        return False
    may_be = "://" in text or text.startswith("jdbc:")
    return (may_be and not _PLAIN.fullmatch(text)) or is_mistyped(text)


def _is_of_another_kind(text: str) -> bool:
    is_path = text[:1] == "/" and text[1:2] != "/"
    return is_path or text.startswith("jdbc:") or _SPARK.match(text) is not None


def _mistyped(text: str) -> tuple[str, str, str] | None:
    """Take what was meant for a URL apart: all up to its user or host, its scheme, and the rest."""
    if _is_of_another_kind(text):
        return None
    if known := _MISWRITTEN.fullmatch(text):
        before, scheme, marks, rest = known.groups()
        if _is_miswritten(scheme.lower(), marks, rest):
            return before + marks, scheme, rest
    prefix = _PREFIX.match(text)
    if prefix and not prefix[0]:
        return None
    user = _ANY_SCHEME_AND_USER.fullmatch(text) or _USER_ALONE.fullmatch(text)
    return (user[1], "", user[2]) if user else None


def _led(text: str) -> tuple[str, str] | None:
    """Take a URL apart from what stands before it: a blank, a quote, a mark that can't be seen."""
    if "://" not in text or _is_of_another_kind(text) or _PREFIX.match(text):
        return None
    led = _LED.fullmatch(text)
    return (led[1], led[2]) if led else None


def _is_miswritten(scheme: str, marks: str, rest: str) -> bool:
    """Whether these marks between a scheme and what follows are no slip in a name but in a URL."""
    if marks == "://":
        return False
    if re.fullmatch(":///+", marks):
        return scheme in WITH_A_HOST
    if ":" not in marks and ";" not in marks:
        return scheme in WEB and "@" in rest
    return bool(re.search(r"[/\\]", marks)) or scheme in WEB or "@" in rest or "=" in rest


def _parts(text: str) -> Iterator[Part]:
    """Take a URL apart, or a chain of them: zip://a.csv::https://host/a.zip."""
    for link in _LINK.split(text):
        yield from [_shown(link)] if link == "::" else _parts_of_one(link)


def _parts_of_one(text: str, depth: int = 0) -> Iterator[Part]:
    if depth > DEEPEST:
        yield _hidden(text, told_apart=True)
        return
    if wrong := _mistyped(text):
        before, scheme, rest = wrong
        yield _shown(before)
        yield from _after_scheme(scheme, rest, depth, rest.rfind("@") + 1)
        return
    if led := _led(text):
        yield Part(led[0], without_secrets(led[0]))
        yield from _parts_of_one(led[1], depth + 1)
        return
    prefix = _PREFIX.match(text)
    if not prefix:
        if other := _NO_URL.fullmatch(text):
            before, at, rest = other[2].rpartition("@")
            yield _shown(other[1])
            yield from [_hidden(before), _shown("@")] if at else ()
            yield from _path(rest, _LAST_PARAMETER)
        else:
            yield _shown(text)
        return
    yield _shown(prefix[0])
    scheme, _, rest = text[prefix.end() :].partition("://")
    yield _shown(f"{scheme}://")
    if _NESTED.match(rest):
        yield from _parts_of_one(rest, depth + 1)
        return
    yield from _after_scheme(scheme, rest, depth)


def _after_scheme(scheme: str, rest: str, depth: int, end: int | None = None) -> Iterator[Part]:
    scheme = scheme.lower().partition("+")[0]
    if end is None or scheme in FILES:
        end = _end_of_user(scheme, rest)
    if end:
        yield from _user(scheme, rest[: end - 1])
    host = re.split("[/?#;]", rest[end:], maxsplit=1)[0]
    known = all(_HOST.fullmatch(each) for each in host.split(","))
    yield _shown(host) if known else _hidden(host)
    yield from _after_host(scheme, rest[end + len(host) :], depth)


def _end_of_user(scheme: str, rest: str) -> int:
    """Where a user and a password end, with the @; 0 if there are none.

    A password may hold any mark that should have been written as %2F and the like, so that as much is taken
    for it as can be.
    """
    last = rest.rfind("@") + 1
    if not last or scheme in FILES:
        return 0
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    user, at, _ = authority.rpartition("@")
    if scheme not in WEB | STORES:
        return last
    if at:
        return last if ":" in user else len(user) + 1
    name, colon, port = authority.partition(":") if authority[:1] != "[" else ("", "", "")
    is_port = (not port or port.isdigit()) and scheme not in BUCKETS
    return last if colon and not is_port and name != "arn" else 0


def _user(scheme: str, user: str) -> Iterator[Part]:
    if scheme in CONTAINERS:
        name, colon, password = user.partition(":")
        yield _shown(name) if _NAME.fullmatch(name) else _hidden(name)
        yield from [Part(colon + password, "")] if colon else ()
    elif scheme in FROM_THE_ENVIRONMENT and not re.search(r"[/?#@]|^…$", user):
        yield Part(f"{user}@", "")
        return
    else:
        yield _hidden(user)
    yield _shown("@")


def _after_host(scheme: str, tail: str, depth: int) -> Iterator[Part]:
    store = scheme in STORES
    nested = _NESTED.search(re.split("[?#]", tail, maxsplit=1)[0])
    if nested:
        yield from _path(tail[: nested.start()], _PATH_PARAMETER, store)
        yield from _parts_of_one(tail[nested.start() :], depth + 1)
        return
    before, fragment = _split_at(_STORES_FRAGMENT if store else "#", tail)
    path, query = _split_at(_STORES_QUERY if store else r"\?", before)
    at_the_end = scheme not in WEB | STORES  # as of sc://host/;token=...
    yield from _path(path, _LAST_PARAMETER if at_the_end else _PATH_PARAMETER, store)
    if query is not None:
        yield _shown("?")
        yield from _query(query)
    if fragment is not None:
        yield _shown("#")
        names_a_table = not store and scheme not in WEB and "=" not in fragment
        yield _shown(fragment) if names_a_table else _hidden(fragment, told_apart=True)


def _split_at(mark: str | re.Pattern[str], text: str) -> tuple[str, str | None]:
    """What stands before a mark and after it; None if it is not there."""
    before, *after = re.split(mark, text, maxsplit=1)
    return before, after[0] if after else None


def _path(path: str, parameters: re.Pattern[str], store: bool = False) -> Iterator[Part]:
    done = 0
    for parameter in parameters.finditer(path):
        mark, name, equals, value = parameter.groups(default="")
        if store and not (mark == ";" and equals and _NAME.fullmatch(name)):
            continue
        # Before a suffix an odd mark is part of a name, as in x,y=1.csv and in year=2013,month=1/a.csv.
        if mark != ";" and "." not in path[: parameter.start()].rpartition("/")[2]:
            continue
        yield _shown(path[done : parameter.start()])
        yield _shown(mark)
        yield from _parameter(name, equals, value)
        done = parameter.end()
    yield _shown(path[done:])


def _query(query: str) -> Iterator[Part]:
    for number, parameter in enumerate(query.split("&")):
        if number:
            yield _shown("&")
        yield from _parameter(*parameter.partition("="))


def _parameter(name: str, equals: str, value: str) -> Iterator[Part]:
    if not equals:
        yield _hidden(name, told_apart=True)
        return
    yield _shown(name) if _NAME.fullmatch(name) else _hidden(name, told_apart=True)
    yield _shown(equals)
    yield _hidden(value, told_apart=not CREDENTIALS.fullmatch(name))


def _shown(text: str) -> Part:
    return Part(text, text)


def _hidden(text: str, told_apart: bool = False) -> Part:
    if not text or _SHOWN_BEFORE.fullmatch(text):
        return _shown(text)
    return Part(text, HIDDEN, told_apart)


def without_secrets(text: str) -> str:
    """Return a sentence as it may be shown, of whose secrets nothing is known but how secrets look."""
    if not _SUSPECT.search(text):  # as nearly none is
        return text
    if len(text) > LONGEST_TEXT:  # what is cut off may be half a secret, so not all that is left is told
        return without_secrets(text[:LONGEST_TEXT])[:LONGEST_SENTENCE]
    text = _ODD_USER.sub(f"{HIDDEN}@", _ORACLE_USER.sub(rf"\1{HIDDEN}@", text))
    for pattern in _MISWRITTEN_IN_WORDS:
        text = pattern.sub(rf"\1{HIDDEN}@", text)
    text = _URL_IN_WORDS.sub(_url_in_words, text)
    text = _CONNECTION.sub(lambda string: _IN_CONNECTION.sub(f"={HIDDEN}", string[0]), text)
    text = _SECRET_SETTING.sub(rf"\1{HIDDEN}", text)
    return _HEADER.sub(rf"\1 {HIDDEN}", _SQL_PASSWORD.sub(rf"\1{HIDDEN}", text))


def _url_in_words(match: re.Match[str]) -> str:
    url = match[0].rstrip(".,;:!)}")
    return "".join(part.shown for part in _parts(url)) + match[0][len(url) :]


@dataclass(frozen=True)
class Secrets:
    """What was given and must not be told again, in every form in which a library may tell it."""

    words: frozenset[str]  # hidden wherever they stand
    # Hidden where they stand alone: users, and parts of a value that was taken for something else.
    names: frozenset[str] = frozenset()

    @classmethod
    def of(cls, *given: str) -> "Secrets":
        """Take the secrets out of sources, as a person gave them, and out of the environment."""
        hidden = [part for text in given for part in _hidden_parts(text)]
        names = (name for part in hidden for name in _names_in(part))
        return cls(frozenset(word for part in hidden for word in _words_in(part)), frozenset(names))

    def __bool__(self) -> bool:
        return bool(self.words)

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        words = {form for word in self.words | set(_secrets_of_environment()) for form in _forms(word)}
        anywhere = {word for word in words if len(word) >= LONG_ENOUGH}
        alone = (words | {form for name in self.names for form in _forms(name)}) - anywhere
        forms = sorted(anywhere | alone, key=len, reverse=True)
        patterns = [
            rf"(?<!\w){re.escape(form)}(?!\w)" if form in alone else re.escape(form) for form in forms
        ]
        return re.compile("|".join(patterns), re.IGNORECASE) if patterns else None

    def hide(self, text: str) -> str:
        """Return what somebody said as it may be shown."""
        return without_secrets(self._pattern.sub(HIDDEN, text) if self._pattern else text)


def _hidden_parts(text: str) -> Iterator[str]:
    urls = [text]
    if not _may_be_url(text):
        for pattern in _MISWRITTEN_IN_WORDS:
            yield from (match[0][len(match[1]) : -1] for match in pattern.finditer(text))
        urls = _URL_IN_WORDS.findall(text)
    for url in urls:
        for part in _parts(url):
            if part.text != part.shown:
                yield part.text.removesuffix("@").removeprefix(":")


def _decoded(text: str) -> set[str]:
    return {text, unquote(text), unquote_plus(text)}


def _words_in(hidden: str) -> Iterator[str]:
    """A hidden value, and the password in it if it is a user's, or the values in a connection string."""
    for form in _decoded(hidden):
        values = [form[equals.end() :] for equals in islice(re.finditer("=", form), MOST_VALUES)]
        values += [re.split("[;&]", value, maxsplit=1)[0] for value in values]
        for word in (form, *form.split(":", 1)[1:], *values):
            yield from _decoded(word) | _decoded(word.strip("'\" \t"))


def _names_in(hidden: str) -> Iterator[str]:
    """What a library may tell of a hidden value alone: a user, or half of a password that breaks its URL."""
    for form in _decoded(hidden):
        pieces = [each for each in _DELIMITERS.split(form) if "=" not in each and len(each) >= LONG_ENOUGH]
        for name in (form.partition(":")[0], *form.split("/", 1)[1:], *pieces):
            yield from _decoded(name)


def _secrets_of_environment() -> Iterator[str]:
    for name, value in os.environ.items():
        if _SECRET_OF_ENVIRONMENT.fullmatch(name) and len(value) >= LONG_IN_ENVIRONMENT:
            if not os.path.exists(value):  # a file may hold secrets, its name is none
                yield value
        elif "://" in value and "@" in value:
            yield from (word for part in _hidden_parts(value) for word in _words_in(part))


def _forms(word: str) -> set[str]:
    """The ways to write a word; none if it is but a mark or two."""
    if len(word) < LONG_ENOUGH and not re.search(r"\w", word):
        return set()
    coded = word.encode("utf-8", "surrogateescape")
    escaped = {repr(word)[1:-1], dumps(word)[1:-1], escape(word), b64encode(coded).decode().rstrip("=")}
    return {word, quote(coded, safe=""), quote(coded), quote_plus(coded)} | escaped
