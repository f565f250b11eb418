"""Ways in which a file can be damaged, for JSON files and for any other."""

import json
import os
import random


def flip_a_bit(content, draw):
    place = draw.randrange(len(content))
    return content[:place] + bytes([content[place] ^ (1 << draw.randrange(8))]) + content[place + 1 :]


ANY_FILE = {
    "empty": lambda content, draw: b"",
    "cut off": lambda content, draw: content[: draw.randrange(1, len(content))],
    "a flipped bit": flip_a_bit,
    "zeros": lambda content, draw: bytes(len(content)),
    "noise": lambda content, draw: draw.randbytes(len(content)),
    "half of it twice": lambda content, draw: content[: len(content) // 2] * 2,
    "a hole": lambda content, draw: content[: len(content) // 3] + bytes(64) + content[len(content) // 3 + 64 :],
}
"""By name, a function of the content and of random draws."""

VALUES = [None, True, 0, -1, 1e400, 10**400, "text", "", [], {}, [[1]], {"name": []}, {"epoch": None}]
TEXTS = {
    "Latin-1": '{"task": "é"}'.encode("latin-1"),
    "nested too deeply": b"[" * 100_000,
    "a list": b"[1, 2]",
    "null": b"null",
    "a number too long to read": b"1" * 10_000,
    "not a number": b"NaN",
    "another object": b'{"half": 1}',
    "no object keys": b"{1: 2}",
}


def change_a_value(content, draw):
    """The same JSON with one value, at any depth, replaced or removed."""
    value = json.loads(content)
    owner = value
    while True:
        keys = list(owner) if isinstance(owner, dict) else list(range(len(owner)))
        if not keys:
            return json.dumps(value).encode()
        key = draw.choice(keys)
        if isinstance(owner[key], (dict, list)) and owner[key] and draw.random() < 0.6:
            owner = owner[key]
            continue
        if draw.random() < 0.3:
            del owner[key]
        else:
            owner[key] = draw.choice(VALUES)
        return json.dumps(value).encode()


def put_a_pipe(path):
    path.unlink()
    os.mkfifo(path)


def put_a_folder(path):
    path.unlink()
    path.mkdir()


def put_a_sparse_giant(path):
    path.write_bytes(b"")
    os.truncate(path, 1 << 36)


INSTEAD = {"a pipe": put_a_pipe, "a folder": put_a_folder, "a sparse giant": put_a_sparse_giant}
"""By name, a function that replaces a file by something else."""


def damage(path, kind, seed):
    """Damage a file in the named way; a kind is a key of any table above, or ``"a changed value"``."""
    draw = random.Random(f"{kind} {seed}")
    if kind in INSTEAD:
        INSTEAD[kind](path)
    elif kind in TEXTS:
        path.write_bytes(TEXTS[kind])
    elif kind == "a changed value":
        lines = path.read_bytes().splitlines() if path.suffix == ".jsonl" else [path.read_bytes()]
        place = draw.randrange(len(lines))
        lines[place] = change_a_value(lines[place], draw)
        path.write_bytes(b"\n".join(lines) + b"\n")
    else:
        path.write_bytes(ANY_FILE[kind](path.read_bytes(), draw))


KINDS_OF_JSON = [*ANY_FILE, *TEXTS, *INSTEAD, "a changed value"]
KINDS = [*ANY_FILE, *INSTEAD]
