"""Loads Python files of the project that are in no package (`scripts/`, `examples/`) as modules."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]


def loaded(path: str) -> ModuleType:
    """Returns the module in the file at this path of the project, `scripts/write_rooms.py`, run anew by each
    call."""
    name = Path(path).stem
    spec = importlib.util.spec_from_file_location(name, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses in the module look it up
    spec.loader.exec_module(module)
    return module
