"""Secrets in URLs, and in sentences that hold URLs, kept out of the index, of logs and of the screen."""

import re
from urllib.parse import unquote

_NAMES = r"[\w.-]*(?:sig|token|secret|passw|passphrase|pwd|credential|auth|key)[\w.-]*"
_PARAMETER = re.compile(rf"(?i)([?&;])({_NAMES})=[^&;#\s'\"]*")
_PASSWORD = re.compile(r"(?<=://)([^/?#@\s:]*):[^/?#\s]*@")
# With marks in it that should have been written as %2F and the like. A port is no password.
_ODD_PASSWORD = re.compile(r"(?<=://)([^/?#@\s:\[]*):(?!\d+(?:[/?\s]|$))\S*@")
_TOKEN = re.compile(r"(?i)(https?://)[^/?#@\s]*@")  # on the web, a name alone may be one


def without_secrets(text: str) -> str:
    """Return a URL, or a sentence that holds some, as it may be shown: no password, no signature."""
    if "://" not in text and "=" not in text:  # as nearly all paths are
        return text
    text = _TOKEN.sub(r"\1", _ODD_PASSWORD.sub(r"\1@", _PASSWORD.sub(r"\1@", text)))
    return _PARAMETER.sub(r"\1\2=…", text)


def without_secrets_of(url: str, text: str) -> str:
    """Return what somebody said about a URL as it may be shown: without the password that is in it."""
    authority = url.partition("://")[2].rpartition("@")[0]
    password = authority.partition(":")[2]
    for secret in {password, unquote(password)} - {""}:
        text = text.replace(secret, "…")
    return without_secrets(text)
