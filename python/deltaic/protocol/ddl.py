"""Spark's DDL text of a schema: `id bigint not null, name string comment 'who', tags array<string>`.

Source: Spark SQL reference, "Data Types" and the column clauses of CREATE TABLE. The parser is a recursive
descent over a list of tokens. Expressions in DEFAULT and GENERATED are stored as they are written. Text that
does not parse is an InvalidArgumentError with its position.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import repeat
from typing import Any, NoReturn

from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError, check_instance
from deltaic.protocol.ddl_tokens import words_and_marks
from deltaic.protocol.schema import (
    CHAR_TYPES,
    MAX_DEPTH,
    Array,
    DataType,
    Field,
    Map,
    ResultType,
    Schema,
    Struct,
    check_type,
)
from deltaic.protocol.type_places import inside, result_types
from deltaic.sql_text import Token, quote_name, spark_text, string_value

_ALIASES = {
    "boolean": "boolean", "tinyint": "byte", "byte": "byte", "smallint": "short", "short": "short",
    "int": "integer", "integer": "integer", "bigint": "long", "long": "long", "float": "float",
    "real": "float", "double": "double", "date": "date", "timestamp": "timestamp",
    "timestamp_ltz": "timestamp", "timestamp_ntz": "timestamp_ntz", "string": "string", "binary": "binary",
    "variant": "variant", "void": "void",
}  # fmt: skip
_timestamp: ContextVar[DataType] = ContextVar("the type that TIMESTAMP names", default="timestamp")
TO_DDL = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
_IN_CASTS = {**TO_DDL, "timestamp": "timestamp_ltz"}
_INTERVAL_UNITS = ("year", "month", "day", "hour", "minute", "second")
_SRIDS = {
    "geometry(0)": "geometry(SRID:0)",
    "geometry(3857)": "geometry(EPSG:3857)",
    "geometry(4326)": "geometry(OGC:CRS84)",
    "geography(4326)": "geography(OGC:CRS84, spherical)",
}
"""Geospatial types in Spark's SQL -> Delta's name of the type."""
_BOUNDED = {"char": "char", "character": "char", "varchar": "varchar"}
_TABLE_CONSTRAINTS = frozenset({("primary", "key"), ("foreign", "key"), ("unique", "("), ("check", "(")})
_COLUMN_CONSTRAINTS = frozenset({"primary", "foreign", "unique", "check", "references", "constraint"})
_NESTED_CLAUSES = {"not": "NOT NULL", "comment": "COMMENT"}
"""First word of a clause of a field in a struct -> the clause's name in errors."""
_CLAUSES = {**_NESTED_CLAUSES, "default": "DEFAULT", "generated": "GENERATED ALWAYS AS"}
"""Like `_NESTED_CLAUSES`, for a column."""


@contextmanager
def timestamps_without_zone() -> Iterator[None]:
    """In the body, TIMESTAMP is parsed as the type timestamp_ntz."""
    before = _timestamp.set("timestamp_ntz")
    try:
        yield
    finally:
        _timestamp.reset(before)


def parse_schema(text: str) -> Schema:
    """Parses a list of columns; see `Schema.from_ddl`."""
    check_instance(text, str, "a schema in DDL", "text")
    parser = _Parser(text)
    schema = Schema(parser.fields(closing=None, depth=0))
    if parser.refusal is not None:
        raise parser.refusal.with_values(unsupported=tuple(result_types(schema)))
    return schema


def parse_type(text: str) -> DataType:
    """Parses a type in DDL, such as `array<struct<a: int>>`. CHAR(n) and VARCHAR(n) are an
    UnsupportedFeatureError: their length is in the metadata of a column, which a type does not have."""
    data_type, metadata = parse_column_type(text)
    if metadata:
        raise UnsupportedFeatureError(
            "only a whole column has the type CHAR or VARCHAR", found=repr(text[:80]), expected="STRING"
        )
    return data_type


def parse_column_type(text: str) -> tuple[DataType, dict[str, Any]]:
    """Parses the type of a column. Returns the type and the metadata of the column, which has the lengths of
    CHAR(n) and VARCHAR(n)."""
    parser = _Parser(text)
    data_type = parser.data_type(0)
    if parser.peek().kind != "end":
        parser.fail("the end of the type")
    if parser.refusal is not None:
        raise parser.refusal
    return data_type, parser.lengths(data_type)


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [*words_and_marks(text), Token("end", "", len(text), len(text))]
        self.position = 0
        self.leaves: list[str | None] = []
        """For each primitive type parsed so far in the current column, in order: its text if it is CHAR(n) or
        VARCHAR(n), else None."""
        self.refusal: UnsupportedFeatureError | None = None
        """The error of the first type that a table cannot have."""

    def peek(self, ahead: int = 0) -> Token:
        return self.tokens[min(self.position + ahead, len(self.tokens) - 1)]

    def next(self) -> Token:
        token = self.peek()
        self.position += 1
        return token

    def is_mark(self, mark: str) -> bool:
        return self.peek().kind == "symbol" and self.peek().text == mark

    def mark(self, mark: str) -> None:
        if not self.is_mark(mark):
            self.fail(f"{mark!r}")
        self.next()

    def words(self, *words: str) -> bool:
        """Advances past these words if they come next; True if they did."""
        for ahead, word in enumerate(words):
            token = self.peek(ahead)
            if token.kind != "word" or token.text.lower() != word:
                return False
        self.position += len(words)
        return True

    def fail(self, expected: str) -> NoReturn:
        token = self.peek()
        found = repr(token.text[:40]) if token.text else "the end"
        raise InvalidArgumentError(
            "the DDL text does not parse", where=self.where(token), found=found, expected=expected
        )

    def name(self) -> str:
        token = self.peek()
        if token.kind not in ("quoted", "word") or not token.name:
            self.fail("a column's name")
        self.next()
        return token.name

    def fields(self, *, closing: str | None, depth: int) -> list[Field]:
        result: list[Field] = []
        if self.peek().kind == "end" or (closing and self.is_mark(closing)):
            return result
        while True:
            if closing is None:
                self.refuse_constraint()
            result.append(self.field(nested=closing is not None, depth=depth))
            if self.is_mark(","):
                self.next()
            elif self.peek().kind == "end" if closing is None else self.is_mark(closing):
                return result
            else:
                self.fail(
                    "a comma, NOT NULL, COMMENT, DEFAULT, GENERATED, "
                    + (f"or {closing!r}" if closing else "or the end")
                )

    def field(self, *, nested: bool, depth: int) -> Field:
        name = self.name()
        if self.is_mark(":"):
            self.next()
        if not nested:
            self.leaves.clear()
        with inside(name):
            data_type = self.data_type(depth)
        nullable = True
        metadata: dict[str, Any] = {} if nested else self.lengths(data_type)
        clauses: set[str] = set()
        while True:
            self.refuse_repeated(clauses, name, nested)
            if self.words("not", "null"):
                nullable = False
            elif self.words("comment"):
                metadata["comment"] = self.string()
            elif not nested and self.words("default"):
                metadata["CURRENT_DEFAULT"] = self.expression()
            elif not nested and self.words("generated"):
                self.generated(metadata)
            elif not nested and self.peek().text.lower() in _COLUMN_CONSTRAINTS:
                self.fail_on_constraint()
            else:
                return Field(name, data_type, nullable, metadata)

    def refuse_repeated(self, clauses: set[str], column: str, nested: bool) -> None:
        """Adds the clause of a column that comes next to `clauses`, those that the column has had. Raises
        InvalidArgumentError if it is among them."""
        words = _NESTED_CLAUSES if nested else _CLAUSES
        if (clause := words.get(self.peek().text.lower() if self.peek().kind == "word" else "")) is None:
            return
        if clause in clauses:
            raise InvalidArgumentError("a clause of a column comes twice", where=column, found=clause)
        clauses.add(clause)

    def refuse_constraint(self) -> None:
        """Raises UnsupportedFeatureError if a constraint stands in the place of a column. The next words
        decide, as a column may be called `check` or `primary`, too."""
        first, second, third = (self.peek(ahead).text.lower() for ahead in range(3))
        if (first, second) in _TABLE_CONSTRAINTS or (first == "constraint" and third in _COLUMN_CONSTRAINTS):
            self.fail_on_constraint()

    def fail_on_constraint(self) -> NoReturn:
        expected = "ALTER TABLE ... ADD CONSTRAINT name CHECK (condition)"
        raise UnsupportedFeatureError(
            "a table constraint among the columns is not supported",
            where=self.where(self.peek()),
            expected=expected,
        )

    def lengths(self, data_type: DataType) -> dict[str, Any]:
        """Returns the metadata of a column whose type was just parsed: its type with CHAR(n) and VARCHAR(n),
        if it contains any."""
        return {CHAR_TYPES: catalog_string(data_type, iter(self.leaves))} if any(self.leaves) else {}

    def generated(self, metadata: dict[str, Any]) -> None:
        always = self.words("always")
        if not always and not self.words("by", "default"):
            self.fail("ALWAYS or BY DEFAULT")
        if not self.words("as"):
            self.fail("AS")
        if self.words("identity"):
            start, step = self.identity_range()
            metadata |= {
                "delta.identity.start": start,
                "delta.identity.step": step,
                "delta.identity.allowExplicitInsert": not always,
            }
        elif not always:
            self.fail("IDENTITY")
        else:
            opening = self.peek()
            self.mark("(")
            depth = 1
            while depth:
                token = self.next()
                if token.kind == "end":
                    self.fail("')'")
                depth += {"(": 1, ")": -1}.get(token.text, 0) if token.kind == "symbol" else 0
            metadata["delta.generationExpression"] = self.text[opening.end : token.start].strip()

    def identity_range(self) -> tuple[int, int]:
        options = {"START": 1, "INCREMENT": 1}
        given: set[str] = set()
        if self.is_mark("("):
            self.next()
            while not self.is_mark(")"):
                option = self.peek().text.upper()
                if not self.words("start", "with") and not self.words("increment", "by"):
                    self.fail("START WITH, INCREMENT BY or ')'")
                if option in given:
                    raise InvalidArgumentError(
                        "an option of IDENTITY comes twice", where=repr(self.text[:200]), found=option
                    )
                given.add(option)
                options[option] = self.whole_number()
            self.next()
        if options["INCREMENT"] == 0:
            raise InvalidArgumentError("an identity column's step is not 0", where=repr(self.text[:200]))
        return options["START"], options["INCREMENT"]

    def whole_number(self) -> int:
        sign = 1
        if self.is_mark("-") or self.is_mark("+"):
            sign = -1 if self.next().text == "-" else 1
        token = self.peek()
        if (
            token.kind != "word"
            or not token.text.isascii()
            or not token.text.isdigit()
            or len(token.text) > 19
        ):
            self.fail("a whole number")
        self.next()
        return sign * int(token.text)

    def string(self) -> str:
        token = self.peek()
        if token.kind != "string":
            self.fail("a string in quotes")
        self.next()
        return string_value(token.text)

    def expression(self) -> str:
        """Returns the text before the next comma or clause that is outside parentheses and brackets."""
        first = self.peek()
        depth = 0
        last = None
        while (token := self.peek()).kind != "end" and (depth > 0 or not self.is_clause_end()):
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token.text, 0) if token.kind == "symbol" else 0
            last = self.next()
        if last is None or depth != 0:
            self.fail("an expression")
        return self.text[first.start : last.end]

    def is_clause_end(self) -> bool:
        """True if a comma or another clause of the column comes next."""
        words = [self.peek(ahead).text.lower() if self.peek(ahead).kind == "word" else "" for ahead in (0, 1)]
        return self.is_mark(",") or words[0] in ("comment", "generated") or words == ["not", "null"]

    def where(self, token: Token) -> str:
        return f"character {token.start + 1} of {self.text[:200]!r}"

    def data_type(self, depth: int) -> DataType:
        if depth > MAX_DEPTH:
            raise InvalidArgumentError(
                f"the DDL text nests deeper than {MAX_DEPTH} types", where=self.where(self.peek())
            )
        token = self.peek()
        if token.kind != "word":
            self.fail("a type")
        word = token.text.lower()
        if word == "time":
            raise UnsupportedFeatureError("the type 'time' is not supported", where=self.where(token))
        self.next()
        if word in ("array", "map", "struct"):
            return self.nested(word, depth)
        self.leaves.append(None)
        if word == "interval":
            return self.refused("the type 'interval' is not supported", token, self.interval())
        if word in _BOUNDED:
            return self.bounded(_BOUNDED[word])
        if word in ("decimal", "dec", "numeric"):
            return self.decimal(token)
        if word in ("geometry", "geography"):
            return self.shape(token)
        if word == "string" and self.words("collate"):
            return self.refused("collations are not supported", token, f"string({self.name()})")
        if word not in _ALIASES:
            raise InvalidArgumentError(
                "no such type",
                where=self.where(token),
                found=repr(token.text[:40]),
                expected="a type of Spark's SQL",
            )
        return _timestamp.get() if word == "timestamp" else _ALIASES[word]

    def refused(self, message: str, token: Token, name: str) -> DataType:
        """Returns a type that a table cannot have. The rest is parsed, because the error names all such
        columns."""
        self.refusal = self.refusal or UnsupportedFeatureError(message, where=self.where(token))
        return ResultType(name)

    def interval(self) -> str:
        """Parses the units of an interval: `interval`, `interval day`, `interval day to second`."""
        first = self.unit()
        last = self.unit() if first and self.words("to") else ""
        return " ".join(filter(None, ("interval", first, last and f"to {last}")))

    def unit(self) -> str:
        return next((unit for unit in _INTERVAL_UNITS if self.words(unit)), "")

    def decimal(self, token: Token) -> DataType:
        precision, scale = 10, 0
        if self.is_mark("("):
            self.next()
            precision = self.whole_number()
            if self.is_mark(","):
                self.next()
                scale = self.whole_number()
            self.mark(")")
        if not 1 <= precision <= 38 or not 0 <= scale <= precision:
            raise InvalidArgumentError(
                "a decimal's precision is 1 to 38 and its scale 0 to its precision",
                where=self.where(token),
                found=f"decimal({precision},{scale})",
            )
        return f"decimal({precision},{scale})"

    def shape(self, first: Token) -> DataType:
        """Parses `geometry(OGC:CRS84)`, `geography(OGC:CRS84, spherical)` or Spark's `geometry(4326)`."""
        self.mark("(")
        while not self.is_mark(")"):
            if self.next().kind == "end":
                self.fail(")")
        last = self.next()
        text = first.text.lower() + self.text[first.end : last.end]
        try:
            return check_type(_SRIDS.get("".join(text.split()), text))
        except InvalidArgumentError:
            expected = "geometry(OGC:CRS84) or geography(OGC:CRS84, spherical)"
            raise InvalidArgumentError(
                "not a type of shapes", where=self.where(first), found=text[:80], expected=expected
            ) from None

    def bounded(self, name: str) -> DataType:
        """Parses the length of CHAR(n) or VARCHAR(n). The type in the log is string."""
        self.mark("(")
        self.leaves[-1] = f"{name}({self.length()})"
        self.mark(")")
        return "string"

    def length(self) -> int:
        token = self.peek()
        if (length := self.whole_number()) < 1:
            raise InvalidArgumentError(
                "a CHAR or VARCHAR has at least one character", where=self.where(token), found=str(length)
            )
        return length

    def nested(self, word: str, depth: int) -> DataType:
        self.mark("<")
        result: DataType
        if word == "array":
            with inside("element"):
                result = Array(self.data_type(depth + 1))
        elif word == "map":
            with inside("key"):
                key = self.data_type(depth + 1)
            self.mark(",")
            with inside("value"):
                result = Map(key, self.data_type(depth + 1))
        else:
            result = Struct(self.fields(closing=">", depth=depth + 1))
        self.mark(">")
        return result


def format_schema(schema: Schema) -> str:
    """Writes a list of columns; see `Schema.to_ddl`."""
    return ", ".join(_format_field(item, " ") for item in schema)


def format_type(data_type: DataType, names: Mapping[str, str] = TO_DDL) -> str:
    """Writes a type as Spark's DDL in lower case: `array<struct<a: int>>`. `names`: names of types without
    parts that differ from Delta's."""
    if isinstance(data_type, Struct):
        return f"struct<{', '.join(_format_field(item, ': ', names) for item in data_type.fields)}>"
    if isinstance(data_type, Array):
        return f"array<{format_type(data_type.element, names)}>"
    if isinstance(data_type, Map):
        return f"map<{format_type(data_type.key, names)}, {format_type(data_type.value, names)}>"
    return names.get(data_type, data_type)


def cast_type(data_type: DataType) -> str:
    """Like `format_type`, for a CAST in Spark: a timestamp is TIMESTAMP_LTZ, because TIMESTAMP has no zone if
    `spark.sql.timestampType` is TIMESTAMP_NTZ."""
    return format_type(data_type, _IN_CASTS)


_NO_LENGTHS: Iterator[None] = repeat(None)


def catalog_string(data_type: DataType, leaves: Iterator[str | None] = _NO_LENGTHS) -> str:
    """Writes a type as Spark's `catalogString`, which Spark stores in a column's metadata, and shows in
    errors: `struct<x:char(3),y:int>`. `leaves`: as `_Parser.leaves`; by default no type has a length."""
    if isinstance(data_type, Struct):
        fields = (f"{quote_name(item.name)}:{catalog_string(item.type, leaves)}" for item in data_type.fields)
        return f"struct<{','.join(fields)}>"
    if isinstance(data_type, Array):
        return f"array<{catalog_string(data_type.element, leaves)}>"
    if isinstance(data_type, Map):
        return f"map<{catalog_string(data_type.key, leaves)},{catalog_string(data_type.value, leaves)}>"
    return next(leaves) or format_type(data_type)


def _format_field(item: Field, between: str, names: Mapping[str, str] = TO_DDL) -> str:
    data_type = item.metadata.get(CHAR_TYPES) or format_type(item.type, names)
    parts = [f"{quote_name(item.name)}{between}{data_type}"]
    if not item.nullable:
        parts.append("not null")
    if between == " ":
        parts += _format_generation(item)
    if isinstance(comment := item.metadata.get("comment"), str):
        parts.append(f"comment {spark_text(comment)}")
    return " ".join(parts)


def _format_generation(item: Field) -> list[str]:
    metadata = item.metadata
    if "delta.generationExpression" in metadata:
        return [f"generated always as ({metadata['delta.generationExpression']})"]
    if "delta.identity.start" in metadata:
        kind = "by default" if metadata.get("delta.identity.allowExplicitInsert") else "always"
        step = metadata.get("delta.identity.step", 1)
        return [
            f"generated {kind} as identity (start with {metadata['delta.identity.start']} increment by"
            f" {step})"
        ]
    if "CURRENT_DEFAULT" in metadata:
        return [f"default {metadata['CURRENT_DEFAULT']}"]
    return []
