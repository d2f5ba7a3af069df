"""The behaviour of streams over tables with deletion vectors that delta-spark's
DeltaSourceDeletionVectorsSuite tests. A docstring names the tests of the suite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from collector import Collector, failure

import deltaic
from deltaic import DeltaTable
from single_rows import VECTORS
from spark_session import with_jvm

UPDATED, DELETED = "DELTA_SOURCE_TABLE_IGNORE_CHANGES", "DELTA_SOURCE_IGNORE_DELETE"


@pytest.fixture
def session(session: Any) -> Any:
    return with_jvm(session)


def add(path: Path, *ids: int) -> DeltaTable:
    return deltaic.write(path, {"id": pa.array(ids, pa.int64())}, mode="append")


def files_of(path: Path, count: int, rows: int) -> DeltaTable:
    """Returns a table with deletion vectors: files of as many rows, with the ids from 0 on."""
    table = DeltaTable.create(path, "id bigint", properties=VECTORS)
    for first in range(0, count * rows, rows):
        table = add(path, *range(first, first + rows))
    return table


def vectors(path: Path) -> int:
    """Returns the number of files with a deletion vector."""
    return sum(file["deletion_vector"] is not None for file in DeltaTable(path).files())


@pytest.mark.parametrize("checkpoint", [True, False])
def test_rows_that_were_deleted_before_the_start(
    collector: Collector, tmp_path: Path, checkpoint: bool
) -> None:
    """DeltaSourceDeletionVectorsSuite: "allow to delete files before starting a streaming query", "allow to
    delete files before staring a streaming query without checkpoint"."""
    files_of(tmp_path / "t", 5, 1).delete()
    for number in range(5, 8):
        table = add(tmp_path / "t", number)
    if checkpoint:
        table.checkpoint()
    assert (tmp_path / "t" / "_delta_log" / "_last_checkpoint").exists() == checkpoint
    assert collector.run(tmp_path / "t") == [[5, 6, 7]]


@pytest.mark.parametrize(
    ("where", "options", "expected"),
    [
        pytest.param(None, [], DELETED, id="deleting files fails query if ignoreDeletes = false"),
        pytest.param(
            None,
            ["ignoreFileDeletion"],
            [[10]],
            id="allow to delete files after staring a streaming query when ignoreFileDeletion is true",
        ),
        pytest.param(
            None,
            ["ignoreDeletes"],
            [[10]],
            id="allow to delete files after staring a streaming query when ignoreDeletes is true",
        ),
        pytest.param(
            None,
            ["ignoreChanges"],
            [[10]],
            id="deleting files when ignoreChanges = true doesn't fail the query",
        ),
        pytest.param(
            "id = 3",
            [],
            UPDATED,
            id="updating the source table causes failure when ignoreChanges = false - using DELETE",
        ),
        pytest.param(
            "id = 3",
            ["ignoreDeletes"],
            UPDATED,
            id="updating source table when ignoreDeletes = true fails the query - using DELETE",
        ),
        pytest.param(
            "id = 3",
            ["ignoreChanges"],
            [[2], [10]],
            id="allow to update the source table when ignoreChanges = true - using DELETE",
        ),
    ],
)
def test_a_delete_while_the_query_runs(
    collector: Collector, tmp_path: Path, where: str | None, options: list[str], expected: Any
) -> None:
    """DeltaSourceDeletionVectorsSuite: the ids of the parameters."""
    table = files_of(tmp_path / "t", 5, 2)
    reader = collector.session.readStream.format("delta").options(**dict.fromkeys(options, True))
    query = collector.start(reader.load(str(tmp_path / "t")), {"processingTime": "0 seconds"})
    try:
        query.processAllAvailable()
        assert collector.batches == [list(range(10))]
        table.delete(where)
        # A deletion of all rows removes the files.
        assert vectors(tmp_path / "t") == (0 if where is None else 1)
        if isinstance(expected, str):
            with pytest.raises(Exception, match=rf"\[{expected}\]"):
                query.processAllAvailable()
        else:
            query.processAllAvailable()
            add(tmp_path / "t", 10)
            query.processAllAvailable()
            assert collector.batches[1:] == expected
    finally:
        query.stop()


@pytest.mark.parametrize("option", [None, "ignoreDeletes", "ignoreChanges", "skipChangeCommits"])
@pytest.mark.parametrize("first", ["DELETE", "INSERT"])
def test_two_commits_in_one_batch(
    collector: Collector, tmp_path: Path, first: str, option: str | None
) -> None:
    """DeltaSourceDeletionVectorsSuite: "subsequent DML commands are processed correctly in a batch -
    DELETE->DELETE", "… - INSERT->DELETE", each with all options."""
    table = files_of(tmp_path / "t", 5, 3)
    options = {} if option is None else {option: True}
    assert collector.run(tmp_path / "t", **options) == [list(range(15))]
    if first == "DELETE":
        table.delete("id = 3")
        table.delete("id = 4")
        # 4 and 5 are in the file of 3, and 5 in the file of 4.
        expected = {"ignoreChanges": [[4, 5, 5]], "skipChangeCommits": []}
    else:
        add(tmp_path / "t", 15, 16).delete("id = 15")
        expected = {"ignoreChanges": [[15, 16, 16]], "skipChangeCommits": [[15, 16]]}
    assert vectors(tmp_path / "t") == 1
    if option in expected:
        assert collector.run(tmp_path / "t", **options) == expected[option]
    else:
        ended = failure(lambda: collector.run(tmp_path / "t", **options))
        assert ended.getCondition() == UPDATED


def collected(session: Any, path: Path, *expressions: str) -> list[tuple[Any, ...]]:
    """Returns the rows of a stream that reads all that the table has."""
    rows: list[tuple[Any, ...]] = []
    frame = session.readStream.format("delta").load(str(path)).selectExpr(*expressions)
    writer = frame.writeStream.foreachBatch(
        lambda batch, number: rows.extend(tuple(row) for row in batch.collect())
    )
    query = writer.option("checkpointLocation", str(path.parent / "c")).trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    return sorted(rows, key=repr)


def test_nulls(session: Any, tmp_path: Path) -> None:
    """DeltaSourceDeletionVectorsSuite: "streaming read with nulls and deletion vectors does not NPE"."""
    table = f"delta.`{tmp_path / 't'}`"
    properties = "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    session.sql(f"CREATE TABLE {table} (id INT, value STRING, opt_int INT) USING delta {properties}")
    session.sql(f"INSERT INTO {table} VALUES (1, null, null), (2, 'b', null), (null, null, null)")
    session.sql(f"INSERT INTO {table} VALUES (3, 'c', 3), (null, 'x', 1)")
    session.sql(f"DELETE FROM {table} WHERE id = 1")
    assert collected(session, tmp_path / "t", "*") == [
        (2, "b", None),
        (3, "c", 3),
        (None, "x", 1),
        (None, None, None),
    ]


@pytest.mark.parametrize(
    ("column", "expressions", "expected"),
    [
        (
            "parse_json(concat('{\"row\":', id, '}'))",
            ["id", "variant_get(value, '$.row', 'long')"],
            [(each, each) for each in (1, 3, 5, 7, 9)],
        ),
        (
            "array(id * 10, id * 10 + 1)",
            ["id", "value[0]", "value[1]"],
            [(each, 10 * each, 10 * each + 1) for each in (1, 3, 5, 7, 9)],
        ),
    ],
)
def test_nested_values(
    session: Any, tmp_path: Path, column: str, expressions: list[str], expected: list[tuple[Any, ...]]
) -> None:
    """DeltaSourceDeletionVectorsSuite: "streaming read with variant column and deletion vectors does not
    ClassCastException", "variant column and deletion vectors preserve payload identity", "array column and
    deletion vectors preserve element identity"."""
    frame = session.range(10).coalesce(1).selectExpr("id", f"{column} AS value")
    frame.write.format("delta").option("delta.enableDeletionVectors", True).save(str(tmp_path / "t"))
    session.sql(f"DELETE FROM delta.`{tmp_path / 't'}` WHERE id % 2 = 0")
    assert vectors(tmp_path / "t") == 1
    assert collected(session, tmp_path / "t", *expressions) == expected


def test_several_vectors_of_a_file_before_the_start(collector: Collector, tmp_path: Path) -> None:
    """DeltaSourceDeletionVectorsSuite: "multiple deletion vectors per file with initial snapshot"."""
    table = files_of(tmp_path / "t", 1, 10)
    for number in range(3):
        table.delete(f"id = {number}")
    assert vectors(tmp_path / "t") == 1
    assert collector.run(tmp_path / "t") == [list(range(3, 10))]


@pytest.mark.parametrize("option", ["ignoreFileDeletion", "ignoreChanges"])
@pytest.mark.parametrize("limit", [None, 1])
def test_several_vectors_of_a_file(
    collector: Collector, tmp_path: Path, option: str, limit: int | None
) -> None:
    """DeltaSourceDeletionVectorsSuite: "multiple deletion vectors per file" with both options. The rows that
    are left come again with each commit, in one batch or in two."""
    table = files_of(tmp_path / "t", 1, 10)
    options = {option: True, **({} if limit is None else {"maxFilesPerTrigger": limit})}
    assert collector.run(tmp_path / "t", **options) == [list(range(10))]
    table.delete("id = 0")
    table.delete("id = 1")
    assert vectors(tmp_path / "t") == 1
    first, second = list(range(1, 10)), list(range(2, 10))
    expected = [sorted(first + second)] if limit is None else [first, second]
    assert collector.run(tmp_path / "t", **options) == expected
