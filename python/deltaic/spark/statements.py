"""`deltaic.spark.sql`, and `spark.sql` after `deltaic.spark.enable`: SQL on Delta tables in a Spark session.

The first words of a statement and the table that it names decide which part runs it. `deltaic.sql` runs
statements that change or describe a Delta table, on the cluster. Spark runs queries, after their Delta tables
are replaced by temporary views. All other statements go to Spark unchanged.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from datetime import datetime
from typing import TYPE_CHECKING, Any

from deltaic.engine.spark.engine import application_of, enabled_as
from deltaic.engine.spark.expressions import RANDOM
from deltaic.engine.spark.native import catalog
from deltaic.engine.spark.native.session import has_jvm, session_catalog
from deltaic.engine.spark.settings import timestamps_of, with_names_in_backticks
from deltaic.engine.spark.stores import opening
from deltaic.errors import InvalidArgumentError, TableNotFoundError, UnsupportedFeatureError
from deltaic.plan.literal import col
from deltaic.planning.columns import check_has_columns
from deltaic.protocol.schema import Schema
from deltaic.spark import patches, plan_functions
from deltaic.spark.builders import FORMATS
from deltaic.spark.catalog_statements import detail_of, run_in_catalog
from deltaic.spark.conversions import convert_named, following_sink_log
from deltaic.spark.explain import explained
from deltaic.spark.frames import frame_of, newest, read, version_at
from deltaic.spark.heads import CHANGES, by_name, needs_delta, passes_head, provider_of, shows, target_of
from deltaic.spark.identifiers import identified, immediate, is_script
from deltaic.spark.named_tables import (
    ViewQuery,
    other_table,
    path_in_catalog,
    schema_and_name,
)
from deltaic.spark.parameters import over_frames, with_arguments, with_values
from deltaic.spark.partition_paths import partition_of
from deltaic.spark.patches import original, spark_sql
from deltaic.spark.raising import raises_as_spark
from deltaic.spark.references import Reference, references, spliced, text_of_view, unsupported_argument
from deltaic.spark.script_runs import run_script
from deltaic.spark.session_tables import SparkTables, timestamp_of
from deltaic.spark.statement_errors import creates_function, delta_errors, refuse_unsupported, runner
from deltaic.spark.view_statements import Projection, projection, view_statement
from deltaic.spark.views import (
    check_columns_of_view,
    lost_table,
    path_of,
    path_of_projection,
    path_of_stored_projection,
    path_of_stored_view,
    projected,
)
from deltaic.sql.names import Name, read_name
from deltaic.sql.results import nothing
from deltaic.sql.statement import run
from deltaic.sql.subqueries import read_definitions
from deltaic.sql.tokens import Reader, inserts
from deltaic.sql.upkeep import read_conversion
from deltaic.sql_text import quote_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["install", "sql", "uninstall"]

_MAY_NAME_DELTA = re.compile(
    r"\bdelta(ic)?\s*\.\s*`|\bIDENTIFIER\s*\(|\bEXECUTE\s+IMMEDIATE\b|\bUSING\s+`?delta|\bAS\s+OF\b"
    r"|\b(INSERT|DELETE|UPDATE|MERGE|TRUNCATE|ALTER|OPTIMIZE|REORG|VACUUM|RESTORE|DESC|DESCRIBE|CONVERT"
    r"|GENERATE|FSCK)\b",
    re.IGNORECASE,
)
"""A text that matches neither this pattern nor _NAMES_A_TABLE goes to Spark without being parsed."""
_NAMES_A_TABLE = re.compile(
    r"\b(FROM|JOIN|TABLE|USING|COLUMNS|PARTITIONS|TBLPROPERTIES|table_changes)\b", re.IGNORECASE
)

_TYPES_OF_ENDS = ("IntegerType", "LongType", "StringType", "TimestampType")
"""Types of the arguments of table_changes that say where the range begins and ends."""

_CATALOG_WORDS = {"DROP", "ALTER", "REFRESH", "CACHE", "UNCACHE", "CREATE", "ANALYZE", "SHOW"}
"""First words of the statements that `run_in_catalog` may run."""


@raises_as_spark()
def sql(spark: Any, statement: str, args: Any = None, **parameters: Any) -> DataFrame:
    """Runs one SQL statement in a Spark session, and returns a DataFrame with delta-spark's columns.

    `statement`: any statement of Spark. The following also work on Delta tables, named as delta.`path`, by a
    name of the session catalog or by a temporary view: SELECT with VERSION or TIMESTAMP AS OF, INSERT (INTO,
    OVERWRITE, REPLACE WHERE), DELETE, UPDATE, MERGE, CREATE, CTAS, CLONE, ALTER, TRUNCATE, OPTIMIZE, REORG,
    VACUUM, RESTORE, FSCK, GENERATE, CONVERT, DESCRIBE, SHOW COLUMNS, PARTITIONS and TBLPROPERTIES, COMMENT ON
    TABLE.
    `args`: values of the markers `:name` (a dict) or `?` (a list), as in `SparkSession.sql`.
    `parameters`: values of `{name}` in the text, which may be DataFrames, as in `SparkSession.sql`.

    Raises InvalidArgumentError for a statement that does not parse, the errors of the command, and the
    errors of Spark for statements that it runs.

    >>> query = "SELECT count(*) FROM delta.`/data/flights` VERSION AS OF :v"
    >>> deltaic.spark.sql(spark, query, {"v": 0}).first()[0]
    3
    """
    if not isinstance(statement, str) or not _may_name_delta(statement):
        return spark_sql(spark, statement, args, **parameters)
    if parameters:
        return with_values(
            spark, statement, parameters, lambda text, frames: _dispatched(spark, text, args, frames)
        )
    return _dispatched(spark, statement, args, {})


def queried(spark: Any, text: str, frames: Mapping[str, Any]) -> DataFrame:
    """Runs a query that is part of a statement, or a statement of a script. `frames`: DataFrames by their
    names in the text, if the session has no tables of these names."""
    return (
        _dispatched(spark, text, None, frames) if frames or _may_name_delta(text) else spark_sql(spark, text)
    )


def _may_name_delta(text: str) -> bool:
    return _MAY_NAME_DELTA.search(text) is not None or _NAMES_A_TABLE.search(text) is not None


_SQL = "_deltaic_sql"
_WITH_TYPES = {"ALTER", "CREATE", "REPLACE"}
"""First words of statements that have types of columns as DDL."""


def install(spark: Any) -> None:
    """Replaces `spark.sql` by `sql`, and `spark.table` by a function that also takes delta.`path`, in this
    session and the other enabled sessions of its application. A second call changes nothing."""
    patches.wrap(type(spark), "sql", _enabled_sql)
    patches.wrap(type(spark), "table", _enabled_table)
    setattr(application_of(spark), _SQL, True)

    def enabled(sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:
        return sql(spark, sqlQuery, args, **kwargs)

    enabled.__doc__ = sql.__doc__
    spark.sql = enabled

    def table(tableName: str) -> DataFrame:
        return _table(spark, tableName)

    table.__doc__ = type(spark).table.__doc__
    spark.table = table


def uninstall(spark: Any) -> None:
    """Restores Spark's own `sql` and `table` in all sessions of the application."""
    setattr(application_of(spark), _SQL, False)
    forget(spark)


def forget(spark: Any) -> None:
    """Removes the replacements of `sql` and `table` from this session. Other sessions of its application keep
    them."""
    for name in ("sql", "table"):
        spark.__dict__.pop(name, None)


def is_installed(spark: Any) -> bool:
    """True if deltaic has replaced `spark.sql` of the session."""
    return enabled_as(spark) is not None and bool(getattr(application_of(spark), _SQL, False))


def _enabled_sql(original_sql: Any) -> Any:
    @functools.wraps(original_sql)
    def enabled_sql(self: Any, sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:
        return (sql if is_installed(self) else original_sql)(self, sqlQuery, args, **kwargs)

    return enabled_sql


def _enabled_table(original_table: Any) -> Any:
    @functools.wraps(original_table)
    def enabled_table(self: Any, tableName: str) -> DataFrame:
        return _table(self, tableName) if is_installed(self) else original_table(self, tableName)

    return enabled_table


@raises_as_spark()
def _table(spark: Any, name: str) -> DataFrame:
    if isinstance(name, str):
        return spark.read.table(name)
    return original(type(spark).table)(spark, name)


def _dispatched(spark: Any, text: str, args: Any, frames: Mapping[str, Any]) -> DataFrame:
    """Runs a statement by `deltaic.sql` if it changes or describes a Delta table, else by Spark. `frames`:
    DataFrames by their names in the text, if the session has no tables of these names."""
    names_table = functools.partial(_names_table, spark)
    text = with_names_in_backticks(spark, text)
    if is_script(text, names_table):
        return run_script(
            spark,
            with_arguments(text, args),
            raises_as_spark()(functools.partial(queried, spark, frames=frames)),
        )
    try:
        inner = immediate(spark, text, args, names_table)
        text, args = identified(spark, text, args)
        reader = Reader(text)
    except InvalidArgumentError:  # several statements, or a text that only Spark can parse
        return over_frames(spark, text, args, frames)
    if inner is not None:
        return sql(spark, inner.text, inner.args)
    if any(_changes_delta(spark, each) for each in _inserts(reader)):
        statements = _inserts(Reader(with_arguments(text, args)))
        return [_dispatched(spark, each, None, frames) for each in statements][-1]
    if reader.tokens[0].keyword in _CATALOG_WORDS and run_in_catalog(
        spark, with_arguments(text, args), lambda query: _dispatched(spark, query, None, frames)
    ):
        return frame_of(spark, nothing())
    definitions = read_definitions(reader, CHANGES)
    original_target = target = target_of(reader)
    if target is not None and reader.tokens[reader.position].keyword in ("DELETE", "UPDATE"):
        reader, target = _through_projection(spark, reader, target, args)
    if target is not None and _is_of_delta(spark, reader, target):
        return _run_on_table(spark, with_arguments(reader.text, args), original_target, target, frames)
    if definitions is not None:
        reader.position = 0
    plan = explained(
        reader,
        functools.partial(_is_of_delta, spark),
        lambda query: str(_dispatched(spark, query, args, frames).collect()[0][0]),
    )
    if plan is not None:
        return frame_of(spark, plan)
    if reader.at("CONVERT", "TO", "DELTA"):
        return _convert(spark, with_arguments(reader.text, args))
    if target is not None and shows(reader, "DETAIL"):
        other = other_table(spark, target.parts)
        if other is not None and other.kind != "VIEW":
            return frame_of(spark, detail_of(spark, other))
    with delta_errors(spark, reader, target):
        return _queried(spark, reader, args, frames)


def _inserts(reader: Reader) -> list[str]:
    """Splits `FROM tables INSERT ... INSERT ...`, which WITH may precede, into one statement for each INSERT.
    Returns an empty list for other statements. Does not move the cursor."""
    start = reader.position
    definitions = read_definitions(reader, ("FROM",))
    found = inserts(reader.rest("a statement")) if reader.at("FROM") else ()
    reader.position = start
    before = "" if definitions is None else f"{definitions[0]} "
    return [f"{before}{each}" for each in found if Reader(each).at("INSERT")]


def _changes_delta(spark: Any, statement: str) -> bool:
    """True for a statement that changes a Delta table, also behind WITH."""
    reader = Reader(statement)
    read_definitions(reader, CHANGES)
    target = target_of(reader)
    return target is not None and _is_of_delta(spark, reader, target)


def _run_on_table(
    spark: Any, text: str, named: Name | None, target: Name, frames: Mapping[str, Any]
) -> DataFrame:
    """Runs a statement about a Delta table by `deltaic.sql`. `named`: what the statement names, which may be
    a view of `target`."""
    reader = Reader(text)
    before, names = read_definitions(reader, CHANGES) or ("", [])
    first = reader.tokens[reader.position]
    types = timestamps_of(spark) if first.keyword in _WITH_TYPES else nullcontext()
    with opening(spark), types, SparkTables(spark, before, names, frames) as tables:
        tables.target = target
        result = frame_of(spark, runner(reader)(by_name(text[first.start :]), tables))
    if first.keyword in CHANGES and named is not None and named.path is None:
        _update_view(spark, named)
    return result


@raises_as_spark(instead={"COLUMN_ALREADY_EXISTS": "DELTA_DUPLICATE_COLUMNS_FOUND.METADATA_UPDATE"})
def _convert(spark: Any, text: str) -> DataFrame:
    """Runs CONVERT TO DELTA, whose columns delta-spark alone checks."""
    with opening(spark), following_sink_log(spark):
        conversion = read_conversion(Reader(text))
        if convert_named(
            spark, Name(conversion.source), conversion.columns, statistics=conversion.statistics
        ):
            return frame_of(spark, nothing())
        return frame_of(spark, run(text, SparkTables(spark)))


def _names_table(spark: Any, text: str) -> bool:
    """True if a statement reads or changes a Delta table."""
    try:
        reader = Reader(text)
        target = target_of(reader)
        return (target is not None and _is_of_delta(spark, reader, target)) or bool(references(reader, spark))
    except InvalidArgumentError:
        return False


def _makes_table_by_name(spark: Any, reader: Reader, target: Name | None) -> bool:
    """True for CREATE TABLE name USING delta in the session catalog, unless a Delta jar has replaced that
    catalog. Without USING, the format is that of the replaced table, or the session's default."""
    if target is None or target.path is not None or reader.tokens[0].keyword not in ("CREATE", "REPLACE"):
        return False
    provider = provider_of(reader)
    if provider is None and (source := _like(reader)) is not None:
        provider = "delta" if path_of(spark, source) is not None else "another"
    if provider is None:
        default = str(spark.conf.get("spark.sql.sources.default", "parquet"))
        replaces = reader.at("REPLACE") or reader.at("CREATE", "OR", "REPLACE")
        provider = "delta" if replaces and path_in_catalog(spark, target.parts) is not None else default
    return (
        provider.lower() in FORMATS
        and bool(schema_and_name(spark, target.parts))
        and spark.conf.get("spark.sql.catalog.spark_catalog", "builtin") == "builtin"
    )


def _like(reader: Reader) -> Name | None:
    """Returns the source of CREATE TABLE name LIKE source, or None. Does not move the cursor."""
    start = reader.position
    try:
        if passes_head(reader):
            read_name(reader)
            return read_name(reader) if reader.accept("LIKE") else None
    except InvalidArgumentError:
        return None
    finally:
        reader.position = start
    return None


def _through_projection(spark: Any, reader: Reader, target: Name, args: Any) -> tuple[Reader, Name]:
    """Replaces a target that is a view of some columns of a table by this table, with the view's name as
    alias. Returns the changed statement and the table, or both arguments for any other target."""
    path = path_of_projection(spark, target)
    if path is None:
        return reader, target
    cursor = Reader(reader.text)
    cursor.position = reader.position
    passes_head(cursor)
    start = cursor.tokens[cursor.position].start
    check_columns_of_view(spark, with_arguments(reader.text[start:], args))
    read_name(cursor)
    end = cursor.tokens[cursor.position - 1].end
    has_alias = not cursor.done and (cursor.at("AS") or not (cursor.at("SET") or cursor.at("WHERE")))
    table = f"delta.{col(path)}{'' if has_alias else f' AS {col(target.parts[-1])}'}"
    statement = Reader(f"{reader.text[:start]}{table}{reader.text[end:]}")
    statement.position = reader.position
    return statement, Name(("delta", path))


def _is_of_delta(spark: Any, reader: Reader, target: Name) -> bool:
    """True if the statement is about a Delta table, or a temporary view of a whole one. A temporary view does
    not count in statements that Spark runs for it (DESCRIBE TABLE, SHOW, COMMENT)."""
    word = reader.tokens[reader.position].keyword
    if target.path is not None:
        return True
    if word in ("CREATE", "REPLACE"):
        return _makes_table_by_name(spark, reader, target)
    if word == "DROP":
        return False
    as_spark = word in ("SHOW", "COMMENT", "ANALYZE")
    if word in ("DESCRIBE", "DESC"):
        as_spark = not needs_delta(reader)
    return (path_in_catalog(spark, target.parts) if as_spark else path_of(spark, target)) is not None


# --- queries


def _queried(spark: Any, reader: Reader, args: Any, frames: Mapping[str, Any]) -> DataFrame:
    """Runs a query by Spark's own `sql`, with temporary views in place of the Delta tables."""
    occurrences = references(reader, spark)
    refuse_unsupported(reader, reads_table=bool(occurrences))
    if not occurrences:
        return over_frames(spark, reader.text, args, frames)
    if args and any(each.is_marked for each in occurrences):
        # Spark gets a text without time travel, so the parameters of the time travel are filled in here.
        return _queried(spark, Reader(with_arguments(reader.text, args)), None, frames)
    if (view := view_statement(reader.text)) is not None:
        columns = None if view.clauses.columns else projection(spark, view.query)
        view.make(
            _dispatched(spark, view.query, args, frames) if columns is None else _projected(spark, columns)
        )
        return frame_of(spark, nothing()) if view.caching is None else spark_sql(spark, view.caching)
    is_function = creates_function(reader, "TEMPORARY")
    if has_jvm(spark):
        return _with_views(
            spark, reader.text, occurrences, lambda text, *_: spark_sql(spark, text, args), keeps=is_function
        )
    if is_function:
        raise UnsupportedFeatureError(
            "a SQL function that reads a Delta table is not supported on Spark Connect",
            expected="a temporary view",
        )
    names = {reference: f"__deltaic_view_{next(_numbers)}__" for reference in occurrences}
    tables = {name: referred(spark, reference) for reference, name in names.items()}
    return over_frames(spark, spliced(reader.text, names), args, {**frames, **tables})


def _update_view(spark: Any, view: Name) -> None:
    """Replaces the temporary view of a changed table by one of the newest version: on the public path a view
    shows one version."""
    if (path := path_of_stored_view(spark, view)) is not None:
        _projected(spark, Projection(path, None)).createOrReplaceTempView(view.parts[0])
    elif (path := path_of_stored_projection(spark, view)) is not None:
        _projected(spark, Projection(path, tuple(spark.table(str(view)).columns))).createOrReplaceTempView(
            view.parts[0]
        )


def _projected(spark: Any, columns: Projection) -> DataFrame:
    frame = newest(spark, columns.path)
    return (
        frame
        if columns.columns is None
        else projected(spark, frame.select(*map(quote_name, columns.columns)), columns.path)
    )


_numbers = itertools.count()


def _with_views(
    spark: Any,
    text: str,
    occurrences: list[Reference],
    function: Callable[[str, Collection[str], Collection[str]], DataFrame],
    *,
    keeps: bool = False,
) -> DataFrame:
    """Runs `function` on the text with a temporary view in place of each reference, or a table function if
    the text may read `_metadata`. `function` also gets the names of both. They are dropped afterwards: the
    plan of the result is analysed and does not need them any more. `keeps`: True to keep them, for CREATE
    TEMPORARY FUNCTION, whose text Spark analyses at each call."""
    names: dict[Reference, str] = {}
    functions: set[str] = set()
    shows_metadata = plan_functions.mentions_metadata(text)
    try:
        for reference in occurrences:
            name = f"__deltaic_view_{next(_numbers)}"
            frame = referred(spark, reference)
            if shows_metadata and plan_functions.make(spark, name, frame):
                functions.add(name)
            else:
                frame.createOrReplaceTempView(name)
            names[reference] = name
        return function(spliced(text, names, functions), set(names.values()) - functions, functions)
    finally:
        temporary = session_catalog(spark)
        for name in () if keeps else names.values():
            # `spark.catalog.dropTempView` would also drop rows that the user has cached of the same table.
            if name in functions:
                plan_functions.drop(spark, name)
            else:
                temporary.dropTempView(name)


def referred(spark: Any, reference: Reference) -> DataFrame:
    """Returns the DataFrame of a reference."""
    version = reference.version
    if reference.changes:
        return _change_rows(spark, reference)
    if reference.stream is not None:
        options = dict(reference.stream)
        return spark.readStream.format("delta").options(**options).load(reference.path)
    if reference.view is not None:
        return rows_of_view(spark, reference.view)
    if reference.options:
        from deltaic.spark.formats import rows_with_options

        return rows_with_options(spark, {**dict(reference.options), "path": reference.path})
    path, partition = partition_of(spark, reference.path)
    if reference.timestamp is not None:
        version = version_at(spark, path, _time_of(spark, reference.timestamp))
    with lost_table(spark, reference.parts):
        frame = newest(spark, path) if version is None else read(spark, path, version=version)
    if not frame.columns:
        check_has_columns(Schema(()), path)
    return frame if partition is None else frame.where(partition)


def _time_of(spark: Any, text: str) -> datetime:
    """Like `timestamp_of`, but errors have the condition of TIMESTAMP AS OF."""
    if RANDOM.search(text) is not None:
        condition = "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.NON_DETERMINISTIC"
        raise InvalidArgumentError(f"[{condition}] the time of a version must be deterministic", found=text)
    try:
        return timestamp_of(spark, text, lambda spark, query: queried(spark, query, {}))
    except InvalidArgumentError as error:
        condition = "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.INPUT"
        raise InvalidArgumentError(
            f"[{condition}] {error.message}", found=text, expected=error.expected
        ) from None


def _change_rows(spark: Any, reference: Reference) -> DataFrame:
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    for end, text in zip(("starting", "ending"), reference.changes, strict=False):
        frame = spark_sql(spark, f"SELECT ({text})")
        kind = frame.schema[0].dataType
        if type(kind).__name__ not in (*_TYPES_OF_ENDS, "NullType"):
            raise unsupported_argument(kind, f"{end} option", ",".join(_TYPES_OF_ENDS))
        value = frame.collect()[0][0]
        if value is None:
            raise InvalidArgumentError(
                "a range of changes begins and ends at a version or a time", found=text
            )
        is_version = isinstance(value, int)
        reader = reader.option(f"{end}{'Version' if is_version else 'Timestamp'}", str(value))
    try:
        return reader.load(reference.path)
    except TableNotFoundError as error:
        message = "[DELTA_MISSING_DELTA_TABLE] the path is not a Delta table"
        raise TableNotFoundError(message, where=reference.path, found=error.found) from None


def rows_of_view(spark: Any, view: ViewQuery) -> DataFrame:
    """Returns the rows of a permanent view over Delta tables."""
    text = text_of_view(view, spark)
    if not has_jvm(spark):
        rows = _dispatched(spark, text, None, {})
        if list(view.query_columns) != rows.columns:  # `SELECT *` may return more columns now
            rows = rows.select(*map(quote_name, view.query_columns))
        return rows.toDF(*view.columns)
    occurrences = references(Reader(text), spark)
    return _with_views(spark, text, occurrences, functools.partial(catalog.rows_of_view, spark, view.parts))
