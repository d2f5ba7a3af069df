"""Checkpoints of several parts: each part has the columns of its own actions; a checkpoint that cannot be
read is skipped with a warning."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltaic
from deltaic.errors import ProtocolError

OF_FILES = ["add", "remove"]
OTHERS = ["txn", "domainMetadata"]


def make(path: Path, parts: list[list[str]]) -> deltaic.DeltaTable:
    """Returns a table whose checkpoint of version 3 has a part with just these columns each, and whose
    commits up to there are gone."""
    table = deltaic.write(
        path, pa.table({"a": [0]}), properties={"delta.appendOnly": "true", "delta.checkpointInterval": 1000}
    )
    for version in range(1, 4):
        deltaic.write(
            table,
            pa.table({"a": [version]}),
            mode="append",
            commit=deltaic.CommitOptions(transactions={f"app {version}": version}),
        )
    table.checkpoint()
    log = path / "_delta_log"
    single = log / f"{3:020}.checkpoint.parquet"
    whole = pq.read_table(pa.BufferReader(single.read_bytes()))  # an open file cannot be deleted on Windows
    single.unlink()
    for number, names in enumerate(parts, start=1):
        rows = whole.select(names)
        kept = [any(rows[name][row].as_py() is not None for name in names) for row in range(rows.num_rows)]
        pq.write_table(
            rows.filter(pa.array(kept)), log / f"{3:020}.checkpoint.{number:010}.{len(parts):010}.parquet"
        )
    (log / "_last_checkpoint").unlink()
    for version in range(4):
        (log / f"{version:020}.json").unlink()
        (log / f"{version:020}.crc").unlink()
    return deltaic.write(path, pa.table({"a": [4]}), mode="append")


@pytest.mark.parametrize(
    "parts",
    [
        [["txn"], [*OF_FILES, "protocol", "metaData"]],
        [["add"], ["protocol"], ["metaData"], ["txn"]],
        [["metaData", "protocol"], OF_FILES, ["txn", "domainMetadata"]],
    ],
    ids=lambda parts: " | ".join("+".join(part) for part in parts),
)
def test_parts_with_the_columns_of_their_actions(
    tmp_path: Path, parts: list[list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    make(tmp_path / "t", parts)
    table = deltaic.DeltaTable(tmp_path / "t")
    assert sorted(table.scan().to_arrow()["a"].to_pylist()) == [0, 1, 2, 3, 4]
    assert table.metadata.configuration["delta.appendOnly"] == "true"
    assert [table.transaction_version(f"app {version}") for version in range(1, 4)] == [1, 2, 3]
    assert caplog.records == []


def test_a_part_of_other_columns_is_none(tmp_path: Path) -> None:
    with pytest.raises(ProtocolError, match=r"no checkpoint.*columns x"):
        make_with_a_stranger(tmp_path / "t")


def make_with_a_stranger(path: Path) -> None:
    make(path, [["add", "protocol", "metaData", "txn"], ["remove"]])
    pq.write_table(pa.table({"x": [1]}), path / "_delta_log" / f"{3:020}.checkpoint.{2:010}.{2:010}.parquet")
    deltaic.DeltaTable(path).scan().to_arrow()


def test_a_checkpoint_that_is_passed_over_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = deltaic.write(tmp_path / "t", pa.table({"a": [0]}), properties={"delta.checkpointInterval": 1000})
    deltaic.write(table, pa.table({"a": [1]}), mode="append")
    table.checkpoint()
    file = tmp_path / "t" / "_delta_log" / f"{1:020}.checkpoint.parquet"
    file.write_bytes(file.read_bytes()[:-20])
    (tmp_path / "t" / "_delta_log" / f"{1:020}.crc").unlink()
    with caplog.at_level(logging.WARNING, "deltaic.log"):
        assert deltaic.DeltaTable(tmp_path / "t").scan().count() == 2
    (message,) = [record.getMessage() for record in caplog.records]
    assert "the checkpoint of version 1 cannot be read and is passed over" in message
