"""SQL on Delta tables by path, on a Spark session: `deltaic.spark.sql`, and `spark.sql` after `deltaic.spark.enable`.

The first words of a statement and the table that it names decide whose it is. Statements that change or describe a Delta table are those of
`deltaic.sql`, run on the cluster; queries are Spark's own, in which tables by path are put under the names of temporary views. Everything
else goes to Spark as it came.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from deltaic.engine.spark.stores import opening
from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.spark.parameters import with_arguments, with_values
from deltaic.spark.references import Reference, references, spliced
from deltaic.spark.results import frame_of
from deltaic.spark.session_tables import SparkTables, moment_of, spark_sql
from deltaic.spark.views import path_of
from deltaic.sql.names import Name, read_name
from deltaic.sql.statement import run
from deltaic.sql.tokens import Reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["install", "sql", "uninstall"]

_MAY_BE_OURS = re.compile(
    r"\bdelta(ic)?\s*\.\s*`|\bAS\s+OF\b|\b(INSERT|DELETE|UPDATE|MERGE|TRUNCATE|ALTER|OPTIMIZE|REORG|VACUUM|RESTORE|DESC|DESCRIBE|CONVERT|GENERATE|FSCK)\b",
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
    """Makes `spark.sql` of this session the `sql` above. Once or several times is the same."""

    def enabled(sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:
        return sql(spark, sqlQuery, args, **kwargs)

    enabled.__doc__ = sql.__doc__
    spark.sql = enabled


def uninstall(spark: Any) -> None:
    """Spark's own `sql` again."""
    spark.__dict__.pop("sql", None)


def _dispatched(spark: Any, text: str, args: Any) -> DataFrame:
    try:
        reader = Reader(text)
    except InvalidArgumentError:  # several statements, or what only Spark can read
        return spark_sql(spark, text, args)
    target = _target(reader)
    if target is not None and _is_ours(spark, reader, target):
        whole = _by_name(with_arguments(text, args))
        with opening(spark):
            return frame_of(spark, run(whole, SparkTables(spark)))
    if reader.at("CONVERT", "TO", "DELTA") or (reader.at("GENERATE") and references(reader, spark)):
        raise UnsupportedFeatureError(f"{reader.tokens[0].keyword} as a statement", expected="a later release")
    return _queried(spark, reader, args)


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
    if (cached := _cached(reader)) is not None:
        lazy, name, query = cached
        sql(spark, query, args).createOrReplaceTempView(name)
        return spark_sql(spark, f"CACHE {'LAZY ' if lazy else ''}TABLE `{name.replace('`', '``')}`")
    view = _view_made(reader)
    if view is None and (reader.at("CREATE", "VIEW") or reader.at("CREATE", "OR", "REPLACE", "VIEW")):
        raise UnsupportedFeatureError("a lasting view of a table by path", expected="CREATE TEMPORARY VIEW")
    if view is not None:
        replace, name, query = view
        frame = sql(spark, query, args)
        return _nothing(spark, frame.createOrReplaceTempView if replace else frame.createTempView, name)
    return _with_views(spark, reader.text, found, lambda text: spark_sql(spark, text, args))


def _nothing(spark: Any, make: Callable[[str], None], name: str) -> DataFrame:
    from deltaic.sql.results import nothing

    make(name)
    return frame_of(spark, nothing())


def _view_made(reader: Reader) -> tuple[bool, str, str] | None:
    """CREATE [OR REPLACE] TEMP[ORARY] VIEW name AS query -> whether it replaces, name, query."""
    fresh = Reader(reader.text)
    if not fresh.accept("CREATE"):
        return None
    replace = fresh.accept("OR", "REPLACE")
    if not (fresh.accept("TEMPORARY", "VIEW") or fresh.accept("TEMP", "VIEW")):
        return None
    name = fresh.name()
    return (replace, name, fresh.rest("a query")) if fresh.accept("AS") else None


def _cached(reader: Reader) -> tuple[bool, str, str] | None:
    """CACHE [LAZY] TABLE name AS query -> whether it is lazy, name, query."""
    fresh = Reader(reader.text)
    if not fresh.accept("CACHE"):
        return None
    lazy = fresh.accept("LAZY")
    if not fresh.accept("TABLE"):
        return None
    name = fresh.name()
    return (lazy, name, fresh.rest("a query")) if fresh.accept("AS") else None


_numbers = itertools.count()


def _with_views(spark: Any, text: str, found: list[Reference], function: Callable[[str], DataFrame]) -> DataFrame:
    """Runs `function` on the text in which each reference is a view. Where the answer's plan is settled at once, the views go again."""
    from deltaic.spark import read

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
