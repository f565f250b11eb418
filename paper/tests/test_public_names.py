"""The reproduction stands on the library's public names: of the package itself, and of its rooms."""

import ast
import importlib
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
LIBRARY = Path(__file__).parents[2] / "src" / "dualogic"


def imports():
    """Module and name of everything that is imported from dualogic, wherever in a file, with its place."""
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "dualogic":
                yield from ((f"{file.relative_to(SOURCE)}:{node.lineno}", node.module, alias.name) for alias in node.names)
            elif isinstance(node, ast.Import):
                found = (alias.name for alias in node.names if alias.name.startswith("dualogic."))
                yield from ((f"{file.relative_to(SOURCE)}:{node.lineno}", name, None) for name in found)


def is_public(module, name):
    if module.count(".") > 1 or any(part.startswith("_") for part in module.split(".")):
        return False
    public = getattr(importlib.import_module(module), "__all__", None)
    if module == "dualogic":
        public = [*public, "__version__", *(path.parent.name for path in LIBRARY.glob("*/__init__.py"))]
    if module == "dualogic.errors":
        public = [key for key in vars(importlib.import_module(module)) if key[0] != "_"]
    return public is not None and (name is None or name in public)


def test_only_public_names_are_used():
    found = list(imports())
    assert len(found) > 50
    assert [place for place, module, name in found if not is_public(module, name)] == []


def test_a_private_name_is_found():
    assert not is_public("dualogic.loss.checkpoint", "State")
    assert not is_public("dualogic.loss", "checkpoint")
    assert is_public("dualogic", "LogicLoss")
