"""Runs the statements about Delta tables by name for which Spark would load the table's data source, such as
DROP TABLE and RENAME, and statements about permanent views over Delta tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltaic.engine.spark import settings
from deltaic.engine.spark.cached_rows import forget_cached
from deltaic.engine.spark.native.session import has_jvm
from deltaic.errors import (
    InvalidArgumentError,
    SchemaMismatchError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
)
from deltaic.protocol.schema import CHAR_TYPES, Field, Schema
from deltaic.spark.builders import FORMATS
from deltaic.spark.named_tables import (
    OtherTable,
    drop,
    enter_view,
    is_temporary_view,
    named_table,
    naming,
    other_table,
    path_at,
    path_in_catalog,
    query_of_view,
    relocate,
    rename,
    schema_and_name,
)
from deltaic.spark.patches import spark_sql
from deltaic.spark.references import Reference, references, references_of_view, view_over_delta
from deltaic.spark.view_clauses import ViewClauses
from deltaic.spark.view_statements import storage_level
from deltaic.spark.views import path_of
from deltaic.sql.describe import DETAIL
from deltaic.sql.names import Name, read_name
from deltaic.sql.results import rows_of
from deltaic.sql.tokens import Reader
from deltaic.sql_text import quote_name
from deltaic.table import DeltaTable

if TYPE_CHECKING:
    from deltaic.rows.rows import Rows


def run_in_catalog(spark: Any, text: str, query: Callable[[str], Any]) -> bool:
    """Runs a statement of the list below and returns True. For any other statement it runs nothing and
    returns False. `query`: a function that returns the DataFrame of a query.

    DROP TABLE [IF EXISTS] name [PURGE] · ALTER TABLE name RENAME TO name | SET LOCATION 'path' · REFRESH
    TABLE name · CACHE [LAZY] TABLE name · UNCACHE TABLE name · ANALYZE TABLE view · CREATE [OR REPLACE] VIEW
    [IF NOT EXISTS] name [clauses] AS query · ALTER VIEW name AS query | RENAME TO name · CREATE TABLE name
    LIKE name USING another format
    """
    reader = Reader(text)
    if reader.at("CREATE", "TABLE"):
        return _makes_table_like(spark, reader)
    if reader.at("CREATE"):
        return _makes_view(spark, reader, query)
    if reader.accept("ALTER", "VIEW"):
        return _changes_view(spark, reader, query)
    for words, call in _STATEMENTS.items():
        if reader.accept(*words):
            reader.accept("IF", "EXISTS")
            try:
                name = read_name(reader)
            except InvalidArgumentError:
                return False
            return name.path is None and _is_known(spark, name, words) and call(spark, name, reader)
    return False


def _is_known(spark: Any, name: Name, words: tuple[str, ...]) -> bool:
    """True if a statement with these first words, about a table or view of this name, is one of
    `run_in_catalog`."""
    if named_table(spark, name.parts) is not None:
        return words not in _OF_VIEWS_ALONE
    return words in _OF_VIEWS and view_over_delta(spark, name.parts) is not None


def _drop(spark: Any, name: Name, reader: Reader) -> bool:
    purges = reader.accept("PURGE")
    reader.end()
    forget_cached(spark, str(name))
    drop(spark, name, purges=purges)
    return True


def _alter(spark: Any, name: Name, reader: Reader) -> bool:
    if reader.accept("SET", "LOCATION"):
        location = path_at(reader.string())
        reader.end()
        _check_location(spark, path_in_catalog(spark, name.parts) or "", location)
        relocate(spark, name, location)
        return True
    if not reader.accept("RENAME", "TO"):
        return False
    new = read_name(reader)
    reader.end()
    rename(spark, name, new)
    return True


def _check_location(spark: Any, path: str, location: str) -> None:
    """Raises InvalidArgumentError if there is no table at `location`, or if its schema or partition columns
    differ from those of the table at `path`."""
    if not DeltaTable.exists(location):
        raise InvalidArgumentError(
            "[DELTA_MISSING_DELTA_TABLE] the path is not a Delta table",
            found=location,
            expected="the location of a table",
        )
    old, new = DeltaTable(path, spark=spark), DeltaTable(location, spark=spark)
    if settings.is_on(spark, settings.BYPASS_LOCATION_CHECK):
        return
    if (old.schema, old.metadata.partition_columns) != (new.schema, new.metadata.partition_columns):
        raise InvalidArgumentError(
            "[DELTA_SET_LOCATION_SCHEMA_MISMATCH] the table at the new location has another schema or other"
            " partition columns",
            where=location,
            found=f"({new.schema.to_ddl()}), partitioned by {list(new.metadata.partition_columns)}",
            expected=f"({old.schema.to_ddl()}), partitioned by {list(old.metadata.partition_columns)}",
        ).with_values(old_schema=old.schema, new_schema=new.schema)


def _refresh(spark: Any, name: Name, reader: Reader) -> bool:
    reader.end()
    spark.catalog.refreshTable(str(name))
    return True


def _cache(spark: Any, name: Name, reader: Reader) -> bool:
    if not _cache_later(spark, name, reader):
        return False
    spark.table(str(name)).count()
    return True


def _cache_later(spark: Any, name: Name, reader: Reader) -> bool:
    level = storage_level(reader)
    if not reader.done:
        return False
    spark.catalog.cacheTable(str(name), None if level is None else _storage_level(level))
    return True


def _storage_level(name: str) -> Any:
    from pyspark import StorageLevel

    level = getattr(StorageLevel, name.upper(), None)
    if not isinstance(level, StorageLevel):
        raise InvalidArgumentError("unknown storage level", found=name, expected="such as DISK_ONLY")
    return level


def _uncache(spark: Any, name: Name, reader: Reader) -> bool:
    reader.end()
    spark.catalog.uncacheTable(str(name))
    return True


def _analyze_view(spark: Any, name: Name, reader: Reader) -> bool:
    """Raises UnsupportedFeatureError, unless the view's rows are cached: Spark has their statistics."""
    if not spark.catalog.isCached(str(name)):
        raise UnsupportedFeatureError(
            "[UNSUPPORTED_FEATURE.ANALYZE_VIEW] ANALYZE TABLE of a view", found=str(name), expected="a table"
        )
    return True


_STATEMENTS: dict[tuple[str, ...], Callable[[Any, Name, Reader], bool]] = {
    ("DROP", "TABLE"): _drop,
    ("ALTER", "TABLE"): _alter,
    ("REFRESH", "TABLE"): _refresh,
    ("CACHE", "TABLE"): _cache,
    ("CACHE", "LAZY", "TABLE"): _cache_later,
    ("UNCACHE", "TABLE"): _uncache,
    ("ANALYZE", "TABLE"): _analyze_view,
}
_OF_VIEWS_ALONE = {("ANALYZE", "TABLE")}
_OF_VIEWS = _OF_VIEWS_ALONE | {words for words in _STATEMENTS if words[0] in ("REFRESH", "CACHE", "UNCACHE")}


def _makes_view(spark: Any, reader: Reader, query: Callable[[str], Any]) -> bool:
    reader.expect("CREATE")
    replaces = reader.accept("OR", "REPLACE")
    if not reader.accept("VIEW"):
        return False
    if_missing = reader.accept("IF", "NOT", "EXISTS")
    name = read_name(reader)
    clauses = ViewClauses.read(reader)
    if not reader.accept("AS"):
        return False
    text = reader.rest("a query")
    if not references(Reader(text), spark):
        return False
    clauses.refuse_collation()
    existing = other_table(spark, schema_and_name(spark, name.parts))
    if existing is not None:
        if if_missing:
            return True
        if replaces and existing.kind != "VIEW":
            raise InvalidArgumentError(
                "[EXPECT_VIEW_NOT_TABLE.NO_ALTERNATIVE] the name is that of a table", found=str(name)
            ).with_values(**naming(spark, name.parts))
        if not replaces:
            raise TableAlreadyExistsError(
                "the name is that of another table or view",
                where=str(name),
                expected="CREATE OR REPLACE VIEW",
            )
    _enter(spark, name, text, clauses, query, replaces=replaces)
    return True


def _enter(
    spark: Any,
    name: Name,
    text: str,
    clauses: ViewClauses | None,
    query: Callable[[str], Any],
    *,
    replaces: bool,
) -> None:
    """Creates a view. `clauses`: None for ALTER VIEW, by which a view keeps its clauses."""
    occurrences = references(Reader(text), spark)
    for each in occurrences if not has_jvm(spark) else ():
        if each.by_path or each.changes:
            what = "table_changes" if each.changes else "a table by path"
            raise UnsupportedFeatureError(
                f"a permanent view of {what} is not supported on Spark Connect",
                expected="a table by name, or CREATE TEMPORARY VIEW",
            )
    if clauses is not None and clauses.schema_mode in ("BINDING", "EVOLUTION") and not has_jvm(spark):
        raise UnsupportedFeatureError(
            "the schema mode of a view is not supported on Spark Connect",
            found=clauses.schema_mode,
            expected="TYPE EVOLUTION",
        )
    _refuse_cycle(spark, name, occurrences)
    frame = query(text)
    given = ViewClauses() if clauses is None else clauses
    _check_columns(spark, name, given.columns, frame.columns)
    schema = given.of(frame).schema
    tables = [(each.parts, each.path) for each in occurrences if each.view is None and each.parts]
    enter_view(spark, name, text, frame.columns, schema, clauses, tables, replaces=replaces)


def _check_columns(spark: Any, name: Name, given: Sequence[str], columns: Sequence[str]) -> None:
    """Raises an error if a view would have two columns of one name, or if there are more or fewer names than
    columns of its query."""
    if given and len(given) != len(columns):
        kind = "TOO_MANY" if len(columns) > len(given) else "NOT_ENOUGH"
        raise InvalidArgumentError(
            f"[CREATE_VIEW_COLUMN_ARITY_MISMATCH.{kind}_DATA_COLUMNS] a name for each column of the query",
            where=naming(spark, name.parts)["quoted_table"],
            found=tuple(columns),
            expected=tuple(given),
        )
    is_sensitive = str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"
    folded = [each if is_sensitive else each.lower() for each in given or columns]
    if twice := next((each for each in folded if folded.count(each) > 1), None):
        raise SchemaMismatchError("a column comes twice", where=str(name), found=twice)


def _refuse_cycle(spark: Any, name: Name, occurrences: Sequence[Reference]) -> None:
    """Raises InvalidArgumentError if a query with these references reads the view `name`, itself or through
    other views, so that the query cannot be the view's."""
    place = [part.lower() for part in schema_and_name(spark, name.parts)]

    def follow(occurrences: Sequence[Reference], path: tuple[str, ...]) -> None:
        for each in occurrences:
            if each.view is None:
                continue
            reached = (*path, naming(spark, each.parts)["quoted_table"])
            if [part.lower() for part in each.parts] == place:
                raise InvalidArgumentError(
                    "[RECURSIVE_VIEW] the query of the view reads the view itself",
                    where=path[0],
                    found=" -> ".join(reached),
                    expected="a query of other tables and views",
                )
            follow(references_of_view(each.view, spark), reached)

    follow(occurrences, (naming(spark, name.parts)["quoted_table"],))


def _changes_view(spark: Any, reader: Reader, query: Callable[[str], Any]) -> bool:
    """Runs ALTER VIEW name AS query, if the query reads Delta tables, and ALTER VIEW name RENAME TO name, if
    the view does. Returns False for other ALTER VIEW statements, which Spark runs."""
    name = read_name(reader)
    if reader.accept("RENAME", "TO"):
        new = read_name(reader)
        reader.end()
        if not has_jvm(spark) or view_over_delta(spark, name.parts) is None:
            return False
        rename(spark, name, new)
        return True
    if not reader.accept("AS"):
        return False
    text = reader.rest("a query")
    if not references(Reader(text), spark):
        return False
    if query_of_view(spark, name.parts) is not None:
        _enter(spark, name, text, None, query, replaces=True)
        return True
    if not is_temporary_view(spark, name.parts):
        raise InvalidArgumentError(
            "[TABLE_OR_VIEW_NOT_FOUND] no such view", found=str(name), expected="a view"
        )
    query(f"CREATE OR REPLACE TEMPORARY VIEW {quote_name(name.parts[0])} AS {text}")
    return True


def _makes_table_like(spark: Any, reader: Reader) -> bool:
    """Runs CREATE TABLE [IF NOT EXISTS] name LIKE a Delta table USING another format: Spark creates a table
    with the same columns and partition columns."""
    reader.expect("CREATE", "TABLE")
    if_missing = "IF NOT EXISTS " if reader.accept("IF", "NOT", "EXISTS") else ""
    try:
        name = read_name(reader)
        source = read_name(reader) if reader.accept("LIKE") else None
    except InvalidArgumentError:
        return False
    path = None if source is None else path_of(spark, source)
    if path is None or not reader.accept("USING"):
        return False
    provider = reader.name()
    if provider.lower() in FORMATS:
        return False
    table = DeltaTable(path, spark=spark)
    columns = Schema(map(_plain, table.schema)).to_ddl()
    partitions = ", ".join(map(quote_name, table.metadata.partition_columns))
    partitioned = f" PARTITIONED BY ({partitions})" if partitions else ""
    rest = "" if reader.done else reader.rest("a clause")
    spark_sql(spark, f"CREATE TABLE {if_missing}{name} ({columns}) USING {provider}{partitioned} {rest}")
    return True


def _plain(field: Field) -> Field:
    """Returns a column without properties that only Delta tables have: NOT NULL, default, generated and
    identity values."""
    metadata = {key: field.metadata[key] for key in ("comment", CHAR_TYPES) if key in field.metadata}
    return field.with_(nullable=True, metadata=metadata)


def detail_of(spark: Any, table: OtherTable) -> Rows:
    """Returns what the catalog knows of a table of another format, as a row of DESCRIBE DETAIL."""
    names = naming(spark, table.parts)
    columns = spark.catalog.listColumns(names["quoted_table"])
    row = {
        "format": table.provider,
        "name": names["table"],
        "description": spark.catalog.getTable(names["quoted_table"]).description or "",
        "location": None if table.location is None else path_at(table.location),
        "partitionColumns": [column.name for column in columns if column.isPartition],
        "properties": [],
    }
    return rows_of(pa.Table.from_pylist([row], DETAIL))
