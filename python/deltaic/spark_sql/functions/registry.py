"""The registry of functions. Each form is a function's name, the types of its parameters, and how DuckDB
computes it.

Patterns of parameters:

- a type's name, such as `long`: the argument is cast to this type as Spark does by itself;
- `=date`: the argument has this type, and is not cast;
- `integral`, `numeric`, `decimal`, `temporal`, `interval`: the argument has one of these types;
- `number`: a number stays as it is, text is cast to double;
- `any`: the argument stays as it is;
- `T`, `array<T>`, `map<K,V>`: type variables; arguments that share a variable are cast to their common type;
- a last parameter that ends with `...` repeats, zero or more times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError, nearest_names
from deltaic.protocol.schema import Array, DataType, Map
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, implicit
from deltaic.spark_sql.functions.kernels import kernel_sql
from deltaic.spark_sql.functions.refused import REFUSED
from deltaic.spark_sql.values import Value

Build = Callable[[list[Value], Zone], Value]


@dataclass(frozen=True)
class Form:
    """A function with the types of its parameters. `build`: returns the value of a call; its arguments are
    already cast to the parameters' types."""

    name: str
    parameters: tuple[str, ...]
    result: str
    build: Build

    @property
    def signature(self) -> str:
        return f"{self.name}({', '.join(self.parameters)})"


FORMS: dict[str, list[Form]] = {}


def form(
    names: str,
    parameters: str,
    result: str,
    sql: str = "",
    *,
    kernel: str = "",
    nullable: bool | None = None,
    raises: bool = False,
    native: bool = False,
    foldable: bool = True,
) -> None:
    """Adds a form whose SQL is a template: `{0}` is the first argument, `{all}` are all arguments, `{zone}`
    is the session time zone as text.

    `kernel`: in place of `sql`, a kernel of `rust/src/expressions/` that takes all arguments.
    `nullable=True`: the result may be null even if no argument is. `raises`: the function may fail on a row.
    `native`: the template already has the result's type, so no cast is added.
    `foldable=False`: Spark computes the function for each row even if all its arguments are literals.
    """
    if kernel:
        sql, native = kernel_sql(kernel, result, "{all}"), True

    def build(arguments: list[Value], zone: Zone) -> Value:
        kind = _result_type(result, parameters, arguments)
        filled = sql.format(*(value.sql for value in arguments), zone=v.text(zone.name), all=", ".join(value.sql for value in arguments))
        cast_sql = filled if native else f"CAST({filled} AS {v.duckdb_type(kind)})"
        value = v.combine(cast_sql, kind, arguments, nullable=nullable, raises=raises)
        return value if foldable else value.not_foldable(arguments)

    register(names, parameters, result, build)


def register(names: str, parameters: str, result: str, build: Build) -> None:
    """Adds a form whose value `build` returns. `names`: one or more names of the same function, separated by
    spaces."""
    patterns = tuple(part.strip() for part in _split(parameters)) if parameters else ()
    for name in names.split():
        FORMS.setdefault(name, []).append(Form(name, patterns, result, build))


def refuse(name: str, parameters: str) -> None:
    """Adds a form that raises UnsupportedFeatureError. Without it, the arguments would be cast to the
    parameters of another form, whose result is not Spark's."""

    def build(arguments: list[Value], zone: Zone) -> Value:
        raise v.unsupported(f"function {name}", *(argument.type for argument in arguments))

    register(name, parameters, "", build)


def call(name: str, arguments: Sequence[Value], zone: Zone) -> Value:
    """Returns the value of a function call. Raises UnsupportedFeatureError if the function is not supported
    for these types of arguments."""
    found = FORMS.get(name.lower())
    types = [value.type for value in arguments]
    if not found and (reason := REFUSED.get(name.lower())):
        raise UnsupportedFeatureError(f"function {name} is not supported by the embedded engine: {reason}")
    if not found:
        from deltaic.spark_sql.query.windows import FUNCTIONS
        from deltaic.spark_sql.translation import AGGREGATES

        if name.lower() in FUNCTIONS:
            raise InvalidArgumentError(f"[WINDOW_FUNCTION_WITHOUT_OVER_CLAUSE] the window function {name} needs OVER (...)")
        near = nearest_names(name, [*FORMS, *AGGREGATES])
        expected = None if near is None or len(near) > 100 else near
        raise v.unsupported(f"[UNRESOLVED_ROUTINE] function {name}", *types, expected=expected)
    for accepts in (_same, _widens, _any):
        for candidate in found:
            accepted = _accept(candidate, list(arguments), zone, accepts)
            if accepted is not None:
                return _in_order(candidate.name, accepted, candidate.build(accepted, zone))
    raise v.unsupported(f"function {name}", *types, expected=" or ".join(each.signature for each in found[:5]))


# Functions for which Spark evaluates all arguments, even if one is null, or that choose which arguments are
# evaluated. For all other functions, Spark stops at the first null.
_EAGER = frozenset(
    [
        *("coalesce", "nvl", "ifnull", "if", "nvl2", "nullif", "nanvl", "zeroifnull", "nullifzero", "isnull", "isnotnull", "equal_null"),
        *(
            "greatest",
            "least",
            "assert_true",
            "raise_error",
            "array",
            "map",
            "map_concat",  # and concat: Spark's generated code may stop at the first null, its interpreter does not
            "concat",
            "concat_ws",
            "elt",
            "decode",
            "locate",
            "position",
        ),
        *("hash", "xxhash64", "format_string", "printf", "mask", "typeof", "variant_delete"),
    ]
)
# Functions for which Spark evaluates the last argument first; if it is null, the others are not evaluated.
_LAST_FIRST = frozenset(["pmod", "mod", "try_divide", "try_mod", "array_repeat", "ltrim", "rtrim"])


def _in_order(name: str, arguments: Sequence[Value], result: Value) -> Value:
    if name in _EAGER:
        return result
    if name == "array_repeat" and not result.foldable:  # Spark evaluates both arguments for each row, even if one is null
        return result
    return v.in_order(arguments[::-1] if name in _LAST_FIRST else arguments, result)


def _split(parameters: str) -> list[str]:
    parts, depth = [""], 0
    for character in parameters:
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _same(found: DataType, target: DataType) -> bool:
    return found == "void" or v.same_but_nulls(found, target)


def _widens(found: DataType, target: DataType) -> bool:
    """True if a cast loses nothing."""
    return _same(found, target) or v.common_type(found, target) == target or (v.is_numeric(found) and target == "double")


def _any(found: DataType, target: DataType) -> bool:
    """True if Spark casts between these types by itself: never a number to a narrower type of number."""
    return not (v.is_numeric(found) and v.is_numeric(target)) or _widens(found, target) or v.decimal_of(target) is not None


def _accept(candidate: Form, arguments: list[Value], zone: Zone, accepts: Callable[[DataType, DataType], bool]) -> list[Value] | None:
    """Returns the arguments cast to the form's parameters, or None if they do not fit or need a cast for
    which `accepts` is false."""
    patterns = list(candidate.parameters)
    if patterns and patterns[-1].endswith("..."):
        repeated = patterns.pop().removesuffix("...")
        patterns += [repeated] * (len(arguments) - len(patterns))
    if len(patterns) != len(arguments):
        return None
    bound = _bind(patterns, arguments)
    if bound is None:
        return None
    result = []
    for pattern, value in zip(patterns, arguments, strict=True):
        target = _target(pattern, value, bound)
        if target is None:
            return None
        if not accepts(value.type, target):
            return None
        try:
            result.append(implicit(value, target, zone, candidate.name))
        except InvalidArgumentError:
            return None
    return result


def _bind(patterns: Sequence[str], arguments: Sequence[Value]) -> dict[str, DataType] | None:
    """Returns type variable -> the common type of all arguments that share it; None if they have no common
    type."""
    bound: dict[str, DataType] = {}
    for pattern, value in zip(patterns, arguments, strict=True):
        for variable, found in _variables(pattern, value.type):
            common = v.common_type(bound.get(variable, "void"), found)
            if common is None:
                return None
            bound[variable] = common
    return bound


def _variables(pattern: str, found: DataType) -> list[tuple[str, DataType]]:
    if len(pattern) == 1:
        return [(pattern, found)]
    if pattern.startswith("array<") and isinstance(found, Array):
        return _variables(pattern[6:-1], found.element)
    if pattern.startswith("map<") and isinstance(found, Map):
        key, value = pattern[4:-1].split(",")
        return [*_variables(key, found.key), *_variables(value, found.value)]
    return []


def _target(pattern: str, value: Value, bound: dict[str, DataType]) -> DataType | None:
    """Returns the type that an argument is cast to, or None if the pattern does not fit it."""
    found = value.type
    if pattern == "any":
        return found
    if pattern.startswith("="):
        return pattern[1:] if found in (pattern[1:], "void") else None
    if len(pattern) == 1:
        return bound[pattern]
    if pattern.startswith("array<"):
        element = bound.get(pattern[6:-1], pattern[6:-1])
        return Array(element) if isinstance(found, Array) or found == "void" else None
    if pattern.startswith("map<"):
        key, item = pattern[4:-1].split(",")
        return Map(bound.get(key, key), bound.get(item, item)) if isinstance(found, Map) else None
    matches = {
        "integral": found in v.INTEGRAL,
        "numeric": v.is_numeric(found),
        "decimal": v.decimal_of(found) is not None,
        "temporal": found in v.TEMPORAL,
        "interval": v.is_interval(found),
    }
    if pattern == "number":
        return found if v.is_numeric(found) else "double" if found in ("string", "void") else None
    if pattern in matches:
        return found if matches[pattern] else None
    return pattern


def _result_type(result: str, parameters: str, arguments: Sequence[Value]) -> DataType:
    """Returns the type of a result given as a type's name, `T`, `array<T>` or `array<string>`. `T` is the
    type that it stands for in the arguments, which must be cast already."""
    if result.startswith("array<"):
        return Array(_result_type(result[6:-1], parameters, arguments))
    if len(result) > 1:
        return result
    patterns = _split(parameters)
    last = patterns[-1].strip()
    repeated = [last] * (len(arguments) - len(patterns)) if last.endswith("...") else []
    for pattern, value in zip([*patterns, *repeated], arguments, strict=False):
        for variable, found in _variables(pattern.strip().removesuffix("..."), value.type):
            if variable == result:
                return found
    return "void"


def literal(value: Value, what: str) -> Value:
    """Returns `value`. Raises UnsupportedFeatureError if it is not a literal; a literal null is allowed."""
    if value.is_constant:
        return value
    raise v.unsupported(f"{what} that is not a literal")


def constant_text(value: Value, what: str) -> str:
    """Returns the text of an argument. Raises UnsupportedFeatureError if the argument is not a literal
    string."""
    if value.is_constant and isinstance(value.constant, str):
        return value.constant
    raise v.unsupported(f"{what} that is not a literal")


def constant_int(value: Value, what: str) -> int:
    """Returns the number of an argument. Raises UnsupportedFeatureError if the argument is not a literal
    integer."""
    if value.is_constant and isinstance(value.constant, int):
        return value.constant
    raise v.unsupported(f"{what} that is not a literal")
