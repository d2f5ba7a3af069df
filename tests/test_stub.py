"""`_core.pyi` agrees with the compiled module: the same names, the same parameters with the same defaults, in
both directions."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import pytest

from deltaic import _core

STUB = Path(__file__).resolve().parent.parent / "python" / "deltaic" / "_core.pyi"
TREE = ast.parse(STUB.read_text(encoding="utf-8"))

# Python makes these for every class, and a stub has them only if their type matters.
IMPLIED = {
    "__doc__",
    "__module__",
    "__dict__",
    "__weakref__",
    "__new__",
    "__ne__",
    "__lt__",
    "__le__",
    "__gt__",
    "__ge__",
    "__eq__",
    "__hash__",
    "__repr__",
}
# The values of the ellipses in compiled signatures.
OPAQUE = {
    "ids": "()",
    "partition_columns": "()",
    "encoded": "()",
    "views": "()",
    "allowed_roots": "()",
    "constants": "()",
    "prefix": "''",
}
# Binary operators: the compiled slot serves both sides.
REFLECTED = {"__ror__", "__rand__", "__rsub__"}


def _stub_names(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    names: dict[str, ast.stmt] = {}
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names[node.name] = node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names[node.target.id] = node
    return names


def _is_protocol(node: ast.stmt) -> bool:
    return isinstance(node, ast.ClassDef) and "Protocol" in {ast.unparse(base) for base in node.bases}


# Protocols describe what a caller brings; the module has none of them.
MODULE = {name: node for name, node in _stub_names(TREE.body).items() if not _is_protocol(node)}
CLASSES = [node for node in MODULE.values() if isinstance(node, ast.ClassDef)]


def _stub_parameters(node: ast.FunctionDef) -> list[tuple[str, str, str | None]]:
    """(name, kind, default as written) of each parameter but self."""
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults)) + list(
        arguments.defaults
    )
    found = [
        (arg.arg, "positional", _text(default)) for arg, default in zip(positional, defaults, strict=True)
    ]
    found += [
        (arg.arg, "keyword", _text(default))
        for arg, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    return [item for item in found if item[0] not in ("self", "cls")]


def _text(node: ast.expr | None) -> str | None:
    return None if node is None else repr(ast.literal_eval(node))


def _real_parameters(function: Any) -> list[tuple[str, str, str | None]]:
    found = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        kind = "keyword" if parameter.kind is parameter.KEYWORD_ONLY else "positional"
        default = None if parameter.default is parameter.empty else repr(parameter.default)
        # PyO3 shows a default that is no literal of Python's as an ellipsis: in this module, an empty
        # sequence or text.
        found.append(
            (parameter.name, kind, OPAQUE.get(parameter.name, default) if default == "Ellipsis" else default)
        )
    return found


def test_module_has_the_stubs_names_and_no_others() -> None:
    real = {name for name in vars(_core) if not name.startswith("__") or name == "__version__"}
    assert real == set(MODULE)


@pytest.mark.parametrize("name", [node.name for node in MODULE.values() if isinstance(node, ast.FunctionDef)])
def test_function(name: str) -> None:
    node = MODULE[name]
    assert isinstance(node, ast.FunctionDef)
    assert _real_parameters(getattr(_core, name)) == _stub_parameters(node)


@pytest.mark.parametrize("node", CLASSES, ids=lambda node: node.name)
def test_class(node: ast.ClassDef) -> None:
    real_class = getattr(_core, node.name)
    members = _stub_names(node.body)
    real = {
        name
        for name in vars(real_class)
        if name not in IMPLIED | REFLECTED and not name.startswith("__reduce")
    }
    assert real == {name for name in members if name not in IMPLIED}
    for name, member in members.items():
        assert isinstance(member, ast.FunctionDef)
        if "property" in {ast.unparse(decorator) for decorator in member.decorator_list}:
            assert not callable(vars(real_class)[name]), f"{node.name}.{name} is a property in the stub"
        elif name == "__new__":
            assert _real_parameters(real_class) == _stub_parameters(member), f"{node.name}()"
        elif not name.startswith("__"):
            assert _real_parameters(getattr(real_class, name)) == _stub_parameters(member), (
                f"{node.name}.{name}"
            )


def test_a_public_class_has_the_docstrings_of_the_stub() -> None:
    """`help(deltaic.DeletionVector)` shows what an editor shows. Rust's comments hold examples in fences."""
    (stub,) = (node for node in CLASSES if node.name == "DeletionVector")
    real_class = _core.DeletionVector
    members = [
        (real_class, stub),
        *((getattr(real_class, name), node) for name, node in _stub_names(stub.body).items()),
    ]
    for real, node in members:
        assert isinstance(node, (ast.ClassDef, ast.FunctionDef))
        if expected := ast.get_docstring(node):
            lines = (real.__doc__ or "").splitlines()
            shown = [line for line in lines if not line.startswith("```")]
            assert " ".join(shown).split() == expected.split(), node.name
