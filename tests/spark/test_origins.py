"""Expressions that deltaic makes do not get PySpark's record of the line that created them; all others keep
it."""

from __future__ import annotations

from typing import Any

import pytest

from deltaic.engine.spark.origins import unnoted

utils = pytest.importorskip("pyspark.errors.utils")


def test_nothing_is_noted_inside_and_all_again_behind(spark: Any) -> None:
    before = utils.is_debugging_enabled()
    assert before, "or nothing is seen here"
    with unnoted():
        assert not utils.is_debugging_enabled()
        with unnoted():
            assert not utils.is_debugging_enabled()
        assert not utils.is_debugging_enabled()
    assert utils.is_debugging_enabled()
    with pytest.raises(ZeroDivisionError), unnoted():
        _ = 1 / 0
    assert utils.is_debugging_enabled()


def test_a_read_makes_few_calls(spark: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Notes would be eight calls for each expression."""
    import pyarrow as pa
    from py4j.clientserver import ClientServerConnection

    import deltaic
    import deltaic.spark

    columns = 40
    deltaic.write(tmp_path / "t", pa.table({f"c{number}": [0.5] * 2000 for number in range(columns)}))
    deltaic.spark.read(spark, tmp_path / "t")
    said: list[str] = []
    send = ClientServerConnection.send_command

    def counted(self: Any, command: str) -> Any:
        said.append(command)
        return send(self, command)

    monkeypatch.setattr(ClientServerConnection, "send_command", counted)
    deltaic.spark.read(spark, tmp_path / "t")
    assert not [command for command in said if "PySparkCurrentOrigin" in command]
    assert len([command for command in said if not command.startswith("m\nd")]) < 60 + 10 * columns
