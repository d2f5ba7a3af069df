"""Generated columns: computed if the writer of a row does not set them, and compared with their expression if
it does.

Source: PROTOCOL.md, "Generated Columns": `delta.generationExpression` in a column's metadata, which has an
effect only if the protocol has the feature. The allowed functions are those of delta-spark's
SupportedGenerationExpressions.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from deltaic.commands.data_files import hidden_field
from deltaic.commands.invariants import Rule, under_stored_alias
from deltaic.commands.store_assignment import assigned, same_type
from deltaic.errors import DeltaError, InvalidArgumentError, SchemaMismatchError, UnsupportedFeatureError
from deltaic.plan import expression as expressions
from deltaic.plan.expression import Expression
from deltaic.plan.literal import col, enclosed
from deltaic.plan.nodes import STORED_ALIAS, Plan, Project
from deltaic.planning.planned import NON_DETERMINISTIC, check_deterministic
from deltaic.protocol.features import supported
from deltaic.protocol.schema import Field, Schema, type_name, walk
from deltaic.sql_text import tokens

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine
    from deltaic.protocol.actions import Protocol

KEY = "delta.generationExpression"
FEATURE = "generatedColumns"

_FUNCTIONS = """
    abs coalesce greatest if iff isnan ifnull isnull isnotnull least nanvl nullif nvl nvl2 when
    acos acosh asin asinh atan atan2 atanh bin bround cbrt ceil ceiling cos cosh conv degrees e exp expm1
    floor factorial hex hypot log log10 log1p log2 ln mod negative pi pmod positive pow power radians rint
    round shiftleft shiftright shiftrightunsigned sign signum sin sinh str_to_map sqrt tan cot tanh
    ascii char chr base64 bit_length char_length character_length concat_ws decode elt encode find_in_set
    format_number format_string get_json_object initcap instr lcase len length levenshtein like lower
    octet_length locate lpad ltrim parse_url position charindex printf regexp_extract regexp_replace
    regexp_like regexp repeat replace overlay rlike rpad rtrim sentences soundex space split substr substring
    left right substring_index translate trim ucase unbase64 unhex upper xpath xpath_boolean xpath_double
    xpath_number xpath_float xpath_int xpath_long xpath_short xpath_string
    add_months datediff date_diff date_add dateadd date_format date_sub day dayofyear dayofmonth from_unixtime
    from_utc_timestamp hour last_day minute month months_between next_day quarter second timestampadd
    timestampdiff to_timestamp to_date to_unix_timestamp to_utc_timestamp trunc date_trunc unix_timestamp
    dayofweek weekday weekofyear year make_date make_timestamp make_interval date_part datepart extract
    array array_contains arrays_overlap array_intersect array_join array_position array_sort array_except
    array_union map named_struct struct element_at map_from_arrays map_keys map_values map_entries
    map_from_entries map_concat size slice cardinality arrays_zip sort_array array_min array_max reverse
    concat flatten sequence array_repeat array_remove array_distinct transform map_filter filter exists forall
    aggregate reduce transform_values transform_keys map_zip_with zip_with
    assert_true crc32 md5 hash xxhash64 sha sha1 sha2 typeof bit_count to_json from_json schema_of_json
    from_csv schema_of_csv to_csv
    cast try_cast boolean tinyint smallint int bigint float double decimal string binary date timestamp
"""
ALLOWED = frozenset(_FUNCTIONS.split())
"""Functions that the expression of a generated column may call."""

_WITHOUT_BRACKETS = frozenset(
    (
        "current_timestamp",
        "current_date",
        "current_time",
        "current_user",
        "current_catalog",
        "localtimestamp",
        "session_user",
    )
)
_KEYWORDS = """
    and between by case div else end for from in is not or over then when interval numeric dec varchar
"""
_BEFORE_BRACKETS = frozenset(_KEYWORDS.split())


def plain(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a column's metadata without the keys of generated and identity columns."""
    return {
        key: value for key, value in metadata.items() if key != KEY and not key.startswith("delta.identity.")
    }


def columns_of(protocol: Protocol, schema: Schema) -> dict[str, str]:
    """Returns the expressions of generated columns by name."""
    texts = {item.name: item.metadata[KEY] for item in schema if isinstance(item.metadata.get(KEY), str)}
    return texts if texts and FEATURE in supported(protocol) else {}


def check(engine: Engine, schema: Schema) -> None:
    """Checks the generated columns of a new schema. An expression may call only allowed functions, may read
    only columns that are not generated, and must have the column's type.

    Raises InvalidArgumentError, SchemaMismatchError, or UnsupportedFeatureError for a function that is not
    allowed."""
    for path, item in walk(schema):
        if KEY in item.metadata and (len(path) > 1 or not isinstance(item.metadata[KEY], str)):
            raise InvalidArgumentError(
                "only a top-level column can be generated, by SQL text",
                where=".".join(path),
                found=item.metadata[KEY],
            )
    readable = Schema(
        [item for item in schema if KEY not in item.metadata and "delta.identity.start" not in item.metadata]
    )
    computed = {item.name.lower() for item in schema if KEY in item.metadata}
    for item in schema:
        if (text := item.metadata.get(KEY)) is None:
            continue
        with _of_column(item.name):
            _check_column(engine, item, str(text), readable, computed)


@contextmanager
def _of_column(name: str) -> Iterator[None]:
    """Adds the name of the generated column to errors of the body."""
    try:
        yield
    except DeltaError as error:
        error.with_values(column=name)
        raise


def _check_column(
    engine: Engine, item: Field, text: str, readable: Schema, computed: Collection[str]
) -> None:
    where = f"generated column {item.name}"
    if item.type == "variant":
        raise UnsupportedFeatureError("a generated column cannot have the type variant", where=where)
    if "CURRENT_DEFAULT" in item.metadata:
        raise InvalidArgumentError(
            "a generated column has no default", where=where, found=item.metadata["CURRENT_DEFAULT"]
        ).with_values(text=text)
    _check_functions(text, readable.names, where)
    try:
        resolved = engine.resolve(text, {STORED_ALIAS: readable})
    except InvalidArgumentError as error:
        missing = str(error.found).strip("`").lower()
        if missing == item.name.lower() or missing in computed:
            other = "itself" if missing == item.name.lower() else "another generated column"
            raise InvalidArgumentError(
                "a generated column cannot be computed from itself or another generated column",
                where=f"{where}: {text}",
                found=error.found,
                expected=error.expected or "columns that are not computed",
            ).with_values(
                text=text,
                reason=f"generation expression cannot reference {other}",
            ) from None
        raise InvalidArgumentError(
            error.message,
            where=f"{where}: {text}",
            found=error.found,
            expected=error.expected or "columns that are not computed",
        ).with_values(**error.values) from None
    check_deterministic(resolved, "the expression of a generated column")
    if not same_type(resolved.type, item.type):
        raise SchemaMismatchError(
            "the expression has another type than the generated column",
            where=f"{where}: {text}",
            found=type_name(resolved.type),
            expected=type_name(item.type),
        )


def _check_functions(text: str, columns: Iterable[str], where: str) -> None:
    known = {name.lower() for name in columns}
    found = [token for token in tokens(text) if token.kind != "comment"]
    for token, after in itertools.zip_longest(found, found[1:]):
        if token.kind not in ("word", "number"):
            continue
        word, called = token.text.lower(), after is not None and after.text == "("
        if word == "select" and word not in known:
            raise UnsupportedFeatureError(
                "a generated column cannot be computed by a subquery (SELECT)",
                where=where,
                found=text,
                expected="a function of its row alone",
            ).with_values(reason="subquery expressions are not allowed for generated columns")
        if (word in _WITHOUT_BRACKETS and word not in known) or (
            called and word not in ALLOWED and word not in _BEFORE_BRACKETS
        ):
            raise UnsupportedFeatureError(
                f"a generated column cannot be computed by the {_kind(word)} {word}",
                where=where,
                found=text,
                expected="a function of its row alone",
            )


def _kind(function: str) -> str:
    """Returns what a function is, for the text of errors."""
    # the parser of SQL takes time to import
    from deltaic.spark_sql.functions.refused import REFUSED
    from deltaic.spark_sql.functions.registry import FORMS
    from deltaic.spark_sql.query.windows import FUNCTIONS as WINDOWS
    from deltaic.spark_sql.translation import AGGREGATES

    if function in NON_DETERMINISTIC:
        return "non-deterministic function"
    if function in AGGREGATES:
        return "aggregate function"
    return (
        "function" if function in FORMS or function in REFUSED or function in WINDOWS else "user's function"
    )


def reads(engine: Engine, schema: Schema, text: str) -> frozenset[str]:
    """Returns the columns that an expression reads."""
    return frozenset(path[0] for _, path in engine.resolve(text, {STORED_ALIAS: schema}).columns)


def changed_by(
    engine: Engine, schema: Schema, generated: Mapping[str, str], assigned_columns: Collection[str]
) -> list[str]:
    """Returns the generated columns that must be computed again if `assigned_columns` get new values: those
    that read one of them and are not assigned themselves."""
    return [
        name
        for name, text in generated.items()
        if name not in assigned_columns and not reads(engine, schema, text).isdisjoint(assigned_columns)
    ]


def expression(engine: Engine, schema: Schema, name: str, text: str) -> Expression:
    """Returns the value of a generated column as an expression over the relation STORED_ALIAS."""
    return assigned(engine, text, schema.field(name).type, (name,), {STORED_ALIAS: schema}, "strict")


def computed(
    plan: Plan, schema: Schema, texts: Mapping[str, str], engine: Engine, *, hidden: Iterable[str] = ()
) -> Plan:
    """Computes the generated columns of `texts` in the rows of `plan`, which has the columns of `schema` and
    then `hidden`."""
    if not texts:
        return plan
    fields = (*schema, *(hidden_field(name) for name in hidden))
    kept = expressions.columns_of(STORED_ALIAS, fields)
    return Project(
        under_stored_alias(plan, fields),
        tuple(
            (name, expression(engine, schema, name, texts[name]) if name in texts else value)
            for name, value in kept
        ),
        getattr(plan, "alias", "u"),
    )


def rules_of(texts: Mapping[str, str]) -> list[Rule]:
    """Returns the rules for values of generated columns that a writer sets itself."""
    return [
        Rule(
            f"a value of the generated column {name} is not what its expression gives",
            f"{col(name)} <=> {enclosed(text)}",
            text,
        )
        for name, text in texts.items()
    ]
