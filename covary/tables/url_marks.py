"""Marks that tell URLs apart which differ only in values that are hidden.

A mark is a keyed digest of the values. The key lies with the user, outside of every index, so that an index
says nothing of the values to anybody who would try all that they can be.
"""

import errno
import hmac
import os
import secrets
from contextlib import suppress
from functools import cache
from hashlib import sha256
from json import dumps
from pathlib import Path

from covary.errors import CovaryError
from covary.secrets import bare_url, values_told_apart

KEY_BYTES = 32
MARK_DIGITS = 8


def make_mark(url: str, make_key: bool = True) -> str:
    """Return what tells a URL from others of the same names; "" if all of it that counts is shown.

    If this user has no key, it is made; where it is not to be made, there is no mark.
    """
    values = values_told_apart(url)
    key = _find_key(make_key) if values else None
    if key is None:
        return ""
    content = dumps([bare_url(url), *values]).encode()
    return hmac.new(key, content, sha256).hexdigest()[:MARK_DIGITS]


def find_state_folder() -> Path:
    """Return where this user's programs keep what they must remember; there is none without a home."""
    named = os.environ.get("XDG_STATE_HOME", "")
    folder = named if os.path.isabs(named) else os.path.expanduser("~/.local/state")
    if not os.path.isabs(folder):
        raise FileNotFoundError(errno.ENOENT, "there is no home folder")
    return Path(folder, "covary")


def _find_key(make: bool) -> bytes | None:
    try:
        file = find_state_folder() / "key"
        return _read_key(file) or (_make_key(file) if make else None)
    except OSError as problem:
        if not make:
            return None
        where = f" in {problem.filename}" if problem.filename else ""
        raise CovaryError(
            f"can't keep the key{where} by which URLs are told apart whose parameters differ "
            f"({problem.strerror}); set XDG_STATE_HOME to a folder that you can write to"
        ) from None


@cache
def _read_key(file: Path) -> bytes | None:
    return file.read_bytes() if file.exists() else None


def _make_key(file: Path) -> bytes | None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = file.with_name(f"key-{secrets.token_hex(8)}")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(handle, "wb") as writing:
            writing.write(secrets.token_bytes(KEY_BYTES))
        with suppress(FileExistsError):
            os.link(fresh, file)  # all at once, and never over one that another process has made
    finally:
        fresh.unlink()
    _read_key.cache_clear()
    return _read_key(file)
