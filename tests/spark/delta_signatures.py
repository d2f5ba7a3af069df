"""Writes the signatures of a Python API as lines of text; run on delta-spark's modules, it writes
`delta_api.txt`."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

CLASSES = (
    "DeltaTable",
    "DeltaMergeBuilder",
    "DeltaTableBuilder",
    "DeltaOptimizeBuilder",
    "IdentityGenerator",
)


def signatures(module: ModuleType) -> list[str]:
    """`Class.method(parameter, other=default)` of every public method, sorted."""
    found = []
    for name in CLASSES:
        kind = getattr(module, name)
        for member, value in vars(kind).items():
            function = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
            if inspect.isfunction(function) and not member.startswith("_"):
                found.append(f"{name}.{member}({_parameters(function)})")
    found.append(f"IdentityGenerator({_parameters(module.IdentityGenerator.__init__)})")
    return sorted(found)


def _parameters(function: Any) -> str:
    shown = []
    for parameter in list(inspect.signature(inspect.unwrap(function)).parameters.values())[1:]:
        prefix = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
        default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
        shown.append(prefix + parameter.name + default)
    return ", ".join(shown)


def exceptions(module: ModuleType) -> list[str]:
    """Returns the public names of `delta.exceptions`."""
    return sorted(module.__all__)


if __name__ == "__main__":
    import delta.exceptions
    import delta.tables

    print(
        *signatures(delta.tables), *(f"exceptions.{name}" for name in exceptions(delta.exceptions)), sep="\n"
    )
