"""SQL on Delta tables by path, on a Spark session: `deltaic.spark.sql`, and `spark.sql` after `deltaic.spark.enable`.

The first words of a statement and the table that it names decide whose it is. Statements that change or describe a Delta table are those of
`deltaic.sql`, run on the cluster; queries are Spark's own, in which tables by path are put under the names of temporary views. Everything
else goes to Spark as it came.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from deltaic.engine.spark.stores import opening
from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.spark.frames import read
from deltaic.spark.made_views import made_view, whole_table
from deltaic.spark.parameters import with_arguments, with_values
from deltaic.spark.references import Reference, references, spliced
from deltaic.spark.results import frame_of
from deltaic.spark.session_tables import SparkTables, moment_of, spark_sql
from deltaic.spark.views import path_named, path_of
from deltaic.sql.names import Name, read_name
from deltaic.sql.results import nothing
from deltaic.sql.statement import run
from deltaic.sql.tokens import Reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["install", "sql", "uninstall"]

_MAY_BE_OURS = re.compile(
    r"\bdelta(ic)?\s*\.\s*`|\bUSING\s+`?delta|\bAS\s+OF\b|\b(INSERT|DELETE|UPDATE|MERGE|TRUNCATE|ALTER|OPTIMIZE|REORG|VACUUM|RESTORE|DESC|DESCRIBE|CONVERT|GENERATE|FSCK)\b",
    re.IGNORECASE,
)
"""Texts without any of these are never read by us."""

# Words before the name of the table that a statement is about, the longer ones first.
_HEADS: tuple[tuple[str, ...], ...] = (
    ("DELETE", "FROM"),
    ("UPDATE",),
    ("MERGE", "WITH", "SCHEMA", "EVOLUTION", "INTO"),
    ("MERGE", "INTO"),
    ("INSERT", "INTO", "TABLE"),
    ("INSERT", "OVERWRITE", "TABLE"),
    ("INSERT", "INTO"),
    ("INSERT", "OVERWRITE"),
    ("TRUNCATE", "TABLE"),
    ("ALTER", "TABLE"),
    ("CREATE", "OR", "REPLACE", "TABLE"),
    ("CREATE", "TABLE", "IF", "NOT", "EXISTS"),
    ("CREATE", "TABLE"),
    ("REPLACE", "TABLE"),
    ("DROP", "TABLE", "IF", "EXISTS"),
    ("DROP", "TABLE"),
    ("OPTIMIZE",),
    ("REORG", "TABLE"),
    ("VACUUM",),
    ("RESTORE", "TABLE"),
    ("RESTORE",),
    ("FSCK", "REPAIR", "TABLE"),
    ("CONVERT", "TO", "DELTA"),
    *((word, what) for word in ("DESCRIBE", "DESC") for what in ("HISTORY", "DETAIL", "TABLE")),
    ("DESCRIBE",),
    ("DESC",),
)
_CHANGES = {"INSERT", "DELETE", "UPDATE", "MERGE", "TRUNCATE", "RESTORE", "ALTER"}
_ONLY_OURS = {"OPTIMIZE", "VACUUM", "REORG", "RESTORE", "FSCK"}
"""Statements that Spark does not have."""
_BY_PATH = {"OPTIMIZE", "VACUUM", "DESCRIBE", "DESC", "REORG", "RESTORE"}
"""Statements that take a path in quotes as well."""


def sql(spark: Any, statement: str, args: Any = None, **parameters: Any) -> DataFrame:
    """One statement on a Spark session: Spark's own, and besides on delta.`path` and temporary views of Delta tables SELECT with VERSION or
    TIMESTAMP AS OF, INSERT (INTO, OVERWRITE, REPLACE WHERE), DELETE, UPDATE, MERGE, CREATE, CTAS, ALTER, TRUNCATE, OPTIMIZE, REORG, VACUUM,
    RESTORE, DESCRIBE HISTORY and DETAIL, which return what delta-spark returns.

    `args` (values of `:name` and `?`) and `parameters` (of `{name}`, DataFrames too) as in `SparkSession.sql`.
    """
    if not isinstance(statement, str) or not _MAY_BE_OURS.search(statement):
        return spark_sql(spark, statement, args, **parameters)
    if parameters:
        return with_values(spark, statement, parameters, lambda text: _dispatched(spark, text, args))
    return _dispatched(spark, statement, args)


def install(spark: Any) -> None:
    """Makes `spark.sql` of this session the `sql` above, and lets `spark.table` know delta.`path`. Once or several times is the same."""

    def enabled(sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:
        return sql(spark, sqlQuery, args, **kwargs)

    enabled.__doc__ = sql.__doc__
    spark.sql = enabled

    def table(tableName: str) -> DataFrame:
        if path_named(tableName) is None:
            return type(spark).table(spark, tableName)
        return spark.read.format("delta").table(tableName)

    table.__doc__ = type(spark).table.__doc__
    spark.table = table


def uninstall(spark: Any) -> None:
    """Spark's own `sql` and `table` again."""
    for name in ("sql", "table"):
        spark.__dict__.pop(name, None)


def _dispatched(spark: Any, text: str, args: Any) -> DataFrame:
    try:
        reader = Reader(text)
    except InvalidArgumentError:  # several statements, or what only Spark can read
        return spark_sql(spark, text, args)
    definitions = _definitions(reader)
    target = _target(reader)
    if target is not None and _is_ours(spark, reader, target):
        whole = with_arguments(text, args)
        reader = Reader(whole)
        before, names = _definitions(reader) or ("", [])
        with opening(spark):
            done = frame_of(spark, run(_by_name(whole[reader.tokens[reader.position].start :]), SparkTables(spark, before, names)))
        if target.path is None and (path := path_of(spark, target)) is not None and reader.tokens[reader.position].keyword in _CHANGES:
            read(spark, path).createOrReplaceTempView(target.parts[0])  # the view goes with the table
        return done
    if definitions is not None:
        reader.position = 0
    if reader.at("CONVERT", "TO", "DELTA") or (reader.at("GENERATE") and references(reader, spark)):
        raise UnsupportedFeatureError(f"{reader.tokens[0].keyword} as a statement", expected="a later release")
    with _of_tables_by_name(spark, reader, target):
        return _queried(spark, reader, args)


def _definitions(reader: Reader) -> tuple[str, list[str]] | None:
    """WITH name AS (query), ... in front of a statement that changes a table -> its text and the names, the cursor behind it. None where
    there is none: the cursor then stays."""
    start = reader.position
    if not reader.accept("WITH"):
        return None
    names: list[str] = []
    try:
        reader.accept("RECURSIVE")
        while True:
            names.append(reader.name().lower())
            if reader.at("("):
                reader.inside("columns")
            reader.accept("AS")
            reader.inside("a query")
            if not reader.accept(","):
                break
    except InvalidArgumentError:
        names.clear()
    if not names or reader.done or reader.tokens[reader.position].keyword not in _CHANGES:
        reader.position = start
        return None
    return reader.text[reader.tokens[start].start : reader.tokens[reader.position - 1].end], names


@contextmanager
def _of_tables_by_name(spark: Any, reader: Reader, target: Name | None) -> Iterator[None]:
    """What Spark says of statements about Delta tables of the catalog, and about views that are no whole table, by its name."""
    if _makes_table_by_name(spark, reader, target):
        raise UnsupportedFeatureError("tables by name", found=str(target), expected="delta.`path`")
    try:
        yield
    except Exception as error:
        first = reader.tokens[0].keyword
        only_ours = first in _ONLY_OURS or (
            len(reader.tokens) > 1 and reader.tokens[1].keyword in ("HISTORY", "DETAIL") and first in _BY_PATH
        )
        if target is not None and only_ours and type(error).__name__ in ("ParseException", "AnalysisException"):
            raise UnsupportedFeatureError("tables by name", found=str(target), expected="delta.`path`") from error
        if first in _CHANGES and "Unexpected table relation" in str(error):
            raise UnsupportedFeatureError(
                f"{first} of a view", found=str(target), expected="delta.`path`, or a temporary view of a whole Delta table"
            ) from error
        raise


def _makes_table_by_name(spark: Any, reader: Reader, target: Name | None) -> bool:
    """CREATE TABLE name USING delta, where no catalog of another Delta is there: Spark would take it, and keep nothing of the table."""
    if target is None or target.path is not None or reader.tokens[0].keyword not in ("CREATE", "REPLACE"):
        return False
    ours = any(
        token.keyword == "USING" and after.text.lower().strip("`") in ("delta", "deltaic")
        for token, after in zip(reader.tokens, reader.tokens[1:], strict=False)
    )
    return ours and spark.conf.get("spark.sql.catalog.spark_catalog", "builtin") == "builtin" and len(target.parts) < 3


def _target(reader: Reader) -> Name | None:
    """The table that a statement of ours is about; None for a query, and for what has no table there. Leaves the cursor where it was."""
    start = reader.position
    try:
        for words in _HEADS:
            if reader.accept(*words):
                if reader.tokens[0].keyword in _BY_PATH and not reader.done and reader.tokens[reader.position].kind == "string":
                    return Name(("delta", reader.string()))
                return read_name(reader)
    except InvalidArgumentError:
        return None
    finally:
        reader.position = start
    return None


def _is_ours(spark: Any, reader: Reader, target: Name) -> bool:
    """Whether the statement is about a Delta table. What makes tables, and Spark's own DESCRIBE, mean views only as Spark does."""
    by_path_alone = reader.tokens[0].keyword in ("CREATE", "REPLACE", "DROP")
    if reader.tokens[0].keyword in ("DESCRIBE", "DESC"):
        by_path_alone = len(reader.tokens) < 2 or reader.tokens[1].keyword not in ("HISTORY", "DETAIL")
    return target.path is not None if by_path_alone else path_of(spark, target) is not None


def _by_name(text: str) -> str:
    """VACUUM '/path' -> VACUUM delta.`/path`."""
    reader = Reader(text)
    if reader.tokens[0].keyword not in _BY_PATH:
        return text
    for words in _HEADS:
        if reader.accept(*words):
            break
    if reader.done or (token := reader.tokens[reader.position]).kind != "string":
        return text
    path = reader.string().replace("`", "``")
    return f"{text[: token.start]}delta.`{path}`{text[token.end :]}"


# --- queries


def _queried(spark: Any, reader: Reader, args: Any) -> DataFrame:
    """Spark's own statement, its tables by path under the names of views."""
    found = references(reader, spark)
    if not found:
        return spark_sql(spark, reader.text, args)
    if args and any(each.is_marked for each in found):  # Spark sees nothing of a moment, nor of what is to be filled in there
        return _queried(spark, Reader(with_arguments(reader.text, args)), None)
    if (view := made_view(reader.text)) is not None:
        path = None if view.columns else whole_table(spark, view.query)
        view.make(sql(spark, view.query, args) if path is None else read(spark, path))
        if view.cached is None:
            return frame_of(spark, nothing())
        return spark_sql(spark, f"{view.cached} `{view.name.replace('`', '``')}`")
    if reader.at("CREATE", "VIEW") or reader.at("CREATE", "OR", "REPLACE", "VIEW"):
        raise UnsupportedFeatureError("a lasting view of a table by path", expected="CREATE TEMPORARY VIEW")
    return _with_views(spark, reader.text, found, lambda text: spark_sql(spark, text, args))


_numbers = itertools.count()


def _with_views(spark: Any, text: str, found: list[Reference], function: Callable[[str], DataFrame]) -> DataFrame:
    """Runs `function` on the text in which each reference is a view. Where the answer's plan is settled at once, the views go again."""
    made: dict[Reference, str] = {}
    try:
        for reference in found:
            name = f"__deltaic_view_{next(_numbers)}"
            timestamp = None if reference.moment is None else moment_of(spark, reference.moment)
            read(spark, reference.path, version=reference.version, timestamp=timestamp).createOrReplaceTempView(name)
            made[reference] = name
        return function(spliced(text, made))
    finally:
        if hasattr(spark, "_jsparkSession"):
            catalog = spark._jsparkSession.sessionState().catalog()
            for name in made.values():
                # Not by `spark.catalog`: that one also throws away what a user has cached of the same table.
                catalog.dropTempView(name)
