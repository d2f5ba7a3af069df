"""How Spark shows calls of functions in the names of columns: `log(x)` as `LOG(E(), x)`, `split(s, ',')` as
`split(s, ,, -1)`.

Source: the names in Spark 4.3's answers, in tests/spark_sql/test_column_names.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from deltaic.spark_sql.values import TEMPORAL

Shown: TypeAlias = "Callable[[list[str], Sequence[Any]], str | None]"

_UPPER = """
    power signum sqrt exp expm1 log log10 log2 log1p cbrt sin cos tan asin acos atan atan2 sinh cosh tanh
    asinh acosh atanh degrees radians
    e pi cot sec csc hypot rlike regexp regexp_like if"""
_RENAMED = {
    "array_agg": "collect_list",
    "dateadd": "date_add",
    **{name: name.upper() for name in _UPPER.split()},
}
_AES = (", GCM, DEFAULT, , ", ", DEFAULT, , ", ", , ", ", ")
_AES_BACK = (", GCM, DEFAULT, ", ", DEFAULT, ", ", ")
_ZERO, _CLOCK = "X'00'", ", yyyy-MM-dd HH:mm:ss"
_NO_TIME = (", 0, 0, 0, 0.000000", ", 0, 0, 0.000000", ", 0, 0.000000", ", 0.000000")
_NO_INTERVAL = (
    "0, 0, 0, 0, 0, 0, 0.000000",
    ", 0, 0, 0, 0, 0, 0.000000",
    ", 0, 0, 0, 0, 0.000000",
    *_NO_TIME,
)
_DEFAULTED = {("regexp_replace", 3): ", 1", ("split", 2): ", -1", ("months_between", 2): ", true",
              ("sort_array", 1): ", true", ("str_to_map", 1): ", ,, :", ("str_to_map", 2): ", :",
              ("percentile", 2): ", 1", ("approx_top_k", 1): ", 5, 10000", ("approx_top_k", 2): ", 10000",
              ("round", 1): ", 0", ("bround", 1): ", 0",
              ("replace", 2): ", ", ("locate", 2): ", 1", ("position", 2): ", 1",
              ("regexp_extract", 2): ", 1", ("regexp_extract_all", 2): ", 1", ("regexp_instr", 2): ", 0",
              ("overlay", 3): ", -1",
              ("unix_timestamp", 1): _CLOCK, ("to_unix_timestamp", 1): _CLOCK, ("from_unixtime", 1): _CLOCK,
              ("mask", 1): ", X, x, n, NULL", ("mask", 2): ", x, n, NULL", ("mask", 3): ", n, NULL",
              ("mask", 4): ", NULL",
              **{("aes_encrypt", count): _AES[count - 2] for count in range(2, 6)},
              **{(f"{safe}aes_decrypt", count): _AES_BACK[count - 2]
                 for safe in ("", "try_") for count in range(2, 5)},
              **{("make_dt_interval", count): (_NO_TIME[0][2:], *_NO_TIME[1:])[count] for count in range(4)},
              **{(f"{safe}make_interval", count): _NO_INTERVAL[count]
                 for safe in ("", "try_") for count in range(7)},
              ("make_ym_interval", 0): "0, 0", ("make_ym_interval", 1): ", 0",
              ("hmac", 2): ", SHA-256", ("listagg", 1): ", NULL", ("string_agg", 1): ", NULL",
              ("approx_percentile", 2): ", 10000", ("percentile_approx", 2): ", 10000"}  # fmt: skip
_UNSHOWN = {"from_json", "from_csv", "to_json", "to_csv", "schema_of_csv", "approx_count_distinct", "first",
            "last", "any_value", "first_value", "last_value"}  # fmt: skip
"""Functions whose name shows only the first argument."""


def call_name(name: str, arguments: list[str], types: Sequence[Any], count: int) -> str:
    """Returns how Spark shows a call. `arguments`: how it shows them. `types`: their types; empty if unknown.
    `count`: the number of arguments, which counts each of DISTINCT a, b."""
    if (special := _SPECIAL.get(name)) is not None and (shown := special(arguments, types)) is not None:
        return shown
    if name in _UNSHOWN:
        arguments = arguments[:1]
    if name in ("ceil", "floor") and len(arguments) == 1:
        name = name.upper()
    text = usual_name(name, arguments, count)
    return f"({text})" if name == "if" else text


def usual_name(name: str, arguments: Sequence[str], count: int) -> str:
    """Returns a call as `name(arguments)`, with the defaults of arguments that are left out."""
    return f"{_RENAMED.get(name, name)}({', '.join(arguments)}{_DEFAULTED.get((name, count), '')})"


def _padded(name: str) -> Shown:
    def shown(arguments: list[str], types: Sequence[Any]) -> str | None:
        return (
            f"{name}({', '.join(arguments)}, {_ZERO if 'binary' in types[:1] else ' '})"
            if len(arguments) == 2
            else None
        )

    return shown


def _to_char(name: str) -> Shown:
    def shown(arguments: list[str], types: Sequence[Any]) -> str | None:
        if types and types[0] in TEMPORAL:
            return f"date_format({', '.join(arguments)})"
        if types and types[0] == "binary" and name == "to_varchar":
            return f"to_varchar({arguments[0]})"
        if types and types[0] == "binary":
            kind = arguments[1].lower()
            return f"{kind}({arguments[0]})" if kind in ("hex", "base64") else None
        return f"to_char({', '.join(arguments)})"

    return shown


def _with_unit(name: str) -> Shown:
    return lambda arguments, _: f"{name}({', '.join(arguments)})" if len(arguments) == 3 else None


def _trimmed(side: str) -> Shown:
    return lambda arguments, _: (
        f"TRIM({side} {arguments[0]} FROM {arguments[1]})" if len(arguments) == 2 else None
    )


def _error_of_assertion(arguments: list[str], types: Sequence[Any]) -> str | None:
    condition = arguments[0]
    return f"assert_true({condition}, '{condition}' is not true!)" if len(arguments) == 1 else None


_EPOCH = {kind: f"{kind.upper()} '1970-01-01 00:00:00'" for kind in ("timestamp", "timestamp_ntz")}
_EPOCH["void"] = _EPOCH["timestamp"]
_SAME = "lambdafunction(namedlambdavariable(), namedlambdavariable())"
_ASCENDING = (
    "lambdafunction((IF(((v() IS NULL) AND (v() IS NULL)), 0, (IF((v() IS NULL), 1, (IF((v() IS NULL), -1,"
    " (IF((v() < v()), -1, (IF((v() > v()), 1, 0)))))))))), v(), v())"
).replace("v()", "namedlambdavariable()")
"""The lambda function that Spark shows for `array_sort` without one."""
_SPECIAL: dict[str, Shown] = {
    "positive": lambda arguments, _: f"(+ {arguments[0]})",
    "negative": lambda arguments, _: None,
    "log": lambda arguments, _: f"LOG(E(), {arguments[0]})" if len(arguments) == 1 else None,
    "like": lambda arguments, _: " ".join(
        [f"{arguments[0]} LIKE {arguments[1]}", *(f"ESCAPE '{each}'" for each in arguments[2:])]
    ),
    "ilike": lambda arguments, _: f"ilike({', '.join(arguments[:2])})",
    "datepart": lambda arguments, _: f"datepart({arguments[0]} FROM {arguments[1]})",
    "convert_timezone": lambda arguments, _: (
        f"convert_timezone(current_timezone(), {', '.join(arguments)})" if len(arguments) == 2 else None
    ),
    **{name: _to_char(name) for name in ("to_char", "to_varchar")},
    **dict.fromkeys(("date_add", "dateadd"), _with_unit("timestampadd")),
    **dict.fromkeys(("date_diff", "datediff"), _with_unit("timestampdiff")),
    **{name: _padded(name) for name in ("lpad", "rpad")},
    "ltrim": _trimmed("LEADING"),
    "rtrim": _trimmed("TRAILING"),
    "assert_true": _error_of_assertion,
    "raise_error": lambda arguments, _: (
        f"raise_error(USER_RAISED_EXCEPTION, map(errorMessage, {', '.join(arguments)}))"
    ),
    "mode": lambda arguments, _: (
        f"mode() WITHIN GROUP (ORDER BY {arguments[0]} DESC)" if len(arguments) == 2 else None
    ),
    "from_json": lambda arguments, _: (
        "entries" if len(arguments) > 1 and arguments[1].lower().startswith("map<") else None
    ),
    "aggregate": lambda arguments, _: (
        f"aggregate({', '.join(arguments)}, {_SAME})" if len(arguments) == 3 else None
    ),
    "reduce": lambda arguments, _: (
        f"reduce({', '.join(arguments)}, {_SAME})" if len(arguments) == 3 else None
    ),
    "variant_get": lambda arguments, _: f"variant_get({', '.join(arguments[:2])})",
    "try_variant_get": lambda arguments, _: f"try_variant_get({', '.join(arguments[:2])})",
    "time_bucket": lambda arguments, types: (
        f"time_bucket({', '.join(arguments)}, {_EPOCH[types[1]]})" if len(arguments) == 2 and types else None
    ),
    "array_sort": lambda arguments, _: (
        f"array_sort({arguments[0]}, {_ASCENDING})" if len(arguments) == 1 else None
    ),
}
"""Functions that Spark shows in another way than `name(arguments)`. Function -> what returns its text from
the arguments and their types, or None if these arguments are shown in the usual way."""
