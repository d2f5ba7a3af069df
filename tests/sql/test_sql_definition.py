"""CREATE, CREATE AS SELECT, ALTER, OPTIMIZE, REORG, VACUUM, DESCRIBE, RESTORE as SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic.errors import (
    DeltaError,
    InvalidArgumentError,
    SchemaMismatchError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedFeatureError,
)


def test_create_with_everything(tmp_path: Path) -> None:
    path = tmp_path / "t"
    statement = f"""
        CREATE TABLE IF NOT EXISTS delta.`{path}` (
            id BIGINT NOT NULL COMMENT 'the ''key''',
            amount DECIMAL(10, 2),
            tags ARRAY<STRING>,
            at STRUCT<lat: DOUBLE, lon: DOUBLE>,
            day DATE
        ) USING delta
        PARTITIONED BY (day)
        COMMENT 'made by a test'
        TBLPROPERTIES ('delta.enableDeletionVectors' = true, delta.checkpointInterval = 7)"""
    assert deltaic.sql(statement).schema.names == []
    table = deltaic.DeltaTable(path)
    assert table.schema.names == ["id", "amount", "tags", "at", "day"]
    assert not table.schema.field("id").nullable
    assert table.schema.field("id").metadata["comment"] == "the 'key'"
    assert table.schema.field("amount").type == "decimal(10,2)"
    assert list(table.metadata.partition_columns) == ["day"]
    assert table.metadata.description == "made by a test"
    assert table.metadata.configuration["delta.checkpointInterval"] == "7"
    assert table.metadata.configuration["delta.enableDeletionVectors"] == "true"
    deltaic.sql(statement)
    assert deltaic.DeltaTable(path).version == 0
    with pytest.raises(TableAlreadyExistsError):
        deltaic.sql(statement.replace("IF NOT EXISTS", ""))


def test_a_table_of_a_query_has_no_column_or_field_that_is_not_null(tmp_path: Path) -> None:
    query = "SELECT 1 AS a, named_struct('x', 1) AS s, array(named_struct('y', 'b')) AS l"
    deltaic.sql(f"CREATE TABLE delta.`{tmp_path}/t` USING delta AS {query}")
    table = deltaic.DeltaTable(tmp_path / "t")
    expected = "a int, s struct<x: int>, l array<struct<y: string>>"
    assert table.schema == deltaic.Schema.from_ddl(expected)
    assert "invariants" not in (table.detail().table_features or ())


def test_create_or_replace(tmp_path: Path) -> None:
    path = tmp_path / "t"
    with pytest.raises(InvalidArgumentError, match="CREATE OR REPLACE"):
        deltaic.sql(f"REPLACE TABLE delta.`{path}` (a INT)")
    deltaic.sql(f"CREATE OR REPLACE TABLE delta.`{path}` (a INT) USING delta")
    deltaic.sql(f"CREATE OR REPLACE TABLE delta.`{path}` (b STRING)")
    assert deltaic.DeltaTable(path).schema.names == ["b"]
    assert deltaic.DeltaTable(path, version=0).schema.names == ["a"]


def test_options_of_definitions(tmp_path: Path) -> None:
    """delta-spark's DeltaWriteConfigsSuite: only CREATE TABLE without a query stores each option."""
    place, options = f"delta.`{tmp_path / 't'}`", "OPTIONS ('team' = 'x', 'delta.checkpointInterval' = 20)"
    both = {"team": "x", "delta.checkpointInterval": "20"}
    for statement, stored in (
        (
            f"CREATE TABLE {place} (a INT) USING delta {options}",
            both | {f"option.{k}": both[k] for k in both},
        ),
        (f"REPLACE TABLE {place} (a INT) USING delta {options}", {"delta.checkpointInterval": "20"}),
        (
            f"CREATE OR REPLACE TABLE {place} USING delta {options} AS SELECT 1 AS a",
            {"delta.checkpointInterval": "20"},
        ),
    ):
        deltaic.sql(statement)
        configuration = dict(deltaic.DeltaTable(tmp_path / "t").metadata.configuration)
        assert configuration == {"delta.enableDeletionVectors": "true", **stored}


def test_the_history_names_the_statement_of_a_replacement(tmp_path: Path) -> None:
    name = f"delta.`{tmp_path / 't'}`"
    deltaic.sql(f"CREATE OR REPLACE TABLE {name} (a INT) USING delta")
    deltaic.sql(f"REPLACE TABLE {name} (b INT) USING delta")
    deltaic.sql(f"REPLACE TABLE {name} USING delta AS SELECT 1 AS c")
    deltaic.sql(f"CREATE OR REPLACE TABLE {name} USING delta AS SELECT 1 AS d")
    operations = [entry["operation"] for entry in deltaic.DeltaTable(tmp_path / "t").history()]
    assert operations == [
        "CREATE OR REPLACE TABLE AS SELECT",
        "REPLACE TABLE AS SELECT",
        "REPLACE TABLE",
        "CREATE OR REPLACE TABLE",
    ]


def test_a_replacement_that_makes_the_table_is_no_blind_append(tmp_path: Path) -> None:
    deltaic.sql(f"CREATE OR REPLACE TABLE delta.`{tmp_path / 't'}` AS SELECT 1 AS a")
    (entry,) = deltaic.DeltaTable(tmp_path / "t").history()
    metrics = entry["operationMetrics"]
    assert entry["isBlindAppend"] is False
    assert (metrics["numRemovedFiles"], metrics["numRemovedBytes"]) == ("0", "0")


def test_create_as_select(tmp_path: Path) -> None:
    path = tmp_path / "t"
    source = pa.table({"k": [1, 2, 3], "v": ["a", "b", "c"]})
    deltaic.sql(
        f"CREATE TABLE delta.`{path}` USING delta PARTITIONED BY (v) AS SELECT k, v FROM s WHERE k > 1",
        tables={"s": source},
    )
    table = deltaic.DeltaTable(path)
    assert sorted(table.scan().to_arrow().to_pylist(), key=str) == [{"k": 2, "v": "b"}, {"k": 3, "v": "c"}]
    assert list(table.metadata.partition_columns) == ["v"]
    deltaic.sql(f"CREATE OR REPLACE TABLE delta.`{path}` AS SELECT 'x' AS other")
    assert deltaic.DeltaTable(path).scan().to_arrow().to_pylist() == [{"other": "x"}]


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("CREATE TABLE delta.`{}` (a INT) USING parquet", UnsupportedFeatureError),
        ("CREATE TABLE delta.`{}` (a INT) LOCATION '/x'", UnsupportedFeatureError),
        ("CREATE TABLE delta.`{}` PARTITIONED BY (a)", InvalidArgumentError),
        ("CREATE TABLE delta.`{}` (a INT, b INT) PARTITIONED BY (a, b INT)", InvalidArgumentError),
        ("CREATE TABLE delta.`{}` (a INT, b INT) PARTITIONED BY (b INT)", InvalidArgumentError),
        ("CREATE TABLE delta.`{}` PARTITIONED BY (b INT) AS SELECT 1 AS a, 2 AS b", InvalidArgumentError),
        ("CREATE TABLE delta.`{}` (a NONSENSE)", InvalidArgumentError),
        ("CREATE VIEW delta.`{}` AS SELECT 1", UnsupportedFeatureError),
        ("CREATE TABLE delta.`{}` (a INT) COMMENT 'x' COMMENT 'y'", InvalidArgumentError),
        ("CREATE TABLE delta.`{}` (a INT) TBLPROPERTIES ('delta.noSuchThing' = '1')", InvalidArgumentError),
    ],
)
def test_create_refusals(tmp_path: Path, statement: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        deltaic.sql(statement.format(tmp_path / "t"))
    assert not (tmp_path / "t").exists()


def test_partition_columns_with_types_as_in_hive(tmp_path: Path) -> None:
    path = tmp_path / "t"
    deltaic.sql(
        f"CREATE TABLE delta.`{path}` (a INT) PARTITIONED BY (b INT COMMENT 'part', `c d` STRING)"
        " TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    table = deltaic.DeltaTable(path)
    assert (table.schema.names, list(table.metadata.partition_columns)) == (["a", "b", "c d"], ["b", "c d"])
    assert table.schema[1].metadata["comment"] == "part"


def test_alter_columns(tmp_path: Path) -> None:
    deltaic.sql(
        f"CREATE TABLE delta.`{tmp_path}/t` (id BIGINT NOT NULL, `odd name` STRING, s STRUCT<x: INT, y: INT>)"
        " TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    table = deltaic.DeltaTable(tmp_path / "t")
    tables = {"t": table}
    deltaic.sql("ALTER TABLE t ADD COLUMNS (a INT COMMENT 'x', b ARRAY<STRUCT<c: STRING>>)", tables=tables)
    deltaic.sql("ALTER TABLE t ADD COLUMN d DATE", tables=tables)
    assert table.schema.names == ["id", "odd name", "s", "a", "b", "d"]
    deltaic.sql("ALTER TABLE t RENAME COLUMN `odd name` TO even", tables=tables)
    deltaic.sql("ALTER TABLE t RENAME COLUMN s.x TO z", tables=tables)
    deltaic.sql("ALTER TABLE t DROP COLUMNS (a, s.y)", tables=tables)
    deltaic.sql("ALTER TABLE t DROP COLUMN IF EXISTS nobody", tables=tables)
    deltaic.sql("ALTER TABLE t ALTER COLUMN id DROP NOT NULL", tables=tables)
    deltaic.sql("ALTER TABLE t CHANGE COLUMN even COMMENT 'now even'", tables=tables)
    assert table.schema.names == ["id", "even", "s", "b", "d"]
    assert table.schema.to_ddl().count("NOT NULL") == 0
    assert table.schema.field("even").metadata["comment"] == "now even"
    assert [entry["operation"] for entry in table.history()] == [
        "CHANGE COLUMN",
        "CHANGE COLUMN",
        "DROP COLUMNS",
        "RENAME COLUMN",
        "RENAME COLUMN",
        "ADD COLUMNS",
        "ADD COLUMNS",
        "CREATE TABLE",
    ]


def test_alter_properties(table: deltaic.DeltaTable) -> None:
    deltaic.sql(
        "ALTER TABLE t SET TBLPROPERTIES ('delta.checkpointInterval' = '3', my.own = 'x')",
        tables={"t": table},
    )
    assert table.metadata.configuration["delta.checkpointInterval"] == "3"
    assert table.metadata.configuration["my.own"] == "x"
    deltaic.sql("ALTER TABLE t UNSET TBLPROPERTIES ('my.own')", tables={"t": table})
    deltaic.sql("ALTER TABLE t UNSET TBLPROPERTIES ('my.own')", tables={"t": table})
    deltaic.sql("ALTER TABLE t UNSET TBLPROPERTIES IF EXISTS ('my.own')", tables={"t": table})
    assert "my.own" not in table.metadata.configuration


def test_what_a_later_release_brings(table: deltaic.DeltaTable) -> None:
    with pytest.raises(UnsupportedFeatureError):
        deltaic.sql("OPTIMIZE t FULL", tables={"t": table})
    assert table.version == 0


def test_optimize(table: deltaic.DeltaTable) -> None:
    for number in range(3):
        deltaic.sql(f"INSERT INTO t VALUES ({number + 10}, 'a', 1.0)", tables={"t": table})
    done = deltaic.sql("OPTIMIZE t WHERE part = 'a'", tables={"t": table}).to_arrow().to_pylist()
    assert done[0]["path"] == table.location
    assert done[0]["metrics"]["numFilesAdded"] == 1
    metrics = done[0]["metrics"]
    assert metrics["numFilesRemoved"] == metrics["filesRemoved"]["totalFiles"] == 4
    [size] = table.files("part = 'a'").to_arrow()["size"].to_pylist()
    assert metrics["filesAdded"] == {
        "min": size,
        "max": size,
        "avg": float(size),
        "totalFiles": 1,
        "totalSize": size,
    }
    assert metrics["filesRemoved"]["min"] <= metrics["filesRemoved"]["avg"] <= metrics["filesRemoved"]["max"]
    assert (metrics["zOrderStats"], metrics["clusteringStats"], metrics["deletionVectorStats"]) == (
        None,
        None,
        None,
    )
    assert (metrics["numBins"], metrics["numTableColumns"], metrics["numTableColumnsWithStats"]) == (1, 3, 3)
    assert 0 < metrics["startTimeMs"] <= metrics["endTimeMs"]
    deltaic.sql("DELETE FROM t WHERE id = 11", tables={"t": table})
    [done] = deltaic.sql("OPTIMIZE t ZORDER BY id, amount, ID", tables={"t": table}).to_arrow().to_pylist()
    assert done["metrics"]["deletionVectorStats"] == {
        "numDeletionVectorsRemoved": 1,
        "numDeletionVectorRowsRemoved": 1,
    }
    merged = {"num": done["metrics"]["numFilesRemoved"], "size": done["metrics"]["filesRemoved"]["totalSize"]}
    assert done["metrics"]["zOrderStats"]["mergedFiles"] == merged
    [again] = deltaic.sql("OPTIMIZE t", tables={"t": table}).to_arrow().to_pylist()
    assert again["metrics"]["filesAdded"] == {
        "min": None,
        "max": None,
        "avg": 0.0,
        "totalFiles": 0,
        "totalSize": 0,
    }
    assert again["metrics"]["numBatches"] == 1
    assert table.history(1)[0]["operation"] == "OPTIMIZE"
    assert table.scan().count() == 6


def test_reorg(table: deltaic.DeltaTable) -> None:
    deltaic.sql("DELETE FROM t WHERE id = 1", tables={"t": table})
    assert any(row["deletion_vector"] for row in table.files().to_arrow().to_pylist())
    deltaic.sql("REORG TABLE t APPLY (PURGE)", tables={"t": table})
    assert not any(row["deletion_vector"] for row in table.files().to_arrow().to_pylist())


@pytest.mark.parametrize(
    "statement", ["OPTIMIZE {}", "VACUUM {} DRY RUN", "DESCRIBE HISTORY {}", "DESCRIBE DETAIL {}"]
)
def test_upkeep_takes_a_path_in_quotes(table: deltaic.DeltaTable, statement: str) -> None:
    by_path = deltaic.sql(statement.format(f"'{table.location}'")).to_arrow()
    assert by_path.schema == deltaic.sql(statement.format(f"delta.`{table.location}`")).to_arrow().schema


def test_vacuum(table: deltaic.DeltaTable) -> None:
    deltaic.sql("INSERT OVERWRITE t SELECT 1, 'a', 1.0", tables={"t": table})
    with pytest.raises(InvalidArgumentError):
        deltaic.sql("VACUUM t RETAIN 0 HOURS", tables={"t": table})
    with pytest.raises(InvalidArgumentError, match="retention is out of range; found 100000000000"):
        deltaic.sql("VACUUM t RETAIN 100000000000 HOURS", tables={"t": table})
    assert deltaic.sql("VACUUM t RETAIN 200 HOURS DRY RUN", tables={"t": table}).to_arrow().num_rows == 0
    assert deltaic.sql("VACUUM t DRY RUN LITE", tables={"t": table}).schema.names == ["path"]
    assert deltaic.sql("VACUUM t FULL", tables={"t": table}).to_arrow().to_pylist() == [
        {"path": table.location}
    ]


def test_vacuum_using_inventory(table: deltaic.DeltaTable, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = Path(table.location)
    (folder / "lost.parquet").write_bytes(b"x")
    moment = 1_600_000_000_000
    rows = [
        {"path": f"{folder}/{each.name}", "length": 1, "isDir": False, "modificationTime": moment}
        for each in folder.glob("*.parquet")
    ]
    tables = {"t": table, "listed": pa.Table.from_pylist(rows)}
    stored = deltaic.write(tmp_path_factory.mktemp("inventory") / "i", tables["listed"])
    for source in (
        "listed",
        "(SELECT * FROM listed WHERE path LIKE '%.parquet')",
        f"delta.`{stored.location}`",
    ):
        for words in (
            f"USING INVENTORY {source} DRY RUN",
            f"RETAIN 200 HOURS DRY RUN USING INVENTORY {source}",
        ):
            assert deltaic.sql(f"VACUUM t {words}", tables=tables).to_arrow()["path"].to_pylist() == [
                f"{table.location}/lost.parquet"
            ]
    nothing = deltaic.sql(
        "VACUUM t USING INVENTORY (SELECT * FROM listed WHERE false) DRY RUN", tables=tables
    )
    assert nothing.to_arrow().num_rows == 0
    with pytest.raises(InvalidArgumentError, match="a modifier of VACUUM comes twice"):
        deltaic.sql("VACUUM t USING INVENTORY listed USING INVENTORY listed", tables=tables)
    with pytest.raises(SchemaMismatchError, match="required columns"):
        deltaic.sql("VACUUM t USING INVENTORY (SELECT path FROM listed)", tables=tables)
    deltaic.sql("VACUUM t USING INVENTORY listed", tables=tables)
    assert not (folder / "lost.parquet").exists()
    assert table.scan().count() == 4


def test_restore(table: deltaic.DeltaTable) -> None:
    deltaic.sql("DELETE FROM t", tables={"t": table})
    done = deltaic.sql("RESTORE TABLE t TO VERSION AS OF 0", tables={"t": table}).to_arrow().to_pylist()
    assert table.scan().count() == 4
    assert done[0]["num_restored_files"] == done[0]["num_of_files_after_restore"] == 3
    moment = table.history()[0]["timestamp"].isoformat()
    deltaic.sql("DELETE FROM t", tables={"t": table})
    deltaic.sql(f"RESTORE t TIMESTAMP AS OF '{moment}'", tables={"t": table})
    assert table.scan().count() == 4


def test_describe_history(table: deltaic.DeltaTable) -> None:
    deltaic.sql("DELETE FROM t WHERE id = 1", tables={"t": table})
    found = deltaic.sql("DESCRIBE HISTORY t LIMIT 1", tables={"t": table}).to_arrow()
    assert found.column_names[:6] == [
        "version",
        "timestamp",
        "userId",
        "userName",
        "operation",
        "operationParameters",
    ]
    job = found.schema.field("job").type
    assert [field.name for field in job] == [
        "jobId",
        "jobName",
        "jobRunId",
        "runId",
        "jobOwnerId",
        "triggerType",
    ]
    (row,) = found.to_pylist()
    assert (row["version"], row["operation"], dict(row["operationMetrics"])["numDeletedRows"]) == (
        1,
        "DELETE",
        "1",
    )
    assert deltaic.sql("DESC HISTORY t", tables={"t": table}).count() == 2


def test_describe_detail(table: deltaic.DeltaTable) -> None:
    (row,) = deltaic.sql(f"DESCRIBE DETAIL delta.`{table.location}`").to_arrow().to_pylist()
    assert (row["format"], row["location"], row["numFiles"], row["partitionColumns"]) == (
        "delta",
        table.location,
        3,
        ["part"],
    )
    assert "deletionVectors" in row["tableFeatures"]
    assert dict(row["properties"])["delta.enableDeletionVectors"] == "true"


def test_describe_table(table: deltaic.DeltaTable) -> None:
    found = deltaic.sql("DESCRIBE TABLE t", tables={"t": table}).to_arrow().to_pylist()
    assert found[0] == {"col_name": "id", "data_type": "bigint", "comment": None}


PLACED = (
    "id INT, p STRING, st STRUCT<a: INT, b: INT>, ar ARRAY<STRUCT<x: INT>>, m MAP<STRING, STRUCT<x: INT, y:"
    " INT>>, k MAP<STRUCT<u: INT>, STRUCT<v: INT>>"
)


@pytest.mark.parametrize(
    ("action", "columns"),
    [
        ("ADD COLUMNS (x INT FIRST)", "x INT, " + PLACED),
        ("ADD COLUMN x INT COMMENT 'c' AFTER ID", PLACED.replace("p STRING", "x INT COMMENT 'c', p STRING")),
        (
            "ADD COLUMNS (x INT AFTER id, y STRING AFTER x)",
            PLACED.replace("p STRING", "x INT, y STRING, p STRING"),
        ),
        ("ADD COLUMNS (st.c INT, st.d INT)", PLACED.replace("b: INT", "b: INT, c: INT, d: INT")),
        ("ADD COLUMNS (st.c INT AFTER a)", PLACED.replace("b: INT", "c: INT, b: INT")),
        (
            "ADD COLUMNS (ar.element.y INT FIRST)",
            PLACED.replace("<STRUCT<x: INT>", "<STRUCT<y: INT, x: INT>"),
        ),
        ("ADD COLUMNS (m.value.z INT AFTER x)", PLACED.replace("y: INT", "z: INT, y: INT")),
        ("ALTER COLUMN p FIRST", "p STRING, " + PLACED.replace("p STRING, ", "")),
        ("ALTER COLUMN id AFTER p", "p STRING, id INT, " + PLACED.replace("id INT, p STRING, ", "")),
        ("ALTER COLUMN id AFTER ID", PLACED),
        (
            "ADD COLUMNS (k.key.n INT, k.value.n INT)",
            PLACED.replace("STRUCT<u: INT>", "STRUCT<u: INT, n: INT>").replace(
                "<v: INT>", "<v: INT, n: INT>"
            ),
        ),
        (
            "ALTER COLUMN p COMMENT 'c', id AFTER p, st.b FIRST",
            "p STRING COMMENT 'c', id INT, "
            + PLACED.replace("id INT, p STRING, ", "").replace("a: INT, b: INT", "b: INT, a: INT"),
        ),
        (
            "CHANGE COLUMN st st STRUCT<a: INT, b: INT> FIRST",
            "st STRUCT<a: INT, b: INT>, " + PLACED.replace("st STRUCT<a: INT, b: INT>, ", ""),
        ),
        ("ALTER COLUMN st.b FIRST", PLACED.replace("a: INT, b: INT", "b: INT, a: INT")),
        ("ALTER COLUMN m.value.y FIRST", PLACED.replace("x: INT, y: INT", "y: INT, x: INT")),
        (
            "CHANGE COLUMN id id INT COMMENT 'x' AFTER p",
            "p STRING, id INT COMMENT 'x', " + PLACED.replace("id INT, p STRING, ", ""),
        ),
        (
            (
                f"REPLACE COLUMNS (n INT, {PLACED.replace('a: INT, b: INT', 'b: INT, c: INT, a: INT')}"
                " COMMENT 'm')"
            ),
            f"n INT, {PLACED.replace('a: INT, b: INT', 'b: INT, c: INT, a: INT')} COMMENT 'm'",
        ),
        ("CHANGE id id INT COMMENT 'x'", PLACED.replace("id INT", "id INT COMMENT 'x'")),
    ],
)
def test_the_place_of_columns(tmp_path: Path, action: str, columns: str) -> None:
    place = f"delta.`{tmp_path}/t`"
    deltaic.sql(f"CREATE TABLE {place} ({PLACED})")
    values = (
        "1, 'a', named_struct('a', 1, 'b', 2), array(named_struct('x', 3)), map('k', named_struct('x', 4,"
        " 'y', 5)), map(named_struct('u', 6), named_struct('v', 7))"
    )
    deltaic.sql(f"INSERT INTO {place} VALUES ({values})")
    deltaic.sql(f"ALTER TABLE {place} {action}")
    table = deltaic.DeltaTable(tmp_path / "t")
    assert table.schema == deltaic.Schema.from_ddl(columns)
    (row,) = table.scan().to_arrow().to_pylist()
    assert (row["id"], row["p"], row["st"]["a"], row["st"]["b"], row["ar"][0]["x"]) == (1, "a", 1, 2, 3)
    assert {name: dict(row["m"])["k"][name] for name in "xy"} == {"x": 4, "y": 5}


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("ADD COLUMNS (x INT AFTER nothing)", "no such field to place"),
        ("ADD COLUMNS (st.x INT AFTER id)", "no such field to place"),
        ("ADD COLUMNS (p.x INT)", "only a struct"),
        ("ADD COLUMNS (st.a INT)", "exists already"),
        ("ADD COLUMN IF NOT EXISTS x INT", "does not parse; found IF; expected a new column"),
        ("ADD COLUMNS (x INT, st.c INT, X INT)", "comes twice"),
        ("ADD COLUMNS (x STRUCT<a: INT NOT NULL>)", "must take null"),
        ("ALTER COLUMN ar.element COMMENT 'x'", "only a column or a field of a struct has a comment"),
        ("ALTER COLUMN st TYPE STRUCT<a: INT, b: BIGINT>", "the type of a struct"),
        ("CHANGE COLUMN st st STRUCT<a: INT, b: INT NOT NULL>", "the type of a struct"),
        ("CHANGE COLUMN st st STRUCT<a: INT, b: INT COMMENT 'x'>", "the type of a struct"),
        ("CHANGE COLUMN st st STRUCT<A: INT, b: INT>", "the type of a struct"),
        ("CHANGE COLUMN m m MAP<STRING, STRUCT<x: INT>>", "the type of a map"),
        ("CHANGE COLUMN ar ar ARRAY<INT>", "the type of an array"),
        ("CHANGE COLUMN id id INT NOT NULL", "cannot set NOT NULL"),
        ("CHANGE COLUMN id id INT DEFAULT 5", "a type, a comment and a position"),
        ("ALTER COLUMN id COMMENT 'x', ID FIRST", "changed twice"),
        ("ALTER COLUMN st.a COMMENT 'x', st FIRST", "changed twice"),
        ("ALTER COLUMN id COMMENT 'x', p TYPE INT", "only become a wider one"),
        ("SET TBLPROPERTIES ('owner' = 'me')", "is reserved"),
        ("UNSET TBLPROPERTIES ('location')", "is reserved"),
        ("ALTER COLUMN ar.element FIRST", "cannot be moved"),
        ("CHANGE COLUMN st st STRUCT<a: INT, b: INT, c: INT>", "type of a struct"),
        ("CHANGE COLUMN id other INT", "cannot rename a column"),
        ("REPLACE COLUMNS (id INT)", "drops none of the table's columns; found without p, st, ar, m, k"),
        (f"REPLACE COLUMNS ({PLACED.replace('id INT', 'id BIGINT')})", "changes no type"),
        (f"REPLACE COLUMNS ({PLACED.replace('id INT', 'id INT NOT NULL')})", "NOT NULL"),
        (f"REPLACE COLUMNS ({PLACED.replace('id INT', 'id INT DEFAULT 5')})", "changes only their order"),
    ],
)
def test_places_that_cannot_be(tmp_path: Path, action: str, message: str) -> None:
    place = f"delta.`{tmp_path}/t`"
    deltaic.sql(f"CREATE TABLE {place} ({PLACED})")
    with pytest.raises(DeltaError, match=message):
        deltaic.sql(f"ALTER TABLE {place} {action}")
    assert deltaic.DeltaTable(tmp_path / "t").version == 0


def test_mapped_columns_are_replaced(tmp_path: Path) -> None:
    """As in delta-spark: columns may be dropped or added, but not both in one place."""
    place = f"delta.`{tmp_path}/t`"
    deltaic.sql(
        f"CREATE TABLE {place} (a INT COMMENT 'x', b INT, s STRUCT<x: INT, y: INT>, l ARRAY<STRUCT<u: INT, v:"
        " INT>>, p INT) PARTITIONED BY (p) TBLPROPERTIES ('delta.columnMapping.mode' = 'name',"
        " 'delta.dataSkippingStatsColumns' = 'a,b')"
    )
    deltaic.sql(
        f"INSERT INTO {place} VALUES (1, 2, named_struct('x', 3, 'y', 4), array(named_struct('u', 5, 'v',"
        " 6)), 7)"
    )
    table = deltaic.DeltaTable(tmp_path / "t")
    deltaic.sql(
        f"ALTER TABLE {place} REPLACE COLUMNS (P INT, s STRUCT<Y: INT>, a INT COMMENT 'z', l ARRAY<STRUCT<v:"
        " INT, u: INT, w: INT>>)"
    )
    table.refresh()
    (row,) = table.scan().to_pylist()
    assert row == {"p": 7, "s": {"y": 4}, "a": 1, "l": [{"v": 6, "u": 5, "w": None}]}
    assert table.schema.field("a").metadata["comment"] == "z"
    assert table.metadata.configuration["delta.dataSkippingStatsColumns"] == "a"
    assert table.history(1)[0]["operation"] == "REPLACE COLUMNS"
    deltaic.sql(
        f"ALTER TABLE {place} REPLACE COLUMNS (p INT, s STRUCT<y: INT, x: INT>, a INT, b INT, l"
        " ARRAY<STRUCT<v: INT>>)"
    )
    table.refresh()
    (row,) = table.scan().to_pylist()
    assert row == {"p": 7, "s": {"y": 4, "x": None}, "a": 1, "b": None, "l": [{"v": 6}]}
    assert table.schema.field("a").metadata["comment"] == "z", "kept, as in delta-spark"
    version = table.version
    for columns, message in (
        ("p INT, s STRUCT<y: INT, x: INT>, a INT, c INT, l ARRAY<STRUCT<v: INT>>", "c instead of b"),
        ("p INT, s STRUCT<y: INT, z: INT>, a INT, b INT, l ARRAY<STRUCT<v: INT>>", "s.z instead of s.x"),
        ("s STRUCT<y: INT, x: INT>, a INT", "partition column"),
        ("p INT, a BIGINT", "changes no type"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            deltaic.sql(f"ALTER TABLE {place} REPLACE COLUMNS ({columns})")
    table.refresh()
    assert table.version == version


def test_a_column_has_one_place(table: deltaic.DeltaTable) -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be combined"):
        table.alter.change_column("id", first=True, after="part")
    table.alter.change_column("id", after="part")
    entry = table.history(1)[0]
    assert (table.schema.names, entry["operationParameters"]["position"]) == (
        ["part", "id", "amount"],
        "AFTER part",
    )
    table.alter.add_columns("x INT", places={"x": None})
    assert table.schema.names == ["x", "part", "id", "amount"]
    assert table.scan(["id", "part"]).to_arrow().num_rows == 4


def answered(statement: str, table: deltaic.DeltaTable) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in deltaic.sql(statement, tables={"t": table}).to_arrow().to_pylist()]


def test_describe_partitions_and_the_table_itself(table: deltaic.DeltaTable) -> None:
    columns = [("id", "bigint", None), ("part", "string", None), ("amount", "double", None)]
    partitions = [
        ("# Partition Information", "", ""),
        ("# col_name", "data_type", "comment"),
        ("part", "string", None),
    ]
    assert answered("DESCRIBE t", table) == columns + partitions
    deltaic.sql("COMMENT ON TABLE t IS 'all of them'", tables={"t": table})
    for words in ("DESCRIBE EXTENDED", "DESC FORMATTED", "DESCRIBE TABLE EXTENDED"):
        whole = answered(f"{words} t", table)
        assert whole[:8] == [*columns, *partitions, ("", "", ""), ("# Detailed Table Information", "", "")]
        said = {name: value for name, value, _ in whole[8:]}
        assert (said["Comment"], said["Location"], said["Provider"]) == (
            "all of them",
            table.location,
            "delta",
        )
        assert "delta.enableDeletionVectors=true" in said["Table Properties"]
    deltaic.sql("COMMENT ON TABLE t IS NULL", tables={"t": table})
    assert "Comment" not in {row[0] for row in answered("DESCRIBE EXTENDED t", table)}


def test_describe_of_a_column_and_of_tables_called_like_words(table: deltaic.DeltaTable) -> None:
    assert answered("DESCRIBE t ID", table) == [
        ("col_name", "id"),
        ("data_type", "bigint"),
        ("comment", "NULL"),
    ]
    deltaic.sql("ALTER TABLE t ALTER COLUMN id COMMENT 'the id'", tables={"t": table})
    assert answered("DESCRIBE EXTENDED t id", table)[2] == ("comment", "the id")
    with pytest.raises(InvalidArgumentError, match="nothing"):
        answered("DESCRIBE t nothing", table)
    for name in ("table", "extended", "history"):
        assert deltaic.sql(f"DESCRIBE {name}", tables={name: table}).count() == 6


def test_show(table: deltaic.DeltaTable) -> None:
    assert (
        answered("SHOW COLUMNS IN t", table)
        == answered("SHOW COLUMNS FROM t", table)
        == [("id",), ("part",), ("amount",)]
    )
    partitions = deltaic.sql("SHOW PARTITIONS t", tables={"t": table}).to_arrow()
    assert sorted(row["part"] or "" for row in partitions.to_pylist()) == ["", "a", "b"]
    assert partitions.schema.names == ["part"]
    assert answered("SHOW PARTITIONS t PARTITION (PART = 'a')", table) == [("a",)]
    assert answered("SHOW PARTITIONS t PARTITION (part = NULL)", table) == [(None,)]
    assert answered("SHOW PARTITIONS t PARTITION (part = 'none')", table) == []
    with pytest.raises(SchemaMismatchError, match="PARTITIONS takes only partition columns"):
        answered("SHOW PARTITIONS t PARTITION (id = 1)", table)
    properties = dict(answered("SHOW TBLPROPERTIES t", table))
    assert properties["delta.enableDeletionVectors"] == "true"
    assert (properties["delta.minReaderVersion"], properties["delta.feature.deletionVectors"]) == (
        "3",
        "supported",
    )
    assert answered("SHOW TBLPROPERTIES t ('delta.minWriterVersion')", table) == [
        ("delta.minWriterVersion", "7")
    ]
    ((key, answer),) = answered("SHOW TBLPROPERTIES t (a.b)", table)
    assert key == "a.b"
    assert "does not have property: a.b" in answer
    with pytest.raises(InvalidArgumentError, match="COLUMNS, PARTITIONS, TBLPROPERTIES or CREATE TABLE"):
        answered("SHOW TABLES", table)


def test_show_partitions_of_a_table_without(tmp_path: Path) -> None:
    plain = deltaic.write(tmp_path / "plain", {"id": [1]})
    with pytest.raises(InvalidArgumentError, match="partitioned"):
        answered("SHOW PARTITIONS t", plain)


def test_no_such_table(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError):
        deltaic.sql(f"DESCRIBE DETAIL delta.`{tmp_path / 'nowhere'}`")


DEFINITION = """CREATE TABLE delta.`{path}` (
  id bigint not null generated always as identity (start with 5 increment by 2),
  `a b` string comment 'it\\'s',
  code varchar(3) default 'x',
  at timestamp,
  day date generated always as (CAST(at AS DATE)))
USING delta
PARTITIONED BY (day)
COMMENT 'all of them'
TBLPROPERTIES (
  'delta.columnMapping.mode' = 'name', 'delta.enableRowTracking' = 'true',
  'delta.enableChangeDataFeed' = 'true', 'delta.feature.allowColumnDefaults' = 'supported',
  'delta.constraints.low' = 'id < 100', 'mine' = 'x y')
"""


def shown(path: Path) -> str:
    (statement,) = deltaic.sql(f"SHOW CREATE TABLE delta.`{path}`").to_arrow()["createtab_stmt"].to_pylist()
    return str(statement)


def test_show_create_table_makes_the_same_table(tmp_path: Path) -> None:
    deltaic.sql(DEFINITION.format(path=tmp_path / "t"))
    deltaic.sql(
        f"INSERT INTO delta.`{tmp_path / 't'}` (`a b`, at) VALUES ('x', TIMESTAMP '2024-01-02 00:00:00')"
    )
    statement = shown(tmp_path / "t")
    lines = statement.splitlines()
    assert lines[:7] == DEFINITION.format(path=tmp_path / "t").splitlines()[:7]
    assert lines[7:10] == ["PARTITIONED BY (day)", "COMMENT 'all of them'", "TBLPROPERTIES ("]
    assert "maxColumnId" not in statement
    assert "materialized" not in statement
    deltaic.sql(statement.replace(str(tmp_path / "t"), str(tmp_path / "again")))
    assert shown(tmp_path / "again").replace(str(tmp_path / "again"), str(tmp_path / "t")) == statement
    clustered = (
        "(id bigint, st struct<`a b`: int>) USING delta CLUSTER BY (st.`a b`, id) TBLPROPERTIES"
        " (delta.columnMapping.mode = 'id')"
    )
    deltaic.sql(f"CREATE TABLE delta.`{tmp_path / 'k'}` {clustered}")
    deltaic.sql(shown(tmp_path / "k").replace(str(tmp_path / "k"), str(tmp_path / "l")))
    assert deltaic.DeltaTable(tmp_path / "l").detail().clustering_columns == ("st.`a b`", "id")


def test_create_table_like(tmp_path: Path) -> None:
    source, copy = tmp_path / "t", tmp_path / "copy"
    deltaic.sql(DEFINITION.format(path=source))
    insert = "INSERT INTO delta.`{}` (`a b`, at) VALUES ('x', TIMESTAMP '2024-01-02 00:00:00')"
    deltaic.sql(insert.format(source))
    deltaic.sql(f"CREATE TABLE delta.`{copy}` LIKE delta.`{source}` USING delta TBLPROPERTIES (mine = 'y')")
    made, old = deltaic.DeltaTable(copy), deltaic.DeltaTable(source)
    assert shown(copy).replace(str(copy), str(source)) == shown(source).replace("x y", "y")
    assert (made.scan().count(), made.metadata.id == old.metadata.id, made.protocol) == (
        0,
        False,
        old.protocol,
    )
    deltaic.sql(insert.format(copy))
    assert made.at().scan(["id"]).to_arrow()["id"].to_pylist() == [7]  # numbers continue
    with pytest.raises(TableAlreadyExistsError):
        deltaic.sql(f"CREATE TABLE delta.`{copy}` LIKE delta.`{source}`")
    deltaic.sql(f"CREATE TABLE IF NOT EXISTS delta.`{copy}` LIKE delta.`{source}`")
    for clause in ("COMMENT 'x'", "PARTITIONED BY (id)", "AS SELECT 1"):
        with pytest.raises(InvalidArgumentError, match="LIKE another one"):
            deltaic.sql(f"CREATE TABLE delta.`{tmp_path / 'other'}` LIKE delta.`{source}` {clause}")
    with pytest.raises(TableNotFoundError):
        deltaic.sql(f"CREATE TABLE delta.`{tmp_path / 'other'}` LIKE delta.`{tmp_path / 'none'}`")
    assert not (tmp_path / "other").exists()


def test_analyze_table_is_refused(table: deltaic.DeltaTable) -> None:
    with pytest.raises(UnsupportedFeatureError, match="ANALYZE TABLE: statistics are in the log"):
        answered("ANALYZE TABLE t COMPUTE STATISTICS", table)
    with pytest.raises(UnsupportedFeatureError, match="AS SERDE"):
        answered("SHOW CREATE TABLE t AS SERDE", table)


def test_a_table_without_columns(tmp_path: Path) -> None:
    name = f"delta.`{tmp_path / 't'}`"
    deltaic.sql(f"CREATE EXTERNAL TABLE {name} USING delta TBLPROPERTIES ('my.own' = '1')")
    with pytest.raises(SchemaMismatchError, match="the table has no columns yet"):
        deltaic.sql(f"SELECT count(*) FROM {name}").to_arrow()
    with pytest.raises(SchemaMismatchError, match="a column that the table lacks"):
        deltaic.write(tmp_path / "t", {"id": [1]}, mode="append")
    deltaic.sql(f"INSERT WITH SCHEMA EVOLUTION INTO {name} SELECT 1 AS id")
    assert deltaic.sql(f"SELECT * FROM {name}").to_arrow().to_pylist() == [{"id": 1}]
    with pytest.raises(InvalidArgumentError, match="a table needs columns"):
        deltaic.sql(f"CREATE OR REPLACE TABLE {name} USING delta")
