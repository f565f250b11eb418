"""A text that stands for a formula where it is saved: readable, and never much longer than the formula is large."""

from __future__ import annotations

from dualogic.formula.node import Node
from dualogic.formula.printing import TEXT_LIMIT, to_rope
from dualogic.formula.shape import format_count


def fingerprint(node: Node) -> str:
    """The text of a node; of one that is too long to be written out, its beginning and a digest of its parts.

    Example:
        >>> import dualogic as dl
        >>> fingerprint(dl.var("x") <= 1)
        'x <= 1'
    """
    rope = to_rope(node)
    if rope.length <= TEXT_LIMIT:
        return rope.start(rope.length)
    return f"{rope.start(100)}... ({format_count(rope.length)} characters, sha256 of the parts {rope.digest()})"


def stands_for(text: str, node: Node) -> bool:
    """Whether a saved text is that of a node: its fingerprint, or all of its text, which was saved whatever its length once."""
    if len(text) <= TEXT_LIMIT:
        return text == fingerprint(node)
    rope = to_rope(node)
    return len(text) == rope.length and text == rope.start(rope.length)
