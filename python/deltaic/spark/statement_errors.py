"""Gives delta-spark's conditions to errors of statements, both those that `deltaic.sql` runs and those that
Spark refuses because they need a Delta table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from deltaic.errors import DeltaError, InvalidArgumentError, TableNotFoundError, UnsupportedFeatureError
from deltaic.rows.rows import Rows
from deltaic.spark.builders import FORMATS
from deltaic.spark.conditions import is_plain_argument
from deltaic.spark.heads import CHANGES, clones, needs_delta, provider_of, shows, syncs_identity
from deltaic.spark.named_tables import is_too_long, naming, query_of_view
from deltaic.spark.raising import OF_PARTITIONS, SPARK_CONDITIONS, make_of_spark, raises_as_spark
from deltaic.spark.session_tables import SparkTables
from deltaic.spark.view_targets import no_change_of_view
from deltaic.spark.views import is_known, is_temporary, no_such_table
from deltaic.sql.names import Name
from deltaic.sql.statement import CHANGES_ROWS, run
from deltaic.sql.tokens import Reader
from deltaic.table import DeltaTable

_DELTA_ONLY = {"OPTIMIZE", "VACUUM", "REORG", "RESTORE", "FSCK", "GENERATE"}
"""First words of statements that Spark does not have."""
_FIND_NO_FILES = {"RESTORE", "DESCRIBE HISTORY"}
"""Statements that have a condition of their own for a table whose files are gone."""
_OF_TABLES_ALONE = {"ALTER", "DESCRIBE", "OPTIMIZE", "VACUUM", "GENERATE", "REORG"}
"""First words of statements for which Spark looks the table up, and refuses a view."""
_NO_TABLE = re.compile(
    r"Unexpected table relation|UNSUPPORTED_INSERT\.RDD_BASED|Table `(delta(ic)?|unknown)` does not support"
    r"|Table does not support [\w ]+: delta(ic)?\b"
)
"""Matches Spark's messages for a statement that changes a view or a table of a Python data source."""
_AT_VERSION = re.compile(r"(/.+)@v(\d+)", re.IGNORECASE)
"""Matches the path of a version of a table."""
_NOT_LOADED = re.compile(r"\[DATA_SOURCE_NOT_FOUND\] Failed to find the data source: delta(ic)?\b")
"""Matches the message of Spark before 4.3 for a statement for which it loads a Delta table itself: LOAD
DATA."""


def _run(text: str, tables: SparkTables) -> Rows:
    """Like `run`, but adds the name of the statement's table to errors."""
    reader = Reader(text)
    first = reader.tokens[0].keyword
    operation = "DESCRIBE HISTORY" if shows(reader, "HISTORY") else first
    has_own = operation in _FIND_NO_FILES
    try:
        with nullcontext() if has_own else tables.lost(changes_rows=first in CHANGES_ROWS):
            return run(text, tables)
    except DeltaError as error:
        if isinstance(error, TableNotFoundError) and first in CHANGES_ROWS:
            _refuse_older_version(error)
        error.with_values(**{**tables.naming(), "operation": operation, **error.values})
        if first in _DELTA_ONLY:
            # Spark's parser, to which delta-spark leaves such a text, does not know the word
            error.with_values(unknown=first)
        raise


def _refuse_older_version(error: TableNotFoundError) -> None:
    """Raises InvalidArgumentError if the table that is missing is a version of a table: /data/t@v3."""
    if (version := _AT_VERSION.fullmatch(error.where or "")) is not None and DeltaTable.exists(version[1]):
        raise InvalidArgumentError(
            "[DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION] only the newest version of a table can change",
            found=error.where,
            expected=version[1],
        ).with_values(version=version[2]) from None


_MISSING: Mapping[type[DeltaError], str] = {TableNotFoundError: "DELTA_MISSING_DELTA_TABLE"}
_runs = raises_as_spark(_MISSING, SPARK_CONDITIONS)(_run)
"""Like `_run`, but a missing table gets the condition DELTA_MISSING_DELTA_TABLE. Statements that change rows
use `_run`: there Spark looks the path up itself, and raises another condition."""


@raises_as_spark(
    _MISSING,
    {
        **SPARK_CONDITIONS,
        "DELTA_CONVERT_TO_DELTA_ROW_TRACKING_WITHOUT_STATS": "DELTA_CLONE_WITH_ROW_TRACKING_WITHOUT_STATS",
    },
)
def _creates(text: str, tables: SparkTables) -> Rows:
    """Like `_runs`, for CREATE TABLE and REPLACE TABLE, whose clustering columns Spark looks up itself."""
    try:
        return _run(text, tables)
    except InvalidArgumentError as error:
        if error.message == "no such clustering column":
            make_of_spark(error, "UNSUPPORTED_FEATURE.PARTITION_WITH_NESTED_COLUMN_IS_UNSUPPORTED")
        raise


@raises_as_spark(_MISSING, {**SPARK_CONDITIONS, "INVALID_EXTRACT_BASE_FIELD_TYPE": "INVALID_FIELD_NAME"})
def _alters(text: str, tables: SparkTables) -> Rows:
    """Like `_runs`, for ALTER TABLE: Spark wraps an IllegalArgumentException without a condition, such as
    that of a property with a wrong value."""
    try:
        return _run(text, tables)
    except DeltaError as error:
        place = error.values.get("duplicate_parts")
        if isinstance(place, tuple) and len(place) > 1:
            make_of_spark(error, "DELTA_DUPLICATE_COLUMNS_FOUND.ADDING_COLUMNS")
        if is_plain_argument(error):
            make_of_spark(error, "UNSUPPORTED_TABLE_CHANGE")
        raise


_optimizes = raises_as_spark(_MISSING, of_predicates=OF_PARTITIONS)(_run)
"""Like `_runs`, for OPTIMIZE, whose WHERE is a condition on partition columns."""


_looks_up = raises_as_spark({TableNotFoundError: "DELTA_TABLE_ONLY_OPERATION"}, of_predicates=OF_PARTITIONS)(
    _run
)
"""Like `_runs`, for statements whose table Spark looks up before delta-spark does: those that name a path as
text, as in VACUUM '/data/t', and DESCRIBE HISTORY."""


_of_detail = raises_as_spark({TableNotFoundError: "DELTA_FILE_NOT_FOUND"}, SPARK_CONDITIONS)(_run)
_of_reorg = raises_as_spark({TableNotFoundError: "DELTA_ONLY_OPERATION"}, SPARK_CONDITIONS)(_run)
"""Like `_runs`, for DESCRIBE DETAIL and REORG, each with delta-spark's condition for a missing table."""


def runner(reader: Reader) -> Callable[[str, SparkTables], Rows]:
    """Returns the function that runs the statement at the cursor, by its first words."""
    if reader.tokens[reader.position].keyword in CHANGES_ROWS:
        return _run
    names_text = any(
        reader.at(word) and reader.tokens[reader.position + 1].kind == "string"
        for word in ("OPTIMIZE", "VACUUM")
    )
    if names_text or shows(reader, "HISTORY"):
        return _looks_up
    if shows(reader, "DETAIL"):
        return _of_detail
    if reader.at("REORG"):
        return _of_reorg
    if reader.at("OPTIMIZE"):
        return _optimizes
    if reader.at("ALTER"):
        return _alters
    return _creates if reader.at("CREATE") or reader.at("REPLACE") else _runs


@contextmanager
def delta_errors(spark: Any, reader: Reader, target: Name | None) -> Iterator[None]:
    """Replaces the error that Spark raises in the body for a statement that needs a Delta table, if the
    statement's table is unknown, has another format, or is a view of a query."""
    try:
        yield
    except Exception as error:
        first = reader.tokens[0].keyword
        is_delta_only = first in _DELTA_ONLY or needs_delta(reader)
        if target is not None and clones(reader) and is_too_long(spark, target.parts):
            raise no_such_table(spark, target) from error
        if (
            target is not None
            and is_delta_only
            and type(error).__name__ in ("ParseException", "AnalysisException")
        ):
            raise _no_delta_table(spark, reader, target) from error
        if (
            first in CHANGES_ROWS - {"INSERT"}
            and target is not None
            and query_of_view(spark, target.parts) is not None
        ):
            raise UnsupportedFeatureError(
                f"[DELTA_UNSUPPORTED_SOURCE] {first} of a permanent view is not supported",
                found=str(target),
                expected="the view's table",
            ).with_values(operation=first) from error
        if _NOT_LOADED.search(str(error)):
            words = " ".join(token.text.upper() for token in reader.tokens[:2])
            raise UnsupportedFeatureError(
                f"Spark cannot run {words} for a Delta table", expected="a statement of Delta tables"
            ).with_values(operation=words) from error
        if first in CHANGES and target is not None and _NO_TABLE.search(str(error)):
            raise no_change_of_view(spark, first, target) from error
        raise


def _no_delta_table(spark: Any, reader: Reader, target: Name) -> DeltaError:
    """Returns the error of a statement that only Delta tables have, with delta-spark's condition, if its
    table is unknown, a view, or a table of another format."""
    first, names = reader.tokens[0].keyword, naming(spark, target.parts)
    is_permanent_view = query_of_view(spark, target.parts) is not None
    is_view = is_permanent_view or is_temporary(spark, target)
    if first == "RESTORE" and not is_view:  # Spark does not look its table up
        names["search_path"] = "not available"
        return no_such_table(spark, target, "delta.`path`, or the name of a Delta table").with_values(**names)
    if not is_known(spark, target):
        return no_such_table(spark, target).with_values(**names)
    words = [first] if first not in ("DESCRIBE", "DESC") else ["DESCRIBE", reader.tokens[1].keyword]
    if first == "RESTORE":
        condition = "DELTA_ONLY_OPERATION"
    elif is_view and words[0] in _OF_TABLES_ALONE:
        condition = "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE"
    elif first == "REORG":
        condition = "DELTA_NOT_A_DELTA_TABLE"
    elif syncs_identity(reader):
        condition = "DELTA_IDENTITY_COLUMNS_ALTER_NON_DELTA_FORMAT"
    else:
        condition = "DELTA_ONLY_OPERATION" if words[0] in _OF_TABLES_ALONE else "DELTA_MISSING_DELTA_TABLE"
    expected = "delta.`path`, a Delta table of the session catalog, or a temporary view of one"
    refused = InvalidArgumentError(
        f"[{condition}] the name is not a Delta table", found=str(target), expected=expected
    )
    if is_permanent_view:
        names["view"] = names["quoted_table"]
    name = ".".join(part.strip("`") for part in names["relation"].split("."))
    return refused.with_values(operation=" ".join(words), name=name, **names)


def creates_function(reader: Reader, *kind: str) -> bool:
    """True for CREATE [OR REPLACE] FUNCTION, with the words `kind` before FUNCTION."""
    return any(reader.at("CREATE", *words, *kind, "FUNCTION") for words in ((), ("OR", "REPLACE")))


def refuse_unsupported(reader: Reader, *, reads_table: bool) -> None:
    """Raises UnsupportedFeatureError for INSERT OVERWRITE [LOCAL] DIRECTORY ... USING delta, and for CREATE
    FUNCTION of a function that reads a Delta table."""
    of_directory = any(reader.at("INSERT", "OVERWRITE", *words, "DIRECTORY") for words in ((), ("LOCAL",)))
    if of_directory and (provider_of(reader) or "").lower() in FORMATS:
        raise UnsupportedFeatureError(
            "INSERT OVERWRITE DIRECTORY is not supported",
            found="USING delta",
            expected="INSERT OVERWRITE delta.`path`",
        )
    if reads_table and creates_function(reader):
        raise UnsupportedFeatureError(
            "a persistent SQL function that reads a Delta table is not supported",
            expected="CREATE TEMPORARY FUNCTION",
        )
