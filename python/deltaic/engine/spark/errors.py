"""Converts exceptions of Spark to errors of deltaic: errors of analysis, errors that an expression raises on
a row, and files that no longer exist."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from deltaic.engine.spark.origins import unnoted
from deltaic.errors import DeltaError, InvalidArgumentError, ProtocolError, UnsupportedFeatureError
from deltaic.plan.failures import read_failure
from deltaic.protocol.schema import split_path
from deltaic.sql_text import quote_name

_CONDITION = re.compile(r"\[([A-Z_][A-Z0-9_.]+)\] (.*?)(?: SQLSTATE: \w{5}|\n|$)", re.DOTALL)
_ALIASES = re.compile(r"`?\b__deltaic_[st]\b`?\.")
_MISSING = re.compile(
    r"ModuleNotFoundError: (?:No module named '((?:deltaic|pyarrow)[\w.]*)'|(deltaic is not installed where"
    r" [^\n]*))"
)
_OF_ROWS = frozenset({"22", "21", "2F"})
"""SQLSTATE classes (the first two letters) of errors that an expression raises on a row, such as a division
by zero."""
_INTERNAL = "XXKST"
"""SQLSTATE that Spark uses for errors without one of their own."""
_describe: list[Callable[[DeltaError], tuple[str | None, str | None]]] = []


def describe_by(function: Callable[[DeltaError], tuple[str | None, str | None]]) -> None:
    """Sets the function that returns condition and SQLSTATE of an error, for errors that reach the user
    through the JVM. `deltaic.spark.raising` sets it, because this module must not import `deltaic.spark`."""
    _describe[:] = [function]


def java_error_text(
    error: DeltaError, message: str, default: str | None = "DELTA_TABLE_CANNOT_BE_READ"
) -> str:
    """Returns the text `CONDITION SQLSTATE message`, from which `Calls.fail` of `driver_classes` creates an
    AnalysisException. `default`: the condition of an error that has none; None for an exception without a
    condition."""
    condition, state = _describe[0](error) if _describe else (None, None)
    if (condition := condition or default) is None:
        return f"- - {message}"
    return f"{condition} {state or _INTERNAL} {message}"


@contextmanager
def named_errors() -> Iterator[None]:
    """Converts errors that Spark raises in the body to errors of deltaic. Messages do not name the line of
    deltaic's code that called Spark, which PySpark would add."""
    from pyspark.errors import PySparkException

    try:
        with unnoted():
            yield
    except DeltaError:
        raise
    except Exception as error:
        # Errors of py4j are recognized by their name, because a client of Spark Connect may not have py4j.
        if isinstance(error, PySparkException) or type(error).__name__.startswith("Py4J"):
            raise named(error) from error
        raise


def named(error: Exception) -> Exception:
    """Returns the deltaic error for an error of Spark; the error itself if deltaic has none for it."""
    text = str(error)
    if (failure := read_failure(text)) is not None:
        return failure
    if "deltaic." in text and (callback_error := _of_callback(text)) is not None:
        return callback_error
    if (missing := _MISSING.search(text)) is not None:
        needed = "every executor needs the driver's wheel of deltaic"
        message = missing[2] or f"{missing[1]} is not installed on an executor: {needed}"
        return ModuleNotFoundError(message, name=missing[1] or "deltaic")
    if "java.lang.StackOverflowError" in text:
        return InvalidArgumentError(
            "an expression is nested too deeply for Spark, or joins too many parts by AND",
            expected=(
                "fewer levels of brackets, IN (...) in place of comparisons, or a larger -Xss in"
                " spark.driver.extraJavaOptions"
            ),
        )
    from pyspark.errors import AnalysisException, IllegalArgumentException, ParseException

    text = without_aliases(text)
    match = _CONDITION.search(text)
    message = match[2].strip() if match else text.split("\n")[0][:500]
    if match and match[1] == "PATH_NOT_FOUND":
        return _gone(message)
    if isinstance(error, (AnalysisException, ParseException, IllegalArgumentException)):
        if match and match[1] == "UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY":
            return UnsupportedFeatureError(
                "a subquery over a table by path is not supported in an expression",
                found=message,
                expected="MERGE, or a join",
            )
        if match and match[1].startswith("UNSUPPORTED"):
            return UnsupportedFeatureError(message)
        refused = InvalidArgumentError(message, where=_place(text))
        if match and match[1].startswith("UNRESOLVED_COLUMN"):
            name = without_aliases((error.getMessageParameters() or {}).get("objectName", ""))
            refused.with_values(unresolved=".".join(map(quote_name, split_path(name))) if name else None)
        return refused
    if match and match[1].startswith("FAILED_READ_FILE"):
        if "FILE_NOT_EXIST" in match[1] or "FileNotFoundException" in text:
            return _gone(message)
        return ProtocolError("a data file cannot be read", found=message)
    if match and (state := re.search(r"SQLSTATE: (\w{2})\w{3}", text)) and state[1] in _OF_ROWS:
        from deltaic.spark_sql.duckdb import ExpressionError

        return ExpressionError(message, condition=match[1])
    return error


def without_aliases(text: str) -> str:
    """Removes the aliases that deltaic gives to tables without one: `` `__deltaic_t`.`id` `` becomes
    `` `id` ``."""
    return _ALIASES.sub("", text)


def _gone(message: str) -> ProtocolError:
    return ProtocolError("a file that the log names is not there; VACUUM may have removed it", found=message)


def _place(text: str) -> str | None:
    match = re.search(r"line (\d+),? pos (\d+)", text)
    return f"line {match[1]}, position {match[2]}" if match else None


_RAISED = re.compile(r"^(?:py4j\.Py4JException: .*\n)?.*deltaic\.errors\.(\w+): (.*)$", re.MULTILINE)
"""Matches class and message of a deltaic error in the text of Spark's exception."""


def _of_callback(text: str) -> DeltaError | None:
    """Returns the deltaic error that Python raised in a call from the JVM; None if the text has none. Spark's
    exception has only the text of such an error."""
    from deltaic import errors

    match = _RAISED.search(text)
    kind = getattr(errors, match[1], None) if match else None
    return kind(match[2]) if match and isinstance(kind, type) and issubclass(kind, DeltaError) else None
