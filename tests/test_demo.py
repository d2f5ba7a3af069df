"""`make demo` as a test: the whole demo runs, and a single wrong number ends it with exit code 1."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from loaded import loaded


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    return loaded("examples/demo.py")


def test_every_number_agrees(demo: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main(tmp_path / "flights") == 0
    shown = capsys.readouterr().out
    assert "336,776" in shown
    assert "DIFFERENT" not in shown


@pytest.mark.parametrize("step", ["delete", "update", "merge_day"])
def test_a_difference_ends_it_with_1(
    demo: ModuleType,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    step: str,
) -> None:
    affected = demo._affected
    monkeypatch.setattr(demo, "_affected", lambda *arguments: affected(*arguments) + 1)
    monkeypatch.setattr(demo, "STEPS", (demo.write, getattr(demo, step)))
    assert demo.main(tmp_path / "flights") == 1
    assert "DIFFERENT" in capsys.readouterr().out


def test_a_lost_row_ends_it_with_1(
    demo: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows themselves are compared, not just what the metrics claim."""

    def lose(state: Any) -> None:
        with state.step("", "") as numbers:
            state.table.delete("id = 7")
            state.check(numbers, "nothing", 0, 0)

    monkeypatch.setattr(demo, "STEPS", (demo.write, lose))
    assert demo.main(tmp_path / "flights") == 1
    assert "rows that differ" in capsys.readouterr().out
