"""Rooms import only from rooms below, and `import deltaic` does not load modules that only some uses need."""

from __future__ import annotations

import ast
import graphlib
import re
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "python" / "deltaic"

# From the public interface down to the bytes. Rooms in one row may import each other; a package's own modules
# always may.
LAYERS: list[set[str]] = [
    {"cli"},
    {"spark"},
    {"sql", "several_tables"},
    {"table"},
    {"session"},
    {"commands"},
    {"pictures"},
    {"rows"},
    {"engine"},
    {"planning"},
    {"spark_sql"},
    {"plan"},
    {"transaction"},
    {"log"},
    {"configuration"},
    {"protocol"},
    {"options", "deltalake_names", "worker", "cancellation", "memory", "html_tables", "sql_text"},
    {"_core", "deferred", "errors", "process_state"},
]
DEPTH = {name: depth for depth, row in enumerate(LAYERS) for name in row}
ENTRANCE = "__init__"  # the public names, loaded when first used


def _room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def _imported_rooms(tree: ast.AST) -> set[str]:
    """Rooms of deltaic that this module imports when it runs, wherever in it; imports for types only are left
    out."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            found |= {
                parts[1]
                for name in node.names
                if (parts := name.name.split("."))[0] == "deltaic" and len(parts) > 1
            }
        elif isinstance(node, ast.ImportFrom) and node.module == "deltaic":
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("deltaic."):
            found.add(str(node.module).split(".")[1])
        else:
            found |= _imported_rooms(node)
    return found


def test_every_module_has_a_layer() -> None:
    assert {_room(path) for path in PACKAGE.rglob("*.py")} - {ENTRANCE} <= set(DEPTH)


def test_imports_go_down() -> None:
    upward = [
        f"{path.relative_to(PACKAGE)} imports deltaic.{other}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if (room := _room(path)) != ENTRANCE
        for other in sorted(_imported_rooms(ast.parse(path.read_text(encoding="utf-8"))))
        if other != room and DEPTH[other] <= DEPTH[room]
    ]
    assert upward == []


def test_relative_imports_are_not_used() -> None:
    relative = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert relative == []


def _loaded_by(statement: str) -> set[str]:
    """Top-level modules that a fresh interpreter has after `statement`, and had not before."""
    names = "{name.split('.')[0] for name in set(sys.modules) - before}"
    code = f"import sys; before = set(sys.modules)\n{statement}\nprint(*{names})"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


HEAVY = {
    "duckdb",
    "sqlglot",
    "rich",
    "typer",
    "pandas",
    "polars",
    "pyarrow",
    "numpy",
    "hypothesis",
    "pyspark",
    "py4j",
}


def test_import_deltaic_loads_nothing_heavy() -> None:
    assert _loaded_by("import deltaic") & HEAVY == set()


def test_the_front_door_loads_no_engine_and_no_parser() -> None:
    heavy = HEAVY - {"pyarrow", "numpy"}
    assert _loaded_by("import deltaic; deltaic.DeltaTable; deltaic.write") & heavy == set()


def test_no_vague_names() -> None:
    vague = {"utils", "util", "helpers", "helper", "common", "misc"}
    assert [
        path
        for path in PACKAGE.rglob("*.py")
        if vague & {part.removesuffix(".py") for part in path.relative_to(PACKAGE).parts}
    ] == []


# The rooms of the log in Rust, each of which uses those before it alone.
LOG_IN_RUST = ["json_text", "schema", "reading", "skipping", "state", "writing"]


def test_rooms_of_the_log_in_rust_use_those_before_them() -> None:
    rooms = PACKAGE.parent.parent / "rust" / "src" / "log"
    assert {path.stem for path in rooms.iterdir()} - {"mod", "tests"} == set(LOG_IN_RUST)
    for depth, room in enumerate(LOG_IN_RUST[2:], start=2):
        for path in (rooms / room).glob("*.rs"):
            code = path.read_text().split("#[cfg(test)]")[0]
            assert set(re.findall(r"\bcrate::log::(\w+)", code)) <= set(LOG_IN_RUST[:depth]), path


# Attributes by which PySpark's objects reach the JVM, and the library that does it.
_OF_THE_JVM = re.compile(
    r"\._j(vm|df|c|sc|reader|write|sparkSession)\b|\b(from|import)"
    r" py4j|pyspark\.java_gateway|\._gateway\b|\"_j[a-z]"
)


def test_one_room_knows_the_jvm() -> None:
    room = PACKAGE / "engine" / "spark" / "native"
    elsewhere = [
        f"{path.relative_to(PACKAGE)}:{number}"
        for path in PACKAGE.rglob("*.py")
        if room not in path.parents
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if _OF_THE_JVM.search(line)
    ]
    assert elsewhere == []


def test_modules_of_the_engine_on_spark_form_no_cycle() -> None:
    """Imports for types count, too: a module that takes the engine would be read together with all of it."""
    room = PACKAGE / "engine" / "spark"
    names = {
        ".".join(("deltaic", *path.relative_to(PACKAGE).with_suffix("").parts)): path
        for path in room.rglob("*.py")
    }
    imports = {
        name: _imported_modules(ast.parse(path.read_text())) & set(names) for name, path in names.items()
    }
    # CycleError names the modules of a cycle.
    assert len(list(graphlib.TopologicalSorter(imports).static_order())) == len(names)


def _imported_modules(tree: ast.AST) -> set[str]:
    """Full names of the modules, and of the names in them, that `from ... import` takes anywhere in a
    module."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return found
