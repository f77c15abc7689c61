"""Which request carries which credential, and what a wrong file is told without quoting it."""

import base64

import pytest

from tamias.crawl.plan.fetch_options import with_own_credentials
from tamias.fetch.credentials import WITHHELD, load_credentials
from tamias.model.errors import ConfigError
from tamias.settings import FetchSettings, Settings

SECRET = "hush-hush-42"
WHOLE = f'[[credentials]]\nurl = "https://Data.example.org:443"\ntoken = "{SECRET}"\n'


@pytest.fixture
def load(tmp_path):
    def loaded(text, mode=0o600, **environment):
        file = tmp_path / "credentials.toml"
        file.write_text(text)
        file.chmod(mode)
        return load_credentials([str(file)], environment)

    return loaded


def headers(credentials, url):
    found = credentials.covering(url)
    return None if found is None else found.headers_for(url, None)


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("https://data.example.org/", True),
        ("https://data.example.org/a?b", True),
        ("https://data.example.org/robots.txt", True),
        ("http://data.example.org/", False),
        ("https://data.example.org:8443/", False),
        ("https://www.data.example.org/", False),
        ("https://example.org/", False),
        ("https://data.example.org.evil.example/", False),
        ("https://evil.example/https://data.example.org/", False),
        ("https://evil.example/?https://data.example.org/", False),
        ("https://data.example.org./", False),
        ("ftp://data.example.org/", False),
    ],
)
def test_only_the_same_scheme_host_and_port_get_it(load, url, sent):
    assert headers(load(WHOLE), url) == ((b"Authorization: Bearer hush-hush-42",) if sent else None)


def test_the_longest_path_is_used_alone(load):
    text = WHOLE + '[[credentials]]\nurl = "https://data.example.org/api/"\ncookies = { s = "in-the-api" }\n'
    credentials = load(text)
    assert headers(credentials, "https://data.example.org/api/x") == (b"Cookie: s=in-the-api",)
    assert headers(credentials, "https://data.example.org/apis") == (b"Authorization: Bearer hush-hush-42",)


def test_each_way_to_sign_in_is_a_header(load):
    text = """[[credentials]]
url = "http://a.example/"
user = "mole"
password = { env = "TAMIAS_CREDENTIAL_A" }
headers = { X-Api-Key = "key-of-a" }
cookies = { one = "1-cookie", two = "2-cookie" }
"""
    packed = base64.b64encode(b"mole:" + SECRET.encode())
    assert headers(load(text, TAMIAS_CREDENTIAL_A=SECRET), "http://a.example/x") == (
        b"X-Api-Key: key-of-a",
        b"Authorization: Basic " + packed,
        b"Cookie: one=1-cookie; two=2-cookie",
    )


def test_what_a_response_repeats_is_withheld(load):
    credential = load(WHOLE).covering("https://data.example.org/")
    told = [("Set-Cookie", "session=new"), ("Link", f"</?k={SECRET}>"), ("ETag", '"a"')]
    assert credential.redacted(told) == (("Set-Cookie", WITHHELD), ("Link", WITHHELD), ("ETag", '"a"'))


@pytest.mark.parametrize(
    "repeated",
    [
        "https://cdn.example/?key=k-1/345 ä78",
        "https://cdn.example/?key=k-1%2F345",
        "https://cdn.example/?key=k-1%2f345&b",
        "https://cdn.example/k-1/345",
        "k-1%2f345+%c3%a478",
        "k-1/345+%E478",
        base64.b64encode(b"k-1/345").decode(),
        base64.b64encode(b"k-1/345").decode().rstrip("="),
    ],
)
def test_the_secret_part_of_a_header_is_withheld_too_however_it_is_written(load, repeated):
    text = WHOLE.replace(f'token = "{SECRET}"', 'headers = { Authorization = "Token k-1/345 ä78" }')
    credential = load(text).covering("https://data.example.org/")
    assert credential.redacted([("Location", repeated)]) == (("Location", WITHHELD),)


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        ("Bearer abcdefgh", ["abcdefgh"]),
        ("Basic YWJjZGVmZ2g=", ["YWJjZGVmZ2g"]),
        ('Signature keyIdentifier="id-of-key", signature="c2lnbmF0dXJl=="', ["id-of-key", "c2lnbmF0dXJl"]),
    ],
)
def test_the_public_words_of_a_header_are_no_secrets(load, value, parts):
    text = WHOLE.replace(f'token = "{SECRET}"', f"headers = {{ Authorization = '{value}' }}")
    credential = load(text).covering("https://data.example.org/")
    public = ["Bearer realm", "Basic realm", "/signature/", "/keyIdentifier/", "short"]
    told = [("Location", each) for each in (*public, *parts)]
    assert [value for _, value in credential.redacted(told)] == [*public, *(WITHHELD for _ in parts)]


def test_a_session_cookie_that_is_given_as_a_header_is_withheld_by_its_value(load):
    text = WHOLE.replace(f'token = "{SECRET}"', 'headers = { Cookie = "session=abcdefgh; b=ijklmnop" }')
    credential = load(text).covering("https://data.example.org/")
    told = [("Location", "/session"), ("Location", "/?s=abcdefgh"), ("Location", "/ijklmnop")]
    assert [value for _, value in credential.redacted(told)] == ["/session", WITHHELD, WITHHELD]


def test_a_far_worker_with_a_credential_takes_no_addresses_from_the_service(load, tmp_path):
    """Curl compares names without case, final dot and brackets, so no comparison of ours would do."""
    load(WHOLE)
    told = Settings(fetch=FetchSettings(resolve=("DATA.example.org:10.0.0.1", "data.example.org.:10.0.0.1")))
    assert with_own_credentials(told, ()).fetch.resolve == told.fetch.resolve
    own = with_own_credentials(told, (str(tmp_path / "credentials.toml"),))
    assert own.fetch.resolve == ()


def test_a_file_that_others_can_read_is_refused_unless_it_holds_no_value(load):
    with pytest.raises(ConfigError, match="chmod 600"):
        load(WHOLE, mode=0o640)
    named = WHOLE.replace(f'"{SECRET}"', '{ env = "TAMIAS_CREDENTIAL_A" }')
    assert load(named, mode=0o644, TAMIAS_CREDENTIAL_A=SECRET).hosts == {"data.example.org"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f'token = "{SECRET}', "not TOML"),
        (f'secret = "{SECRET}"', r"has no \[\[credentials\]\]"),
        (WHOLE.replace("token", "tokn"), "unknown field `tokn`"),
        (WHOLE.replace("https", "ftp"), r"must be http\(s\)://HOST\[/PATH\], without user"),
        (WHOLE.replace("://", f"://mole:{SECRET}@"), "data.example.org"),
        (WHOLE.replace("://", f"://mole:{SECRET}@").replace("443", "bad"), "without user"),
        (WHOLE.replace("://", f":mole:{SECRET}@").replace("443", "bad"), "without user"),
        (WHOLE.replace(':443"', f'/?key={SECRET}"'), "query or fragment"),
        (WHOLE.replace(SECRET, SECRET + "\\n"), "cannot be sent"),
        (WHOLE.replace("token", "password"), "belong together"),
        (WHOLE.replace(f'token = "{SECRET}"', ""), "has no user, token"),
        (WHOLE + WHOLE, "two"),
        (WHOLE + f'headers = {{ Authorization = "{SECRET}" }}', "twice"),
        (WHOLE + f'headers = {{ Host = "{SECRET}" }}', "Host.* header"),
        (WHOLE + f'headers = {{ "A: b" = "{SECRET}" }}', "A: b.* header"),
        (WHOLE + f'cookies = {{ a = "{SECRET}; b=c" }}', "no cookie may have"),
        (WHOLE + f'user = "a:b"\npassword = "{SECRET}"', "colon"),
        (WHOLE.replace(f'"{SECRET}"', '{ env = "HOME" }'), "must begin with TAMIAS_CREDENTIAL_"),
        (WHOLE.replace(f'"{SECRET}"', '{ env = "TAMIAS_CREDENTIAL_B" }'), "is not set"),
        (WHOLE.replace(f'"{SECRET}"', "42"), "at `.*token`"),
    ],
)
def test_a_wrong_file_is_explained_without_what_it_holds(load, text, told):
    with pytest.raises(ConfigError, match=told) as raised:
        load(text)
    assert SECRET not in str(raised.value)
    assert raised.value.exit_code == 4


def test_nothing_shows_a_value(load):
    credentials = load(WHOLE)
    shown = [credentials, credentials.covering("https://data.example.org/")]
    assert SECRET not in repr(shown)
