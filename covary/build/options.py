"""What a person may choose of a build: the settings of an index, what to trust of one, and who builds it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from covary.columns.key_text import NORMALISERS, choose_normaliser
from covary.errors import CovaryError
from covary.index.manifest import Manifest
from covary.pipeline.limits import DEFAULT_LIMITS, Limits
from covary.pipeline.runner import Runner
from covary.sketching.key_columns import SEPARATOR
from covary.sketching.open_table import KeyName
from covary.sketching.sketch_types import DEFAULT_SIZE, SketchConfig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_HASH = "xxhash64"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """What a person chose of a build; see `build_index`.

    The settings of an index are chosen when it is made, and are the same ever after. None: as the index was
    made, or the default.
    """

    size: int | None = None
    aggregates: str | Sequence[str] | None = None
    keys: Sequence[KeyName] | None = None
    values: Sequence[str] | None = None
    hash: str | None = None
    key_text: str | None = None
    fresh: bool = False
    keep_missing: bool = False
    checksum: bool = False
    repair: bool = False
    trust_sources: bool = False
    runner: Runner | str | None = None
    spark: "SparkSession | None" = None
    master: str | None = None
    remote: str | None = None
    limits: Limits = DEFAULT_LIMITS

    def new_manifest(self) -> Manifest:
        """Return the manifest of an index that holds nothing yet."""
        chosen = (self.aggregates,) if isinstance(self.aggregates, str) else self.aggregates
        hash = DEFAULT_HASH if self.hash is None else self.hash
        config = SketchConfig(
            DEFAULT_SIZE if self.size is None else self.size,
            ("mean",) if chosen is None else tuple(dict.fromkeys(chosen)),
            hash,
            choose_normaliser(self.key_text, hash),
        )
        keys = tuple(key if isinstance(key, str) else SEPARATOR.join(key) for key in self.keys or ())
        return Manifest(config, (), keys=keys, values=tuple(self.values or ()))

    def require_same(self, current: Manifest, index: Path) -> Manifest:
        """Return the manifest of an index that is there; refuse settings that it was not made with."""
        asked = self.new_manifest()
        compared = {
            "size": (self.size, asked.config.size, current.config.size),
            "aggregate": (self.aggregates, asked.config.aggregates, current.config.aggregates),
            "hash": (self.hash, asked.config.hash, current.config.hash),
            "keys": (self.key_text, *(_name_key_text(each.config.normaliser) for each in (asked, current))),
            "key": (self.keys, asked.keys, current.keys),
            "value": (self.values, asked.values, current.values),
        }
        for option, (given, wanted, has) in compared.items():
            if given is not None and wanted != has:
                raise CovaryError(
                    f"{index} was made with --{option} {_show(has)}, not {_show(wanted)}: leave it out, "
                    f"or start over with --fresh"
                )
        return current


def _name_key_text(normaliser: str) -> str:
    return next((name for name, known in NORMALISERS.items() if known == normaliser), normaliser)


def _show(setting: object) -> str:
    return (", ".join(map(str, setting)) or "of any column") if isinstance(setting, tuple) else str(setting)
