"""Translates a parsed expression: each node becomes a `Value`, or raises UnsupportedFeatureError with the
name of its form."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from decimal import Decimal
from math import isinf
from typing import Any

from sqlglot import exp

from deltaic.errors import InvalidArgumentError
from deltaic.protocol.schema import Array, DataType
from deltaic.spark_sql import conditional, intervals, operators, patterns
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, cast, literal
from deltaic.spark_sql.functions import nested as collections
from deltaic.spark_sql.functions import registered
from deltaic.spark_sql.functions.registry import call
from deltaic.spark_sql.scope import Scope, fields
from deltaic.spark_sql.types import data_type
from deltaic.spark_sql.values import Value

assert registered  # its import fills the registry of forms

AGGREGATES = frozenset(
    [
        "count",
        "sum",
        "avg",
        "mean",
        "min",
        "max",
        "stddev",
        "stddev_samp",
        "stddev_pop",
        "std",
        "variance",
        "var_samp",
        "var_pop",
        "any_value",
        "first",
        "first_value",
        "last",
        "last_value",
        "collect_list",
        "array_agg",
        "collect_set",
        "bool_and",
        "every",
        "bool_or",
        "some",
        "any",
        "count_if",
        "max_by",
        "min_by",
        "sum_distinct",
        "median",
        "percentile",
        "percentile_approx",
        "approx_count_distinct",
        "approx_percentile",
        "corr",
        "covar_pop",
        "covar_samp",
        "kurtosis",
        "skewness",
        "mode",
        "bit_and",
        "bit_or",
        "bit_xor",
        "try_sum",
        "try_avg",
        "listagg",
        "string_agg",
        "grouping",
        "grouping_id",
        "regr_count",
        "regr_avgx",
        "regr_avgy",
        "regr_intercept",
        "regr_r2",
        "regr_slope",
        "regr_sxx",
        "regr_sxy",
        "regr_syy",
        "histogram_numeric",
        "product",
        "percentile_cont",
        "percentile_disc",
        "approx_top_k",
        "collect_union",
        "bitmap_construct_agg",
        "bitmap_or_agg",
        "bitmap_and_agg",
        "schema_of_variant_agg",
    ]
)
_COMPARISONS: dict[type, str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_ARITHMETIC: dict[type, str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
}
_BITWISE: dict[type, str] = {exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^"}
_NO_PARENTHESES: dict[type, str] = {
    exp.CurrentDate: "current_date",
    exp.CurrentTimestamp: "current_timestamp",
    exp.CurrentUser: "current_user",
}


class Translator:
    """Translates the nodes of one expression. Refuses aggregate functions and subqueries; a subclass may
    translate them."""

    def __init__(self, scope: Scope, zone: Zone) -> None:
        self.scope = scope
        self.zone = zone
        self.parts: Mapping[str, Value] = {}
        """Name of a placeholder -> its value. Only deltaic's own SQL has placeholders."""

    def value(self, node: exp.Expr) -> Value:
        """Returns the value of a node. Raises UnsupportedFeatureError or InvalidArgumentError if the node has
        no translation."""
        kind = type(node)
        if operator := _COMPARISONS.get(kind):
            return operators.compare(
                operator,
                self.value(node.this),
                self.value(node.expression),
                self.zone,
                joins=self.scope.joins,
            )
        if kind in (exp.Add, exp.Mul):
            return self.reordered(node)
        if operator := _ARITHMETIC.get(kind):
            return self.arithmetic(node, operator, self.value(node.this), self.value(node.expression))
        if operator := _BITWISE.get(kind):
            sides = [self.value(node.this), self.value(node.expression)]
            kinds = {side.type for side in sides}
            if kinds == {"void"}:
                sides = [cast(side, "integer", self.zone) for side in sides]
            elif not all(kind in (*v.INTEGRAL, "string", "void") for kind in kinds) or not any(
                kind in v.INTEGRAL for kind in kinds
            ):
                words = {"&": "AND", "|": "OR"}.get(operator) if "boolean" in kinds else None
                raise v.unsupported(
                    f"the operator {operator}",
                    *(side.type for side in sides),
                    expected=words and f"{words} between conditions",
                )
            if any(side.type == "string" for side in sides):
                sides = [cast(side, "long", self.zone) for side in sides]
            return call(operator, sides, self.zone)
        if handler := _HANDLERS.get(kind):
            return handler(self, node)
        if function := _NO_PARENTHESES.get(kind):
            return call(function, [], self.zone)
        raise self.refused(node)

    def arithmetic(self, node: exp.Expr, operator: str, left: Value, right: Value) -> Value:
        node.meta["types"] = left.type, right.type  # column names depend on them: `d + 3` is date_add(d, 3)
        return intervals.arithmetic(operator, left, right, self.zone)

    def known(self, node: exp.Expr) -> Value | None:
        """Returns the value of a node that a subclass has already computed elsewhere, such as a key of GROUP
        BY, else None."""
        return None

    def reordered(self, node: exp.Expr) -> Value:
        """Returns a sum or product. Literals of a sum of whole numbers come last, as in Spark's optimizer,
        because the order decides whether the sum overflows."""
        value, parts = self._parts(node, type(node))
        literals = [part for part in parts if part.foldable or part.is_constant]
        others = [part for part in parts if not (part.foldable or part.is_constant)]
        if not literals or not others or len(parts) == 2 or not value.deterministic:
            return value

        def together(left: Value, right: Value) -> Value:
            return operators.arithmetic(_ARITHMETIC[type(node)], left, right, self.zone)

        return together(functools.reduce(together, others), functools.reduce(together, literals))

    def _parts(self, node: exp.Expr, kind: type) -> tuple[Value, list[Value]]:
        """Returns the value of a node and, if the node is a sum or product (`kind`) of whole numbers, its
        operands, cast to one type."""
        while isinstance(node, exp.Paren):
            node = node.this
        if type(node) is not kind or self.known(node) is not None:
            value = self.value(node)
            return value, [value]
        (left, first), (right, second) = self._parts(node.this, kind), self._parts(node.expression, kind)
        value = self.arithmetic(node, _ARITHMETIC[kind], left, right)
        if value.type not in v.INTEGRAL:
            return value, [value]
        parts = []
        for side, inside in ((left, first), (right, second)):
            parts += inside if side.type == value.type else [cast(side, value.type, self.zone)]
        return value, parts

    def part(self, node: exp.Expression) -> Value:
        if (known := self.parts.get(node.name)) is None:
            raise self.refused(node)
        return known

    def refused(self, node: exp.Expr) -> Exception:
        if isinstance(node, (exp.Query, exp.Subquery, exp.Exists)) or (
            isinstance(node, exp.In) and node.args.get("query")
        ):
            return v.unsupported(f"the subquery in this place, {node.sql(dialect='databricks')[:100]},")
        if isinstance(node, (exp.Placeholder, exp.Parameter)):
            shown = f":{node.name}" if node.name else "?"
            return InvalidArgumentError(
                f"[UNBOUND_SQL_PARAMETER] no value for {shown}", expected="parameters="
            )
        if isinstance(node, exp.Window):
            return InvalidArgumentError(
                "[MISSING_WINDOW] a window function cannot stand in this place",
                found=node.sql(dialect="databricks")[:100],
            )
        return v.unsupported(f"the SQL {node.sql(dialect='databricks')[:100]}")

    # --- names and literals

    def column(self, node: exp.Expression) -> Value:
        parts = [part.name for part in node.parts] if isinstance(node, exp.Column) else [node.name]
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            raise InvalidArgumentError(
                "a star cannot stand in this place", found=node.sql(dialect="databricks")
            )
        return self.compared_by_bytes(node, self.scope.resolve(parts))

    def compared_by_bytes(self, node: exp.Expression, value: Value) -> Value:
        """Returns the value of a column. Raises UnsupportedFeatureError for text with a collation that is an
        operand of an expression: DuckDB would compare it by its bytes."""
        if value.collation is None or _is_passed_on(node):
            return value
        raise v.unsupported(f"text with the collation {value.collation} as an operand")

    def dot(self, node: exp.Expression) -> Value:
        names: list[str] = []
        base: exp.Expression = node
        while isinstance(base, exp.Dot):
            if not isinstance(base.expression, exp.Identifier):
                raise self.refused(node)
            names.insert(0, base.expression.name)
            base = base.this
        if isinstance(base, exp.Column):
            return self.compared_by_bytes(
                node, self.scope.resolve([*(part.name for part in base.parts), *names])
            )
        return fields(self.value(base), names)

    def literal(self, node: exp.Expression) -> Value:
        if node.is_string:
            return literal(node.name, "string")
        return number(node.name)

    def concatenated(self, node: exp.Expression) -> Value:
        if not all(part.is_string for part in node.expressions):
            raise self.refused(node)
        return literal("".join(part.name for part in node.expressions), "string")

    def negative(self, node: exp.Expression) -> Value:
        inner = node.this
        if isinstance(inner, exp.Literal) and not inner.is_string:
            return number("-" + inner.name)
        if isinstance(inner, exp.Cast) and isinstance(inner.this, exp.Literal) and not inner.this.is_string:
            # a literal with a suffix: -128Y
            return cast(number("-" + inner.this.name), data_type(inner.to), self.zone)
        value = self.value(inner)
        return intervals.negative(value, self.zone)

    # --- logic

    def conjunction(self, node: exp.Expression) -> Value:
        """Translates a chain of ANDs or ORs without recursion, as the tree of a chain of thousands is
        thousands of levels deep."""
        kind, parts, current = type(node), [], node
        while isinstance(current, kind):
            parts.append(current.expression)
            current = current.this
        parts.append(current)
        operator = "AND" if kind is exp.And else "OR"
        values = [self.value(part) for part in reversed(parts)]
        return operators.connect(operator, operators.booleans(values, self.zone, operator))

    def condition(self, node: exp.Expr, *, outer: bool = False, inner: bool = False) -> Value:
        """Returns the condition of a WHERE, HAVING or join, which keeps the rows where it is true. `outer`:
        the condition of an outer join, whose parts are all evaluated on joined rows. `inner`: all joins of
        the tables are inner joins, and the condition may have their keys."""
        parts, pending = [], [node]
        while pending:
            tree = pending.pop()
            if isinstance(tree, exp.Paren):
                pending.append(tree.this)
            elif isinstance(tree, exp.And) and self.known(tree) is None:
                pending += [tree.expression, tree.this]
            else:
                parts.append(tree)
        read, self.scope.columns = self.scope.columns, set()
        values, tables, keys = [], [], []
        for tree in parts:
            values.append(self.value(tree))
            tables.append(frozenset(() if outer else (alias for alias, _ in self.scope.columns)))
            read |= self.scope.columns
            self.scope.columns = set()
            keys.append(inner and values[-1].raises and values[-1].deterministic and self.is_key(tree))
        self.scope.columns = read
        if len(values) == 1:
            if values[0].type == "void":
                raise v.mismatch("a condition", "void")
            return operators.condition(values[0], self.zone, "a condition")
        return operators.filtered(
            list(zip(operators.booleans(values, self.zone, "AND"), tables, keys, strict=True))
        )

    def is_key(self, tree: exp.Expr) -> bool:
        """True if a condition says that values of two tables are equal, so that it is the key of a join."""
        return False

    def negation(self, node: exp.Expression) -> Value:
        return operators.negate(operators.boolean(self.value(node.this), self.zone, "NOT"))

    def is_predicate(self, node: exp.Expression) -> Value:
        value = self.value(node.this)
        if isinstance(node.expression, exp.Null):
            return operators.is_null(value)
        if isinstance(node.expression, exp.Var):
            if value.type == "string":
                raise v.unsupported("IS UNKNOWN", value.type)
            return operators.is_null(operators.condition(value, self.zone, "IS UNKNOWN"))
        if isinstance(node.expression, exp.Boolean):
            value = operators.boolean(value, self.zone, "IS")
            return value.like(
                f"({value.sql} IS {'TRUE' if node.expression.this else 'FALSE'})", "boolean", nullable=False
            )
        raise self.refused(node)

    def distinct_from(self, node: exp.Expression) -> Value:
        return operators.negate(
            operators.compare("<=>", self.value(node.this), self.value(node.expression), self.zone)
        )

    def between(self, node: exp.Expression) -> Value:
        if node.args.get("symmetric"):
            raise self.refused(node)
        value = self.value(node.this)
        low, high = self.value(node.args["low"]), self.value(node.args["high"])
        joins = self.scope.joins
        sides = [
            operators.compare(op, value, bound, self.zone, joins=joins)
            for op, bound in ((">=", low), ("<=", high))
        ]
        result = operators.connect("AND", sides)
        # DuckDB does not evaluate the lower bound if the upper bound decides
        if value.is_constant and sides[0].raises:
            return result.like(f"(CASE WHEN NOT {sides[0].sql} THEN false ELSE {result.sql} END)", "boolean")
        return result

    def contained(self, node: exp.Expression) -> Value:
        if node.args.get("query") or node.args.get("unnest") or node.args.get("field"):
            raise self.refused(node)
        if isinstance(node.this, exp.Tuple) and all(isinstance(item, exp.Tuple) for item in node.expressions):
            return self._contained_row([node.this, *node.expressions])
        return operators.contained(
            self.value(node.this), [self.value(item) for item in node.expressions], self.zone
        )

    def _contained_row(self, nodes: list[exp.Expression]) -> Value:
        """`(a, b) IN ((1, 2), ...)`: rows whose columns have other names are compared in the types that they
        have."""
        named = [self.row(each).type for each in nodes]
        left, *items = (self._row(each) for each in nodes)
        for kind in named[1:]:
            if v.field_names(kind) != v.field_names(named[0]) and not v.same_structure(kind, named[0]):
                types = f"{v.type_text(named[0])} and {v.type_text(kind)}"
                raise InvalidArgumentError(
                    "[DATATYPE_MISMATCH.DATA_DIFF_TYPES] the rows of IN have two types", found=types
                )
        return operators.contained(left, items, self.zone)

    def _row(self, node: exp.Expression) -> Value:
        """Returns `(a, b)` as a struct with generated names, for comparisons, which ignore names."""
        parts = [self.value(each) for each in node.expressions]
        return collections.struct_of([f"col{place}" for place in range(1, len(parts) + 1)], parts)

    def row(self, node: exp.Expression) -> Value:
        """Returns `(a, b)` as a struct; a field is named after its column, or by its position: `col2`."""
        names = [
            collections.column_name(each) or f"col{place}" for place, each in enumerate(node.expressions, 1)
        ]
        return collections.struct_of(names, [self.value(each) for each in node.expressions])

    def like(self, node: exp.Expression, escape: str = "\\") -> Value:
        if isinstance(node.expression, (exp.Any, exp.All)):
            return self._like_some(node)
        name = "ilike" if isinstance(node, exp.ILike) else "like"
        result = patterns.like(self.value(node.this), self.value(node.expression), escape, self.zone, name)
        return operators.negate(result) if node.args.get("negate") else result

    def _like_some(self, node: exp.Expression) -> Value:
        """Translates `a LIKE ANY (p, q)` as `a LIKE p OR a LIKE q`, and LIKE ALL with AND. With NOT, each
        LIKE is negated."""
        listed = node.expression.this
        patterns_ = (
            listed.expressions
            if isinstance(listed, exp.Tuple)
            else [listed.this if isinstance(listed, exp.Paren) else listed]
        )
        if any(isinstance(each, exp.Query) for each in patterns_):
            raise self.refused(node)
        parts = [
            self.like(type(node)(this=node.this, expression=each, negate=node.args.get("negate")))
            for each in patterns_
        ]
        return operators.connect("OR" if isinstance(node.expression, exp.Any) else "AND", parts)

    def escape(self, node: exp.Expression) -> Value:
        if (
            not isinstance(node.this, (exp.Like, exp.ILike))
            or not node.expression.is_string
            or len(node.expression.name) != 1
        ):
            raise self.refused(node)
        return self.like(node.this, node.expression.name)

    def case(self, node: exp.Expression) -> Value:
        branches = []
        for branch in node.args["ifs"]:
            if node.this is None:
                condition = self.value(branch.this)
                if condition.type == "void":
                    raise v.mismatch("CASE WHEN", condition.type)
            else:
                condition = operators.compare("=", self.value(node.this), self.value(branch.this), self.zone)
            branches.append((condition, self.value(branch.args["true"])))
        default = node.args.get("default")
        return conditional.case(branches, None if default is None else self.value(default), self.zone)

    # --- functions

    def cast(self, node: exp.Expression) -> Value:
        if node.args.get("format") or node.args.get("action") or node.args.get("default"):
            raise self.refused(node)
        return cast(
            self.value(node.this), data_type(node.args["to"]), self.zone, safe=isinstance(node, exp.TryCast)
        )

    def function(self, node: exp.Expression) -> Value:
        if not isinstance(node.this, str):
            raise v.unsupported(f"function {node.this}")
        name = node.this.lower()
        if name in AGGREGATES and not (name == "any" and len(node.expressions) != 1):
            raise InvalidArgumentError(
                f"{_place_error(node)}the aggregate function {name} cannot stand in this place",
                found=node.sql(dialect="databricks")[:100],
            )
        if handler := collections.SPECIAL.get(name):
            return handler(self, node)
        for argument in node.expressions:
            if isinstance(
                argument,
                (
                    exp.Alias,
                    exp.Lambda,
                    exp.Distinct,
                    exp.Star,
                    exp.Ordered,
                    exp.Order,
                    exp.IgnoreNulls,
                    exp.RespectNulls,
                    exp.Kwarg,
                ),
            ):
                raise v.unsupported(f"function {name} with {type(argument).__name__.lower()}")
        if unit := intervals.UNIT_FIRST.get(name):
            units = unit(node.expressions)
            if units is not None:
                return intervals.with_unit(
                    name, units, [self.value(item) for item in node.expressions[1:]], self.zone
                )
        values = [self.value(item) for item in node.expressions]
        node.meta["types"] = [value.type for value in values]
        return call(name, values, self.zone)

    def extract(self, node: exp.Expression) -> Value:
        return call("date_part", [literal(node.name, "string"), self.value(node.expression)], self.zone)

    def trim(self, node: exp.Expression) -> Value:
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(
            (node.args.get("position") or "BOTH").upper(), "trim"
        )
        value = self.value(node.this)
        characters = node.expression
        if characters is None:
            return call(name, [value], self.zone)
        if name == "trim":
            return call("btrim", [value, self.value(characters)], self.zone)
        return call(name, [self.value(characters), value], self.zone)

    def substring(self, node: exp.Expression) -> Value:
        parts = [node.this, node.args.get("start"), node.args.get("length")]
        return call("substring", [self.value(part) for part in parts if part is not None], self.zone)

    def bracket(self, node: exp.Expression) -> Value:
        if len(node.expressions) != 1 or node.args.get("safe") or node.args.get("offset"):
            raise self.refused(node)
        return collections.item(self.value(node.this), self.value(node.expressions[0]), self.zone)

    def lambda_value(
        self, node: exp.Expression, types: list[tuple[DataType, bool]]
    ) -> tuple[list[str], Value]:
        """Translates a lambda function; returns the names of its parameters in DuckDB's SQL, and its body.
        `types`: (type, nullable) of each parameter."""
        if not isinstance(node, exp.Lambda) or len(node.expressions) != len(types):
            raise v.unsupported(
                f"{node.sql(dialect='databricks')[:100]} in place of a lambda function of {len(types)}"
                " parameters"
            )
        names = [self.scope.fresh() for _ in types]
        parameters = {
            part.name: Value(name, kind, nullable)
            for part, name, (kind, nullable) in zip(node.expressions, names, types, strict=True)
        }
        self.scope.push(parameters)
        try:
            return names, self.value(node.this)
        finally:
            self.scope.pop()


def _place_error(node: exp.Expression) -> str:
    """Returns Spark's error condition for an aggregate function where none is allowed, or the empty text if
    Spark has none."""
    within = node.find_ancestor(exp.Where, exp.Select)
    return "[INVALID_WHERE_CONDITION] " if isinstance(within, exp.Where) else ""


def _is_passed_on(node: exp.Expression) -> bool:
    """True if the column's text is not compared: it is a whole expression, a column of a query that does not
    compare rows, or the operand of IS NULL."""
    parent = node.parent
    if isinstance(parent, exp.Alias):
        parent = parent.parent
    if isinstance(parent, exp.Select):
        return not parent.args.get("distinct")
    return parent is None or isinstance(parent, exp.Is)


def number(text: str) -> Value:
    """Returns a number literal: an int, bigint or decimal by its size; with a point, a decimal; with an
    exponent, a double."""
    if "e" in text.lower():
        if isinf(float(text)):
            raise InvalidArgumentError(
                "[INVALID_NUMERIC_LITERAL_RANGE] a number is outside the range of double", found=text
            )
        return literal(float(text), "double")
    if "." in text:
        value = Decimal(text)
        digits, exponent = len(value.as_tuple().digits), -int(value.as_tuple().exponent)
        precision = max(digits, exponent)
        if precision > 38:
            raise InvalidArgumentError("a decimal literal has at most 38 digits", found=text)
        return literal(value, v.decimal(precision, exponent))
    whole = int(text)
    for kind in ("integer", "long"):
        if -(1 << (v.INTEGER_BITS[kind] - 1)) <= whole < 1 << (v.INTEGER_BITS[kind] - 1):
            return Value(f"CAST({whole} AS {v.duckdb_type(kind)})", kind, False, constant=whole)
    digits = len(str(abs(whole)))
    if digits > 38:
        raise InvalidArgumentError("a number has at most 38 digits", found=text)
    return literal(Decimal(whole), v.decimal(digits, 0))


_HANDLERS: dict[type[exp.Expr], Callable[[Any, Any], Value]] = {
    exp.Column: Translator.column,
    exp.Identifier: Translator.column,
    exp.Dot: Translator.dot,
    exp.Placeholder: Translator.part,
    exp.Tuple: Translator.row,
    exp.Paren: lambda self, node: self.value(node.this),
    exp.Literal: Translator.literal,
    exp.RawString: lambda self, node: literal(node.name, "string"),
    exp.HexString: lambda self, node: literal(
        bytes.fromhex(node.name.zfill(len(node.name) + len(node.name) % 2)), "binary"
    ),
    exp.Concat: Translator.concatenated,
    exp.Null: lambda self, node: literal(None, "void"),
    exp.Boolean: lambda self, node: literal(bool(node.this), "boolean"),
    exp.Neg: Translator.negative,
    exp.And: Translator.conjunction,
    exp.Or: Translator.conjunction,
    exp.Not: Translator.negation,
    exp.Is: Translator.is_predicate,
    exp.NullSafeNEQ: Translator.distinct_from,
    exp.Between: Translator.between,
    exp.In: Translator.contained,
    exp.Like: Translator.like,
    exp.ILike: Translator.like,
    exp.Escape: Translator.escape,
    exp.RegexpLike: lambda self, node: call(
        "rlike", [self.value(node.this), self.value(node.expression)], self.zone
    ),
    exp.DPipe: lambda self, node: call(
        "concat", [self.value(node.this), self.value(node.expression)], self.zone
    ),
    exp.BitwiseNot: lambda self, node: call("~", [self.value(node.this)], self.zone),
    exp.Case: Translator.case,
    exp.Cast: Translator.cast,
    exp.TryCast: Translator.cast,
    exp.Anonymous: Translator.function,
    exp.Extract: Translator.extract,
    exp.Trim: Translator.trim,
    exp.Substring: Translator.substring,
    exp.Bracket: Translator.bracket,
    exp.Interval: lambda self, node: intervals.literal(node),
}


def element_of(value: Value, what: str) -> Array:
    """Returns the type of an array. Raises UnsupportedFeatureError for a value of another type."""
    if not isinstance(value.type, Array):
        raise v.unsupported(what, value.type)
    return value.type
