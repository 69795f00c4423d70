"""Compiled loops, and where the machine code is kept.

Numba keeps code beside the file that a loop stands in, and renews it when that file changes; it does not
notice that another file changed whose loops are called. So the code is kept under a digest of all such files.
In a zip it is kept by the zip's path: a zip of covary is named by its content.
"""

import os
import re
from collections.abc import Callable, Collection, Iterator
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np

HERE = files("covary")
IMPORTED = re.compile(rb"^from (covary[\w.]+) import", re.MULTILINE)
unsigned = np.uint64  # a position without a sign needs no check for a negative one
Loop = TypeVar("Loop", bound=Callable[..., Any])


def compiled(loop: Loop, fastmath: Collection[str] = ()) -> Loop:
    """Compile a loop when it is first called, once on a machine."""
    options: Any = {"nogil": True, "fastmath": set(fastmath) or False}
    settings: Any = numba.config
    wanted_by_user = settings.CACHE_DIR
    if isinstance(HERE, Path):
        settings.CACHE_DIR = wanted_by_user or str(HERE / "__pycache__" / f"compiled-{_DIGEST}")
    try:
        code = numba.njit(cache=_CAN_KEEP, **options)(loop)
    except RuntimeError:  # no folder can be written to: it is compiled in every process
        code = numba.njit(**options)(loop)
    finally:
        settings.CACHE_DIR = wanted_by_user
    return cast(Loop, code)


def adding_in_any_order(loop: Loop) -> Loop:
    """Compile a loop whose sums may be added in any order, and so several at a time."""
    return compiled(loop, {"reassoc", "contract", "nsz"})


def unnamed(value: Any) -> Any:
    """Take the names off nested tuples: of named ones Numba works out the types anew at every call."""
    return tuple(map(unnamed, value)) if isinstance(value, tuple) else value


def _can_keep() -> bool:
    """Whether code can be kept; of a folder Numba finds out itself, of a zip it takes it for granted."""
    if isinstance(HERE, Path):
        return True
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(home, os.W_OK | os.X_OK)


def _code_of_loops() -> Iterator[bytes]:
    """Read the files that loops stand in, and those from which they take other loops and constants."""
    content = dict(_files_below(HERE, "covary"))
    loops = {
        name for name, code in content.items() if b"from covary.compiled import" in code or name == __name__
    }
    used = {module.decode() for name in loops for module in IMPORTED.findall(content[name])}
    yield from (content[name] for name in sorted(loops | used & content.keys()))


def _files_below(folder: Traversable, package: str) -> Iterator[tuple[str, bytes]]:
    for item in folder.iterdir():
        if item.name.endswith(".py"):
            yield f"{package}.{item.name.removesuffix('.py')}", item.read_bytes()
        elif item.is_dir():
            yield from _files_below(item, f"{package}.{item.name}")


_CAN_KEEP = _can_keep()
_DIGEST = sha256(b"".join(_code_of_loops())).hexdigest()[:16]
