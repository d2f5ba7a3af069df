"""Converts errors so that programs written for delta-spark can catch them: an error of a public function on
Spark is an instance of a class of `deltaic.errors` and of a class of `pyspark.errors`."""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FunctionType, MappingProxyType
from typing import Any, TypeVar, cast

from deltaic.engine.spark.errors import describe_by, without_aliases
from deltaic.engine.spark.native.java_errors import java_error_bases
from deltaic.errors import DeltaError
from deltaic.protocol.versions import refusing_as_delta_spark
from deltaic.spark.conditions import (
    CONDITIONS,
    REST,
    RUNTIME,
    condition_named,
    fitting,
    kind_of,
    parameters_of,
    tag_of,
)
from deltaic.spark.hints import advise_on_spark

_F = TypeVar("_F", bound=Callable[..., Any])
_C = TypeVar("_C", bound=type)

_BASES = "pyspark.errors.exceptions.base"
_DESCRIBED = "_deltaic_on_spark"
UNPARSED = MappingProxyType({"PARSE_SYNTAX_ERROR": "DELTA_FAILED_RECOGNIZE_PREDICATE"})
"""`of_predicates` of functions whose only expression is a predicate: Spark's condition for an expression that
does not parse -> delta-spark's."""
OF_PARTITIONS = MappingProxyType(
    {**UNPARSED, "UNRESOLVED_COLUMN.WITH_SUGGESTION": "DELTA_NON_PARTITION_COLUMN_REFERENCE"},
)
"""`of_predicates` of OPTIMIZE, whose predicate may use partition columns only."""
SPARK_CONDITIONS = MappingProxyType(
    {
        "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION": "ALL_PARTITION_COLUMNS_NOT_ALLOWED",
        "DELTA_DUPLICATE_COLUMNS_FOUND.DATA": "COLUMN_ALREADY_EXISTS",
        "DELTA_DUPLICATE_COLUMNS_FOUND.PARTITION_COLUMNS": "_LEGACY_ERROR_TEMP_3058",
        "DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE": "IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE",
        "DELTA_INVALID_GENERATED_COLUMN_REFERENCES": "UNSUPPORTED_EXPRESSION_GENERATED_COLUMN",
        "DELTA_INVALID_PARTITION_COLUMN_TYPE": "INVALID_PARTITION_COLUMN_DATA_TYPE",
        "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN": "UNSUPPORTED_EXPRESSION_GENERATED_COLUMN",
        "DELTA_UDF_IN_GENERATED_COLUMN": "UNSUPPORTED_EXPRESSION_GENERATED_COLUMN",
        "UNSUPPORTED_EXPR_FOR_OPERATOR": "INVALID_WHERE_CONDITION",
    }
)
"""`instead` of functions that define a table: conditions of delta-spark -> Spark's conditions for the same
mistakes, which Spark raises first."""
_WITHOUT_CLASS = ("DELTA_", "FAILED_READ_FILE", "UNSUPPORTED_TABLE_CHANGE")
"""Beginnings of the conditions of runtime exceptions for which PySpark has no class."""
_RAISED_IN_QUERY = "USER_RAISED_EXCEPTION"
"""Spark's condition for `raise_error`, which deltaic's checks of rows call in a query."""


def raises_as_spark(
    preferred: Mapping[type[DeltaError], str] | None = None,
    instead: Mapping[str, str] | None = None,
    of_predicates: Mapping[str, str] = MappingProxyType({}),
    *,
    advises: bool = True,
) -> Callable[[_F], _F]:
    """Returns a decorator for public functions on Spark. It makes each DeltaError an instance of a class of
    `pyspark.errors` too, with a condition of delta-spark. The function refuses definitions of tables where
    delta-spark refuses them.

    `preferred`: class of errors -> the condition that they get from this function.
    `instead`: condition of delta-spark -> Spark's condition for the same mistake, for statements that Spark
    checks before delta-spark does.
    `of_predicates`: Spark's condition for an expression -> delta-spark's condition for the predicate of this
    function.
    `advises`: False for a function with deltaic's own arguments: its errors keep advice such as
    `schema_mode='merge'`."""

    def decorated(function: _F) -> _F:
        @functools.wraps(function)
        def call(*args: Any, **named: Any) -> Any:
            try:
                with refusing_as_delta_spark():
                    return function(*args, **named)
            except DeltaError as error:
                name = next(
                    (name for kind, name in (preferred or {}).items() if isinstance(error, kind)), None
                )
                make_of_spark(error, name, instead or {}, of_predicates, advises=advises)
                raise

        return cast(_F, call)

    return decorated


def methods_raise_as_spark(kind: _C) -> _C:
    """Decorates the public methods of a class with `raises_as_spark`. If a method is decorated already, the
    conditions of that decorator count."""
    wrapped = raises_as_spark()
    for name, value in list(vars(kind).items()):
        if name.startswith("_"):
            continue
        if isinstance(value, classmethod):
            setattr(kind, name, classmethod(wrapped(value.__func__)))
        elif isinstance(value, FunctionType):
            setattr(kind, name, wrapped(value))
    return kind


@dataclass(frozen=True)
class _ErrorDescription:
    """The condition, SQLSTATE and message parameters of an error of deltaic, which PySpark's methods
    return."""

    condition: str | None = None
    sql_state: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)


def make_of_spark(
    error: DeltaError,
    preferred: str | None = None,
    instead: Mapping[str, str] = MappingProxyType({}),
    of_predicates: Mapping[str, str] = MappingProxyType({}),
    *,
    advises: bool = True,
) -> None:
    """Changes the class of an error to one that also derives from a class of `pyspark.errors`. The object,
    its traceback and its attributes stay. `preferred`: name of the condition that the error gets, None to
    find it. `instead`, `of_predicates`, `advises`: as for `raises_as_spark`."""
    if hasattr(error, "getCondition"):
        return
    description, kind = _described(error, preferred, instead, of_predicates)
    if advises:
        advise_on_spark(error)
    error.__dict__[_DESCRIBED] = description
    has_no_class = kind == RUNTIME and (description.condition or "").startswith(_WITHOUT_CLASS)
    error.__class__ = _class_of(type(error), kind, java_error_bases() if has_no_class else ())


class _PySparkMethods:
    """The methods of PySpark's exceptions (`getCondition`, `getSqlState`, ...) for an error of deltaic."""

    _plain: type[DeltaError]

    def getCondition(self) -> str | None:
        """Returns the name of the condition, or None if neither delta-spark nor Spark has one."""
        return self._described.condition

    def getErrorClass(self) -> str | None:
        """Deprecated name of `getCondition`."""
        warnings.warn("Deprecated in 4.0.0, use getCondition instead.", FutureWarning, stacklevel=2)
        return self.getCondition()

    def getSqlState(self) -> str | None:
        """Returns the SQLSTATE (five characters), or None for an error without a condition."""
        return self._described.sql_state

    def getMessageParameters(self) -> dict[str, str]:
        """Returns the message parameters of the condition whose values the error has."""
        return dict(self._described.parameters)

    def getQueryContext(self) -> list[Any]:
        """Returns an empty list, because the message names the place."""
        return []

    def getBreakingChangeInfo(self) -> None:
        """Returns None, because no error is about a breaking change of Spark."""
        return None

    def getMessage(self) -> str:
        """Returns the text of the error, like `str`."""
        return str(self)

    def within(self, place: str) -> DeltaError:
        """Like `DeltaError.within`, with PySpark's methods."""
        error = cast(DeltaError, self)
        plain = self._plain(error.message, where=error.where, found=error.found, expected=error.expected)
        return plain.with_values(**error.values).within(place)

    @property
    def _described(self) -> _ErrorDescription:
        return cast(_ErrorDescription, self.__dict__.get(_DESCRIBED, _ErrorDescription()))

    def __str__(self) -> str:
        text, description = str(cast(DeltaError, self).args[0]), self._described
        if description.condition is None:
            return text
        tagged = text if f"[{description.condition}]" in text else f"[{description.condition}] {text}"
        return tagged if description.sql_state is None else f"{tagged} SQLSTATE: {description.sql_state}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self._plain, cast(DeltaError, self).args, dict(self.__dict__))


def _unpickled(kind: type[DeltaError], arguments: tuple[Any, ...], attributes: dict[str, Any]) -> DeltaError:
    """Unpickles an error as an instance of its class in `deltaic.errors` alone, because the other process may
    have no PySpark."""
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    error.__dict__.update({name: value for name, value in attributes.items() if name != _DESCRIBED})
    return error


_classes: dict[tuple[type[DeltaError], str, tuple[type, ...]], type[DeltaError]] = {}


def _class_of(plain: type[DeltaError], kind: str, java: tuple[type, ...]) -> type[DeltaError]:
    """Returns the class that derives from `plain` and from the class `kind` of `pyspark.errors`. Equal
    arguments give the same class.

    `java`: the `java_error_bases` for a runtime exception of delta-spark, such as that of a violated CHECK
    constraint, for which PySpark has no class."""
    if (existing := _classes.get((plain, kind, java))) is not None:
        return existing
    from pyspark import errors

    body = {
        "_plain": plain,
        "__module__": plain.__module__,
        "__qualname__": plain.__qualname__,
        "__doc__": plain.__doc__,
    }
    both = type(
        plain.__name__,
        (_PySparkMethods, plain, getattr(errors, kind, errors.PySparkException), *java),
        body,
    )
    return _classes.setdefault((plain, kind, java), cast("type[DeltaError]", both))


def _described(
    error: DeltaError,
    preferred: str | None,
    instead: Mapping[str, str],
    of_predicates: Mapping[str, str] = MappingProxyType({}),
) -> tuple[_ErrorDescription, str]:
    """Returns the error's description and the name of its class in `pyspark.errors`. The condition is, in
    this order, the one in the error's message, the first of CONDITIONS that fits, the condition of Spark's
    exception that caused the error, or one of REST."""
    name = tag_of(error)
    condition = condition_named(name or preferred or "") or fitting(error, CONDITIONS)
    cause: Any = error.__cause__
    if condition is None and (kind := _spark_class(cause)) is not None:
        spark_condition = cause.getCondition()
        if (of_predicate := condition_named(of_predicates.get(spark_condition or "", ""))) is not None:
            name = (cause.getMessageParameters() or {}).get("objectName")
            error.with_values(column=None if name is None else name.strip("`"))
            return _ErrorDescription(
                of_predicate.name, of_predicate.sql_state, dict(parameters_of(error, of_predicate))
            ), of_predicate.kind
        if spark_condition is not None and spark_condition != _RAISED_IN_QUERY:
            parameters = {
                name: without_aliases(str(text))
                for name, text in (cause.getMessageParameters() or {}).items()
            }
            return _ErrorDescription(spark_condition, cause.getSqlState(), parameters), kind
    if condition is None and name is not None:  # a task raised the error for a row
        state = re.search(rf"\[{re.escape(name)}\].*?SQLSTATE: (\w{{5}})", str(cause), re.DOTALL)
        return _ErrorDescription(name, state[1] if state else None), RUNTIME if state else kind_of(error)
    if condition is None and (condition := fitting(error, REST)) is None:
        return _ErrorDescription(), kind_of(error)
    condition = condition_named(instead.get(condition.name, "")) or condition
    return _ErrorDescription(
        condition.name, condition.sql_state, dict(parameters_of(error, condition))
    ), condition.kind


def _condition(error: DeltaError) -> tuple[str | None, str | None]:
    if isinstance(error, _PySparkMethods):
        return error.getCondition(), error.getSqlState()
    description, _ = _described(error, None, {})
    return description.condition, description.sql_state


describe_by(_condition)


def _spark_class(error: BaseException | None) -> str | None:
    """Returns the name of an exception's class in `pyspark.errors`, or None if the exception is not one of
    PySpark."""
    return next((each.__name__ for each in type(error).__mro__ if each.__module__ == _BASES), None)
