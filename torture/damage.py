"""Good bytes to bad ones: as disks and careless programs damage them, or somebody who knows the format."""

import struct
from collections.abc import Callable, Sequence

import numpy as np

Rng = np.random.Generator
Damage = Callable[[Rng, bytearray], None]
CONTROLS = b"\x00\x01\x07\x08\x0b\x0c\x0d\x1a\x1b\x7f\xff\xfe\xc0\x80\xed\xa0\x80"
ODD_TEXT = [
    b'"', b"'", b'""', b'","', b'"\n', b'\n"', b",", b";", b"\t", b"|", b"\n\n\n", b"\r", b"\r\n", b"\\",
    b"\\n", b"1e999",
    b"-1e-999", b"NaN", b"-inf", b"0x7fffffff", b"9" * 400, b"-" + b"1" * 40 + b"." + b"3" * 40,
    b"=cmd|' /C calc'!A0", b"1/1/1/1/1/1", b"0000-00-00", b"99999-13-32", b"24:61:61", b"1,2,3,4.5.6.7",
    "\u2028\u202e\ufeff\u0301".encode(), "１２３".encode(), "٣٫١٤".encode(), b"(((((", b"$$$$",
    b"....", b",,,,,,,",
    b"\x1b[31mred\x1b[0m", b"' OR 1=1 --", b"{", b"}", b"[", b"]", b":", b"null", b"true",
]  # fmt: skip
NUMBERS = (0, 1, 2, -1, 127, 128, 255, 256, 1 << 15, (1 << 15) - 1, 1 << 16, (1 << 31) - 1, -(1 << 31), -2)


def flip_bits(rng: Rng, content: bytearray) -> None:
    for _ in range(int(rng.geometric(0.3))):
        content[rng.integers(len(content))] ^= 1 << rng.integers(8)


def cut(rng: Rng, content: bytearray) -> None:
    start = int(rng.integers(len(content)))
    match rng.integers(4):
        case 0:
            del content[start:]
        case 1:
            del content[: start // 2]
        case 2:
            del content[start : start + int(rng.integers(1, 200))]
        case _:
            del content[-int(rng.integers(1, 64)) :]


def repeat(rng: Rng, content: bytearray) -> None:
    start = int(rng.integers(len(content)))
    piece = bytes(content[start : start + int(rng.integers(1, 400))])
    at = int(rng.integers(len(content)))
    content[at:at] = piece * int(rng.integers(1, 20))


def swap(rng: Rng, content: bytearray) -> None:
    length = int(rng.integers(1, max(2, len(content) // 4)))
    a, b = (int(at) for at in rng.integers(max(1, len(content) - length), size=2))
    content[a : a + length], content[b : b + length] = content[b : b + length], content[a : a + length]


def insert_controls(rng: Rng, content: bytearray) -> None:
    for _ in range(int(rng.integers(1, 6))):
        at, mark = int(rng.integers(len(content))), int(rng.integers(len(CONTROLS)))
        content[at:at] = CONTROLS[mark : mark + int(rng.integers(1, 4))] * int(rng.integers(1, 9))


def overwrite(rng: Rng, content: bytearray) -> None:
    start, length = int(rng.integers(len(content))), int(rng.integers(1, 600))
    noise = (bytes(length), b"\xff" * length, rng.bytes(length))[rng.integers(3)]
    content[start : start + length] = noise[: len(content) - start]


def alter_number(rng: Rng, content: bytearray) -> None:
    """Write another number where one may be: a length, an offset, a count."""
    form = ["<i", "<q", ">i", ">q", "<h", "<b"][rng.integers(6)]
    size = struct.calcsize(form)
    near_end = rng.random() < 0.5
    span = min(len(content), 400 if near_end else len(content)) - size
    if span <= 0:
        return
    at = len(content) - size - int(rng.integers(span)) if near_end else int(rng.integers(span))
    number = (
        int(NUMBERS[rng.integers(len(NUMBERS))])
        if rng.random() < 0.8
        else int(rng.integers(-(1 << 62), 1 << 62))
    )
    bits = 8 * size
    content[at : at + size] = (number % (1 << bits)).to_bytes(size, "little" if form[0] == "<" else "big")


def alter_footer(rng: Rng, content: bytearray) -> None:
    """Change the length at the end of Parquet (before PAR1) and Arrow (before ARROW1), or what it counts."""
    tail = 8 if content[-4:] == b"PAR1" else 10
    if len(content) < tail + 8:
        return
    at = len(content) - tail
    length = int.from_bytes(content[at : at + 4], "little")
    if rng.random() < 0.5:
        wrong = int(
            rng.choice([0, 1, length - 1, length + 1, length * 2, len(content), 1 << 30, (1 << 32) - 1])
        )
        content[at : at + 4] = (wrong % (1 << 32)).to_bytes(4, "little")
    elif 0 < length < at:
        for _ in range(int(rng.integers(1, 5))):
            content[at - 1 - int(rng.integers(length))] = int(rng.choice([0, 1, 0x15, 0x7F, 0x80, 0xFF]))


def odd_text(rng: Rng, content: bytearray) -> None:
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(content)))
        piece = ODD_TEXT[rng.integers(len(ODD_TEXT))]
        content[at:at] = piece if rng.random() < 0.8 else piece * int(rng.integers(2, 3000))


def odd_cell(rng: Rng, content: bytearray) -> None:
    """Put something odd where a cell begins, in a line of its own choice."""
    marks = [position for position, byte in enumerate(content) if byte in b',;\t|"\n']
    if marks:
        at = int(marks[rng.integers(len(marks))]) + 1
        content[at:at] = ODD_TEXT[rng.integers(len(ODD_TEXT))]


def odd_line(rng: Rng, content: bytearray) -> None:
    """Lose, double, join or widen a line."""
    lines = bytes(content).split(b"\n")
    at = int(rng.integers(len(lines)))
    match rng.integers(5):
        case 0:
            del lines[at]
        case 1:
            lines[at : at + 1] = [lines[at]] * int(rng.integers(2, 50))
        case 2:
            lines[at : at + 2] = [b"".join(lines[at : at + 2])]
        case 3:
            lines[at] += b",extra" * int(rng.integers(1, 300))
        case _:
            lines[at : at + 1] = [b"[" * 3000 + b"]" * 3000, lines[at]]
    content[:] = b"\n".join(lines)


ANY: Sequence[Damage] = (flip_bits, cut, repeat, swap, insert_controls, overwrite)
TEXT: Sequence[Damage] = (*ANY, odd_text, odd_cell, odd_cell, odd_line)
BINARY: Sequence[Damage] = (*ANY, alter_number, alter_number, alter_footer)


def damaged(rng: Rng, content: bytes, ways: Sequence[Damage]) -> tuple[bytes, str]:
    """Damage bytes in one to three ways; return them and what was done."""
    altered, done = bytearray(content), []
    for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
        if not altered:
            break
        way = ways[rng.integers(len(ways))]
        way(rng, altered)
        done.append(way.__name__)
    return bytes(altered), " and ".join(done)
