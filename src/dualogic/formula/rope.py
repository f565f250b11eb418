"""Texts that share their parts."""

from __future__ import annotations

import hashlib


class Rope:
    """A text as the sequence of its parts, texts and ropes, which may be parts of others too.

    Its length is known without writing it out: a part that is used twice is counted twice and kept once.
    """

    __slots__ = ("length", "parts")

    def __init__(self, *parts: str | Rope) -> None:
        self.parts = parts
        self.length: int = sum(len(part) if isinstance(part, str) else part.length for part in parts)

    def start(self, limit: int) -> str:
        """The first ``limit`` characters."""
        found: list[str] = []
        stack: list[str | Rope] = [self]
        while stack and limit > 0:
            part = stack.pop()
            if isinstance(part, str):
                found.append(part[:limit])
                limit -= len(part)
            else:
                stack.extend(reversed(part.parts))
        return "".join(found)

    def digest(self) -> str:
        """A fingerprint that two ropes of the same parts have in common, in a time that is linear in what is kept."""
        done: dict[int, bytes] = {}
        stack: list[Rope] = [self]
        while stack:
            rope = stack[-1]
            lacking = [part for part in rope.parts if isinstance(part, Rope) and id(part) not in done]
            if lacking and id(rope) not in done:
                stack.extend(lacking)
                continue
            stack.pop()
            whole = hashlib.sha256()
            for part in rope.parts:
                whole.update(b"text" + hashlib.sha256(part.encode()).digest() if isinstance(part, str) else done[id(part)])
            done[id(rope)] = whole.digest()
        return done[id(self)].hex()
