"""How the text of a file is encoded, told from its first bytes: from the same bytes always the same."""

import codecs
import re
import unicodedata
from typing import NamedTuple

LOOKED_AT = 16 << 10  # bytes of lines beyond ASCII: more would not tell more
WESTERN = "cp1252"
# Whose letters stand between ASCII's. Of two that fit alike the first is taken.
LATIN = (WESTERN, "cp1250", "mac_roman", "cp850", "iso8859_2", "cp1254", "cp1257")
CJK = ("gb18030", "big5", "cp932", "euc_jp", "cp949")  # their characters may end like a delimiter
OTHER_SCRIPTS = (
    "cp1251", "koi8_r", "koi8_u", "cp866", "iso8859_5", "cp1253", "cp1255", "cp1256", "cp874", *CJK,
)  # fmt: skip
HEBREW = re.compile(rb"[\xe0-\xfa]+")
THAI = range(0xA1, 0xC0)  # consonants that each Thai word has, where Cyrillic and Greek have no letters
FITS_WELL = 0.9
NAMES = {
    "cp1250": "windows-1250 (central European)", "cp1251": "windows-1251 (Cyrillic)",
    "cp1252": "windows-1252 (western European)", "cp1253": "windows-1253 (Greek)",
    "cp1254": "windows-1254 (Turkish)", "cp1255": "windows-1255 (Hebrew)",
    "cp1256": "windows-1256 (Arabic)", "cp1257": "windows-1257 (Baltic)", "cp866": "cp866 (Cyrillic)",
    "koi8_r": "KOI8-R (Cyrillic)", "koi8_u": "KOI8-U (Cyrillic)", "iso8859_5": "ISO 8859-5 (Cyrillic)",
    "cp874": "windows-874 (Thai)", "gb18030": "GB18030 (Chinese)", "big5": "Big5 (Chinese)",
    "cp932": "Shift-JIS (Japanese)", "euc_jp": "EUC-JP (Japanese)", "cp949": "cp949 (Korean)",
    "mac_roman": "Mac Roman (western European)", "cp850": "cp850 (western European)",
    "iso8859_2": "ISO 8859-2 (central European)", "utf-16-le": "UTF-16", "utf-16-be": "UTF-16",
}  # fmt: skip


class Encoding(NamedTuple):
    """The encoding of a file."""

    name: str  # as Python knows it
    guessed: bool = False  # nothing in the file says so
    doubtful: bool = False  # and none fits well


def detect_encoding(sample: bytes) -> Encoding:
    """Tell the encoding of a file that begins with these bytes."""
    if is_ascii(sample):
        return Encoding("utf-8")
    if utf16 := utf16_byte_order(sample):
        return Encoding(utf16, guessed=not sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)))
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(sample)
    broken = text.count("\ufffd")
    if broken * 10 <= sum(map(len, re.findall(r"[^\x00-\x7f]+", text))):
        return Encoding("utf-8")
    lines = b"\n".join(line for line in re.split(rb"[\r\n]+", sample) if not line.isascii())[:LOOKED_AT]
    runs = re.findall(rb"[\x80-\xff]+", lines)
    # Accents stand alone among ASCII's letters; other scripts' letters stand together.
    if 2 * sum(len(run) for run in runs if len(run) > 2) > sum(map(len, runs)):
        return _detect_other_script(lines, runs)
    fits = {name: _measure_fit(lines, name) for name in LATIN}
    name = max(fits, key=fits.__getitem__)
    if fits[name] >= FITS_WELL:
        return Encoding(name, guessed=True)
    other = _detect_other_script(lines, runs)
    return Encoding(name, guessed=True, doubtful=True) if other.doubtful else other


def is_ascii(sample: bytes) -> bool:
    """Whether bytes are ASCII and so may go on in any encoding; zeros are of UTF-16."""
    return sample.isascii() and b"\0" not in sample


def is_recoded(name: str) -> bool:
    """Whether a byte of a longer character may look like ASCII, so that text is turned into UTF-8 first."""
    return name.startswith("utf-16") or name in CJK


def utf16_byte_order(sample: bytes) -> str | None:
    """UTF-16 by its byte order mark, or by the zero bytes that ASCII has in every other position."""
    if sample.startswith(codecs.BOM_UTF16_LE):
        return "utf-16-le"
    if sample.startswith(codecs.BOM_UTF16_BE):
        return "utf-16-be"
    zeros = sample.count(0)
    odd = sample[1::2].count(0)
    if 0.1 * zeros <= odd <= 0.9 * zeros:
        return None
    name = "utf-16-le" if odd > 0.9 * zeros else "utf-16-be"
    if zeros * 5 >= len(sample) * 2:
        return name
    # Of other scripts only delimiters, digits and line ends have zeros.
    return name if zeros * 50 > len(sample) and _is_plain(sample, name) else None


def _is_plain(sample: bytes, name: str) -> bool:
    """Whether bytes decode to lines of characters that there are."""
    try:
        text = codecs.getincrementaldecoder(name)().decode(sample)
    except UnicodeDecodeError:
        return False
    odd = sum(unicodedata.category(character) in {"Cc", "Cn", "Co"} for character in text)
    lines = text.count("\n") + text.count("\r")
    return lines > 0 and odd - lines - text.count("\t") <= 0.01 * len(text)


def _measure_fit(lines: bytes, name: str) -> float:
    """The share of the characters beyond ASCII that stand where they may if an encoding is the right one.

    A small letter may stand anywhere, a capital not after a small letter, a mark not between two letters.
    """
    text = f" {lines.decode(name, 'replace')} "
    positions = [position for position, character in enumerate(text) if character > "\x7f"]
    fitting = sum(_can_stand(*text[position - 1 : position + 2]) for position in positions)
    return fitting / max(len(positions), 1)


def _can_stand(before: str, character: str, after: str) -> bool:
    if character.isalpha() and character not in "ªº":
        return not (character.isupper() and before.islower())
    kind = unicodedata.category(character)
    if kind == "Cc" or (kind == "So" and character not in "©®°"):  # such as what boxes are drawn with
        return False
    return character in "’·\xad–" or not (before.isalpha() and after.isalpha())


def _detect_other_script(lines: bytes, runs: list[bytes]) -> Encoding:
    # Loaded only where it is needed.
    from charset_normalizer import from_bytes

    letters = b"".join(runs)
    if len(letters) >= 8 and all(map(HEBREW.fullmatch, runs)):
        return Encoding("cp1255", guessed=True)
    thai = 5 * sum(map(THAI.__contains__, letters)) > len(letters)
    candidates = [name for name in OTHER_SCRIPTS if thai or name != "cp874"]
    best = from_bytes(lines, cp_isolation=candidates).best()
    if best is None:
        return Encoding(WESTERN, guessed=True, doubtful=True)
    return Encoding(best.encoding, guessed=True)
