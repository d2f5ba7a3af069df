"""Writes docs/rooms.md, the map of the code, from the first sentence of each package and module: `python
scripts/write_rooms.py`."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "docs" / "rooms.md"
PACKAGE = ROOT / "python" / "deltaic"
CRATE = ROOT / "rust" / "src"
_HEAD = """# Rooms

This page is the map of the code: each package of Python and each module of the Rust crate, with the first
sentence of its docstring. `scripts/write_rooms.py` writes it; to change a line, change the docstring.

The tests named with a room fail if its behaviour changes. A room imports only rooms below it in the first
table (`tests/test_layering.py`), so a change of a room never needs a change of a room above it.
"""


def layers() -> list[list[str]]:
    """Returns rows of rooms from the public interface down, as in tests/test_layering.py."""
    tree = ast.parse((ROOT / "tests" / "test_layering.py").read_text(encoding="utf-8"))
    (value,) = [
        node.value
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "LAYERS"
    ]
    assert value is not None
    return [sorted(row) for row in ast.literal_eval(value)]


def sentence(text: str) -> str:
    """Returns the first sentence, on one line: up to a full stop before a capital letter, or the end of the
    paragraph."""
    paragraph = " ".join(text.strip().split("\n\n")[0].split())
    found = re.match(r"(.*?\.)(?= [A-Z`]|$)", paragraph)
    return (found[1] if found else paragraph).rstrip(".:").replace("|", "\\|") + "."


def of_python(path: Path) -> str:
    return sentence(ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "")


def of_rust(path: Path) -> str:
    lines = re.findall(r"^//! ?(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return sentence("\n".join(lines)).replace("[`", "`").replace("`]", "`")


def tests(room: str) -> str:
    """Returns the folder or file of the tests that are named after a room."""
    names = [f"tests/{room}/", f"tests/test_{room}.py"]
    return ", ".join(f"`{name}`" for name in names if (ROOT / name).exists())


def rooms() -> list[tuple[str, str, str]]:
    """Returns (path, sentence, tests) of each room of Python, top down, with the packages inside it."""
    found = []
    for row in layers():
        for room in row:
            package, module = PACKAGE / room / "__init__.py", PACKAGE / f"{room}.py"
            if package.exists():
                found.append((f"python/deltaic/{room}/", of_python(package), tests(room)))
                for inner in sorted((PACKAGE / room).rglob("*/__init__.py")):
                    inside = inner.parent.relative_to(PACKAGE).as_posix()
                    found.append((f"python/deltaic/{inside}/", of_python(inner), tests(inside)))
            elif module.exists():
                found.append((f"python/deltaic/{room}.py", of_python(module), tests(room)))
    return found


def crate() -> list[tuple[str, str]]:
    folders = [(f"rust/src/{path.parent.name}/", of_rust(path)) for path in sorted(CRATE.glob("*/mod.rs"))]
    files = [(f"rust/src/{path.name}", of_rust(path)) for path in sorted(CRATE.glob("*.rs"))]
    return [*folders, *files]


def page() -> str:
    lines = [
        _HEAD,
        "## Python, from the public interface down",
        "",
        "| room | what is here | tests |",
        "|---|---|---|",
    ]
    lines += [f"| `{path}` | {text} | {named} |" for path, text, named in rooms()]
    lines += [
        "",
        "## Rust",
        "",
        "Tests are in the files themselves or in `tests.rs` beside them.",
        "",
        "| room | what is here |",
        "|---|---|",
    ]
    lines += [f"| `{path}` | {text} |" for path, text in crate()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(page(), encoding="utf-8")
    print(FILE.relative_to(ROOT))
