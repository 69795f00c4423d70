import json
from urllib.parse import quote, quote_plus, unquote

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from covary.secrets import Secrets, is_mistyped, lacks_values, shown_url, without_secrets
from covary.tables.location import Location

# A secret begins and ends with what nothing else here holds, so that half a secret is seen too.
BEGIN, END = "Zq8", "9Xj"
HOSTS = st.sampled_from(["h.example.org", "h.example.org:8080", "[2001:db8::1]:5432", "127.0.0.1:1"])
INSIDE = st.text("abcxyzABC0189/?#@:;&=+ %'\"{}|.,-_~é", max_size=12)
SECRETS = INSIDE.map(lambda text: f"{BEGIN}{text}{END}")
ENCODED = SECRETS.map(lambda text: quote(text, safe=""))

# Where a secret can be, percent-encoded as it should be; and the part of the URL that stays.
FORMS = [
    ("https://{secret}@{host}/lake/a.csv", "{host}/lake/a.csv"),
    ("https://me:{secret}@{host}/lake/a.csv", "{host}/lake/a.csv"),
    ("https://{secret}:x-oauth@{host}/lake/a@b.csv", None),
    ("https://{host}/lake/a.csv?pass={secret}", "{host}/lake/a.csv?pass=…"),
    ("https://{host}/lake/a.csv?code={secret}&jwt=1", "{host}/lake/a.csv?code=…&jwt=…"),
    ("https://{host}/lake/a.csv?day=1&pw={secret}#x", "{host}/lake/a.csv?day=…&pw=…#…"),
    ("https://{host}/lake/a.csv?{secret}", "{host}/lake/a.csv?…"),
    ("https://{host}/lake/a.csv#access_token={secret}", "{host}/lake/a.csv#…"),
    ("https://{host}/lake/a.csv#{secret}", "{host}/lake/a.csv#…"),
    ("https://{host}/lake;jsessionid={secret}/a.csv", "{host}/lake;jsessionid=…/a.csv"),
    ("https://{host}/lake/a.csv;{secret}", "{host}/lake/a.csv;…"),
    ("https://{host}/copy/https://me:{secret}@x.org/a.csv?b={secret}", "x.org/a.csv?b=…"),
    ("postgresql://me:{secret}@{host}/db", "postgresql://{host}/db"),
    ("postgresql://{secret}@{host}/db#public.t", "postgresql://{host}/db#public.t"),
    ("postgresql://me:{secret}@{host},h2:5433/db", "{host},h2:5433/db"),
    ("postgresql://{host}/db?user=me&password={secret}", "{host}/db?user=…&password=…"),
    ("mysql+pymysql://me:{secret}@{host}/db?charset=utf8", "mysql+pymysql://…@{host}/db?charset=…"),
    ("mysql://{host}/db#access_token={secret}", "{host}/db#…"),
    ("mssql+pyodbc:///?odbc_connect=DRIVER%3Dx%3BPWD%3D{secret}", "mssql+pyodbc:///?odbc_connect=…"),
    ("snowflake://me:{secret}@{host}/db/schema?warehouse=w&role=r", "{host}/db/schema?warehouse=…&role=…"),
    ("s3://KEY:{secret}@bucket/lake/a.csv", "s3://…@bucket/lake/a.csv"),
    ("s3://bucket/lake/a.csv?X-Amz-Signature={secret}", "s3://bucket/lake/a.csv?X-Amz-Signature=…"),
    ("abfs://box@{host}/lake/a.csv?sig={secret}", "abfs://box@{host}/lake/a.csv?sig=…"),
    ("sftp://me:{secret}@{host}/lake/a.csv", "sftp://…@{host}/lake/a.csv"),
    ("simplecache::s3://KEY:{secret}@bucket/a.csv", "simplecache::s3://…@bucket/a.csv"),
    ("zip://x.csv::https://me:{secret}@{host}/a.zip", "zip://x.csv::https://…@{host}/a.zip"),
    ("jdbc:postgresql://{host}/db;user=me;password={secret}", "{host}/db;user=…;password=…"),
    ("jdbc:sqlserver://{host};user=me;password={secret}", "jdbc:sqlserver://{host};user=…;password=…"),
    ("jdbc:oracle:thin:me/{secret}@//{host}/db", "jdbc:oracle:thin:…@//{host}/db"),
    ("sc://{host}/;token={secret};user_id=me", "sc://{host}/;token=…;user_id=…"),
    ("k8s://https://me:{secret}@{host}", "k8s://https://…@{host}"),
]  # fmt: skip


def holds(text, secret):
    return any(part.casefold() in text.casefold() for part in (BEGIN, END, secret))


@pytest.mark.parametrize(("form", "stays"), FORMS)
@settings(max_examples=40)
@given(secret=ENCODED, host=HOSTS)
def test_only_where_a_url_leads_is_shown(form, stays, secret, host):
    url = form.format(secret=secret, host=host)
    seen = Location(url).shown
    assert not holds(seen, secret)
    assert stays is None or stays.format(host=host) in seen
    assert Location(seen).shown == seen  # as it is found in an index
    if "@" not in seen or "…" in seen:
        assert lacks_values(seen) == ("…" in seen)


@pytest.mark.parametrize(("form", "stays"), FORMS)
@settings(max_examples=40)
@given(secret=ENCODED, host=HOSTS)
def test_a_sentence_around_a_url_does_not_tell_either(form, stays, secret, host):
    url = form.format(secret=secret, host=host)
    for sentence in (f"can't open {url} (404)", f"GET '{url}': no", f"at <{url}>; see {url}."):
        told = without_secrets(sentence)
        assert not holds(told, secret)
        assert told[:3] == sentence[:3]


UNESCAPED = [
    "postgresql://me:{secret}@{host}/db",
    "mysql://{secret}@{host}/db",
    "mysql://{secret}:x@{host}/db?a=1#t",
    "https://me:{secret}@{host}/a.csv",
    "s3://KEY:{secret}@bucket/a.csv",
    "ftp://me:{secret}@{host}/a.csv",
    "jdbc:oracle:thin:me/{secret}@//{host}/db",
    "sc://me:{secret}@{host}/;token=x",
]


@pytest.mark.parametrize("form", UNESCAPED)
@given(secret=SECRETS, host=HOSTS)
@example(secret="Zq8/12@9Xj", host="127.0.0.1:1")
@example(secret="Zq8 a#b?c=d&e:f@g;h=9Xj", host="127.0.0.1:1")
def test_a_password_that_breaks_its_url_is_not_shown(form, secret, host):
    url = form.format(secret=secret, host=host)
    assert not holds(shown_url(url), secret)
    assert (host if "{host}" in form else "bucket") in shown_url(url)


# What a person types who means a URL: the wrong marks after the scheme, or something before it.
MISTYPED = [
    " https://me:{secret}@{host}/a.csv",
    "\thttps://me:{secret}@{host}/a.csv",
    "'https://me:{secret}@{host}/a.csv",
    '"https://{host}/a.csv?token={secret}"',
    "\ufeffhttps://me:{secret}@{host}/a.csv",
    "https:/me:{secret}@{host}/a.csv",
    "https:///me:{secret}@{host}/a.csv",
    "https://///me:{secret}@{host}/a.csv",
    "https:me:{secret}@{host}/a.csv",
    "https//me:{secret}@{host}/a.csv",
    "https;//me:{secret}@{host}/a.csv",
    "https ://me:{secret}@{host}/a.csv",
    "https:// me:{secret}@{host}/a.csv",
    "https::/me:{secret}@{host}/a.csv",
    "https:://me:{secret}@{host}/a.csv",
    "https:\\\\me:{secret}@{host}/a.csv",
    "https:/{secret}@{host}/a.csv",
    "HTTPS:/me:{secret}@{host}/a.csv",
    "https:/{host}/a.csv?token={secret}",
    "https:{host}/a.csv?token={secret}",
    "s3:/KEY:{secret}@bucket/a.csv",
    "s3:///KEY:{secret}@bucket/a.csv",
    "sftp:/me:{secret}@{host}/a.csv",
    "postgresql:me:{secret}@{host}/db",
    "postgresql:/me:{secret}@{host}/db#t",
    "mysql+pymysql:/me:{secret}@{host}/db",
    "mysql:me:{secret}@{host}/db",
    "snowfake:me:{secret}@{host}/db",
    "htps:/me:{secret}@{host}/a.csv",
    "me:{secret}@{host}/db",
    "//me:{secret}@{host}/a.csv",
    "./https://me:{secret}@{host}/a.csv",
    "zip://a.csv::https:/me:{secret}@{host}/a",
    "--from=https://me:{secret}@{host}/a.csv",
    "https:/me:{secret}@{host}/a?u=https://me:{secret}@{host}/b",
]
IN_WORDS = [form for form in MISTYPED if not form.startswith(("me:", "//"))]


@pytest.mark.parametrize("form", MISTYPED)
@given(secret=ENCODED, host=HOSTS)
def test_a_mistyped_url_is_known_and_does_not_show_its_secret(form, secret, host):
    text = form.format(secret=secret, host=host)
    assert is_mistyped(text) or form.startswith("zip:")
    seen = Location(text).shown
    assert not holds(seen, secret)
    assert Location(seen).shown == seen
    secrets = Secrets.of(text)
    for word in (unquote(secret), secret, text):
        assert not holds(secrets.hide(f"error near {word} in line 7"), secret)


@pytest.mark.parametrize("form", IN_WORDS)
@given(secret=ENCODED, host=HOSTS)
def test_nor_does_a_sentence_around_a_mistyped_url(form, secret, host):
    text = form.format(secret=secret, host=host)
    as_a_path = [f"no /work/{text}"] if form.startswith(("https:/", "s3:/", "postgresql:")) else []
    for sentence in (f"can't open {text} (404)", f"GET '{text}': no", *as_a_path):
        assert not holds(without_secrets(sentence), secret)


@pytest.mark.parametrize("form", [form for form in MISTYPED if "@" in form and "zip:" not in form])
@given(secret=SECRETS, host=HOSTS)
def test_a_mistyped_url_hides_whatever_a_password_holds(form, secret, host):
    assert not holds(Location(form.format(secret=secret, host=host)).shown, secret)


def written(secret):
    encoded = quote(secret, safe="")
    coded = encoded, encoded.lower(), quote_plus(secret)
    return [secret, *coded, repr(secret), json.dumps(secret), secret.upper()]


@pytest.mark.parametrize(("form", "stays"), FORMS)
@settings(max_examples=40)
@given(secret=SECRETS)
def test_whatever_a_library_says_of_what_was_given_is_hidden(form, stays, secret):
    url = form.format(secret=quote(secret, safe=""), host="h.example.org")
    secrets = Secrets.of(url)
    is_a_user = any(mark in form for mark in ("//{secret}", "me/{secret}"))  # hidden where it stands alone
    for word in written(secret):
        told = secrets.hide(f"error near {word} in line 7" + (f"; and{word}again" if not is_a_user else ""))
        assert not holds(told, secret)
        assert told.startswith("error near ")


@given(user=st.text("abcxyz", min_size=1, max_size=3), secret=st.text("abcxyz019", min_size=1, max_size=3))
def test_short_secrets_are_hidden_as_words(user, secret):
    assume(not {user, secret} & {"for", "at", "no"})
    told = Secrets.of(f"https://{user}:{secret}@host/a.csv").hide(
        f"no '{secret}' for {user} at {user}:{secret}"
    )
    assert told == "no '…' for … at …" or told == "no '…' for … at …:…"


@pytest.mark.parametrize(
    "text",
    [
        "/data/a:b@c.csv", "/data/year=2013;pwd=1/a?b=c#d.csv", "s3://bucket/a@b:c.csv", "pwd=1/a.csv",
        "s3://bucket/20??/m=1?/a#1.csv", "https://x.org:8080/a@b.csv", "iceberg:lake.a.t", "shop.sqlite#sold",
        "sqlite:////home/a@b/shop.db#sold", 'postgresql://h:1,[::1]:2/db#public."a b"', "memory://lake/a;b.csv",
        "s3://arn:aws:s3:us-west-2:123:accesspoint/x", "abfs://box@account.dfs.core.windows.net/a.csv",
        "hf://datasets/me/it@main/a.csv", "spark:lake.t", "zip://x.csv::memory://a.zip",
    ],
)  # fmt: skip
def test_a_source_without_a_secret_is_shown_as_it_is(text):
    assert Location(text).shown == text
    assert not lacks_values(text)
    assert not Secrets.of(text)
    assert not is_mistyped(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("no DRIVER={x y};UID=sa;PWD={a;b} here", "no DRIVER=…;UID=…;PWD=…"),
        ("Data Source=h;Password=my pw;Encrypt=yes", "Data Source=…;Password=…;Encrypt=…"),
        ("ATTACH 'host=h password=hush'", "ATTACH 'host=h password=…'"),
        ("{'Authorization': 'Basic dTpwYXNz'}", "{'Authorization': 'Basic …'}"),
        ("CREATE USER a PASSWORD 'hush'", "CREATE USER a PASSWORD …"),
        ('{"secret_key": "hush", "b": 1}', '{"secret_key": …, "b": 1}'),
        ("/data/pass=1/token=2/a.csv: no such file", "/data/pass=1/token=2/a.csv: no such file"),
        ("no password supplied; give it", "no password supplied; give it"),
        ("spark://h:7077: refused", "spark://h:7077: refused"),
    ],
)
def test_secrets_are_known_by_their_looks_where_nothing_was_given(text, told):
    assert without_secrets(text).removesuffix(" here") == told


@pytest.mark.parametrize("text", ["a" * 200_000, "://" * 60_000, "a://b:" * 30_000 + "@", "x=1;" * 50_000])
def test_long_texts_are_told_in_short(text):
    assert len(without_secrets(f"= {text}")) <= 2_000


def test_credentials_of_the_environment_are_not_told(monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "abc/def+hush")
    monkeypatch.setenv("PGPASSWORD", "hush-hush")
    monkeypatch.setenv("HTTPS_PROXY", "http://me:proxyhush@proxy:8080")
    monkeypatch.setenv("PGPASSFILE", "/home/me/.pgpass")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", __file__)
    said = f"abc/def+hush abc%2Fdef%2Bhush hush-hush proxyhush /home/me/.pgpass {__file__}"
    assert Secrets.of("/data/a.csv").hide(said) == f"… … … … /home/me/.pgpass {__file__}"
