"""The registry of functions. Each form is a function's name, the types of its parameters, and how DuckDB
computes it.

Patterns of parameters:

- a type's name, such as `long`: the argument is cast to this type as Spark does by itself;
- `=date`: the argument has this type, and is not cast;
- `integral`, `numeric`, `decimal`, `temporal`, `interval`: the argument has one of these types;
- `number`: a number stays as it is, text is cast to double;
- `any`: the argument stays as it is;
- `array`, `map`, `collection` (an array or map): the argument stays as it is, of any type: `build` checks it;
- `T`, `array<T>`, `map<K,V>`: type variables; arguments that share a variable are cast to their common type;
- a last parameter that ends with `...` repeats, zero or more times.

A NULL without a type becomes the type of its parameter, as Spark casts it (`_UNTYPED`; one of two numbers has
the type of the other one). If a literal that `build` needs is NULL, the result is NULL.
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
        filled = sql.format(
            *(value.sql for value in arguments),
            zone=v.text(zone.name),
            all=", ".join(value.sql for value in arguments),
        )
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


def takes_no_untyped_null(name: str, parameters: str) -> None:
    """Adds a form that raises DATATYPE_MISMATCH: Spark casts no NULL without a type to these parameters."""

    def build(arguments: list[Value], zone: Zone) -> Value:
        raise v.mismatch(name, *(argument.type for argument in arguments))

    register(name, parameters, "", build)


def call(name: str, arguments: Sequence[Value], zone: Zone) -> Value:
    """Returns the value of a function call. Raises UnsupportedFeatureError if the function is not supported
    for these types of arguments."""
    found = FORMS.get(name.lower())
    types = [value.type for value in arguments]
    if found and "void" in types:
        found = sorted(found, key=lambda each: _taken_exactly(each, types))
    if not found and (reason := REFUSED.get(name.lower())):
        raise UnsupportedFeatureError(f"function {name} is not supported by the embedded engine: {reason}")
    if not found:
        from deltaic.spark_sql.query.windows import FUNCTIONS
        from deltaic.spark_sql.translation import AGGREGATES

        if name.lower() in FUNCTIONS:
            raise InvalidArgumentError(
                f"[WINDOW_FUNCTION_WITHOUT_OVER_CLAUSE] the window function {name} needs OVER (...)"
            )
        near = nearest_names(name, [*FORMS, *AGGREGATES])
        expected = None if near is None or len(near) > 100 else near
        raise v.unsupported(f"[UNRESOLVED_ROUTINE] function {name}", *types, expected=expected)
    for accepts in (_same, _widens, _any):
        for candidate in found:
            accepted = _accept(candidate, list(arguments), zone, accepts)
            if accepted is not None:
                return _in_order(candidate.name, accepted, _built(candidate, accepted, zone))
    raise v.unsupported(
        f"function {name}", *types, expected=" or ".join(each.signature for each in found[:5])
    )


def _built(candidate: Form, arguments: list[Value], zone: Zone) -> Value:
    try:
        return candidate.build(arguments, zone)
    except NullLiteralError:
        kind = _known_type(candidate.result)
        if kind is None:
            raise
        return v.combine(f"CAST(NULL AS {v.duckdb_type(kind)})", kind, arguments, nullable=True)


def _known_type(result: str) -> DataType | None:
    """Returns the type of a form's result, or None if it depends on the arguments."""
    if result.startswith("map<"):
        key, value = result[4:-1].split(",")
        return Map(key, value) if _known_type(key) and _known_type(value) else None
    if result.startswith("array<"):
        element = _known_type(result[6:-1])
        return None if element is None else Array(element)
    return result if v.is_primitive(result) else None


def _taken_exactly(candidate: Form, types: Sequence[DataType]) -> int:
    """Returns how many NULLs without a type the form takes as one type of several, such as `=binary`: Spark
    prefers another form, of numbers or text. A form that names `=void` comes first."""
    taken = [pattern for pattern, kind in zip(candidate.parameters, types, strict=False) if kind == "void"]
    return sum(-1 if pattern == "=void" else pattern.startswith(("=", "array<")) for pattern in taken)


# Functions for which Spark evaluates all arguments, even if one is null, or that choose which arguments are
# evaluated. For all other functions, Spark stops at the first null.
_EAGER = frozenset(
    [
        *(
            "coalesce",
            "nvl",
            "ifnull",
            "if",
            "nvl2",
            "nullif",
            "nanvl",
            "zeroifnull",
            "nullifzero",
            "isnull",
            "isnotnull",
            "equal_null",
        ),
        *(
            "greatest",
            "least",
            "assert_true",
            "raise_error",
            "array",
            "map",
            # map_concat and concat: Spark's generated code may stop at the first null, its interpreter
            # does not
            "map_concat",
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
    if name in ("array_append", "array_insert", "array_prepend"):  # the item may be null
        arguments = arguments[:-1]
    # Spark evaluates both arguments for each row, even if one is null
    if name == "array_repeat" and not result.foldable:
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
    return (
        _same(found, target)
        or v.common_type(found, target) == target
        or (v.is_numeric(found) and target == "double")
    )


def _any(found: DataType, target: DataType) -> bool:
    """True if Spark casts between these types by itself: never a number to a narrower type of number."""
    return (
        not (v.is_numeric(found) and v.is_numeric(target))
        or _widens(found, target)
        or v.decimal_parts(target) is not None
    )


def _accept(
    candidate: Form, arguments: list[Value], zone: Zone, accepts: Callable[[DataType, DataType], bool]
) -> list[Value] | None:
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
    if patterns == _NUMBERS:  # a NULL takes the type of the other operand
        bound["numeric"] = next((value.type for value in arguments if v.is_numeric(value.type)), "double")
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


_NUMBERS = ["numeric", "numeric"]
_UNTYPED: dict[str, DataType] = {
    "integral": "integer",
    "numeric": "double",
    "number": "double",
    **dict.fromkeys(("array", "collection"), Array("void")),
    "map": Map("void", "void"),
}
"""Pattern -> the type that a NULL without a type becomes: in Spark, the pattern's `defaultConcreteType`."""


def _target(pattern: str, value: Value, bound: dict[str, DataType]) -> DataType | None:
    """Returns the type that an argument is cast to, or None if the pattern does not fit it."""
    found = value.type
    if found == "void" and pattern in _UNTYPED:
        return bound.get(pattern, _UNTYPED[pattern])
    if pattern in ("any", "array", "collection", "map"):
        return found
    if pattern.startswith("="):
        return pattern[1:] if found in (pattern[1:], "void") else None
    if len(pattern) == 1:
        return bound[pattern]
    if pattern.startswith("array<"):
        element = _inner(pattern[6:-1], bound)
        return Array(element) if isinstance(found, Array) or found == "void" else None
    if pattern.startswith("map<"):
        key, item = pattern[4:-1].split(",")
        return Map(_inner(key, bound), _inner(item, bound)) if isinstance(found, Map) else None
    matches = {
        "integral": found in v.INTEGRAL,
        "numeric": v.is_numeric(found),
        "decimal": v.decimal_parts(found) is not None,
        "temporal": found in v.TEMPORAL,
        "interval": v.is_interval(found),
    }
    if pattern == "number":
        return found if v.is_numeric(found) else "double" if found == "string" else None
    if pattern in matches:
        return found if matches[pattern] else None
    return pattern


def _inner(pattern: str, bound: dict[str, DataType]) -> DataType:
    """Returns the type of the items of an array or map: void if a type variable stands for NULLs alone."""
    return bound.get(pattern, "void" if len(pattern) == 1 else pattern)


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


class NullLiteralError(UnsupportedFeatureError):
    """Raised for a NULL in place of a literal that decides what a function does, such as a pattern: `call`
    gives NULL then, as Spark does. It is a refusal where the result would be of no known type."""


def literal(value: Value, what: str) -> Value:
    """Returns `value`. Raises UnsupportedFeatureError if it is not a literal; a literal null is allowed."""
    if value.is_constant:
        return value
    raise v.unsupported(f"{what} that is not a literal")


def constant_text(value: Value, what: str) -> str:
    """Returns the text of an argument. Raises UnsupportedFeatureError if the argument is not a literal
    string, and NullLiteralError if it is NULL."""
    if value.is_constant and isinstance(value.constant, str):
        return value.constant
    if value.is_constant and value.constant is None:
        raise NullLiteralError(f"{what} that is NULL")
    raise v.unsupported(f"{what} that is not a literal")


def constant_int(value: Value, what: str) -> int:
    """Returns the number of an argument. Raises UnsupportedFeatureError if the argument is not a literal
    integer, and NullLiteralError if it is NULL."""
    if value.is_constant and isinstance(value.constant, int):
        return value.constant
    if value.is_constant and value.constant is None:
        raise NullLiteralError(f"{what} that is NULL")
    raise v.unsupported(f"{what} that is not a literal")
