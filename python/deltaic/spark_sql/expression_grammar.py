"""Spark's grammar of expressions where it differs from that of sqlglot's Databricks parser: functions,
literals, types and operators.

sqlglot's parser turns functions into its own nodes and so loses what was written, and it ranks `||`, `&`,
`|`, `=` and `IS NULL` differently from Spark's SqlBaseParser.g4. The parser here keeps every function as
`exp.Anonymous` under the name that was written, and takes Spark's precedence, so that a tree means what Spark
would run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, cast

from sqlglot import exp
from sqlglot.parsers.databricks import DatabricksParser
from sqlglot.tokenizer_core import Token, TokenType

from deltaic.spark_sql.named_arguments import positional

_COMPARISONS: dict[TokenType, type[exp.Binary]] = {
    TokenType.EQ: exp.EQ,
    TokenType.NEQ: exp.NEQ,
    TokenType.NULLSAFE_EQ: exp.NullSafeEQ,
    TokenType.GT: exp.GT,
    TokenType.GTE: exp.GTE,
    TokenType.LT: exp.LT,
    TokenType.LTE: exp.LTE,
}
_PREDICATES = (exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Escape, exp.NullSafeNEQ)

_INTERVAL_UNITS = {
    "MICROSECOND",
    "MILLISECOND",
    "SECOND",
    "MINUTE",
    "HOUR",
    "DAY",
    "WEEK",
    "MONTH",
    "QUARTER",
    "YEAR",
}
_BITWISE: tuple[tuple[TokenType, type[exp.Binary]], ...] = (
    (TokenType.PIPE, exp.BitwiseOr),
    (TokenType.CARET, exp.BitwiseXor),
    (TokenType.AMP, exp.BitwiseAnd),
)


def _typed_literal(text: exp.Expr, kind: exp.DataType) -> exp.Expr:
    """Returns the tree of a literal such as `DATE '2024-01-01'`: a cast, marked as a literal because Spark
    names a column after it in another way than after a written CAST."""

    def literal(text: exp.Expr) -> exp.Expr:
        tree = exp.Cast(this=text, to=kind)
        tree.meta["literal"] = True
        return tree

    return _in_operand(text, literal)


def _in_operand(tree: exp.Expr, change: Callable[[exp.Expr], exp.Expr], casts: int = 0) -> exp.Expr:
    """Applies `change` to what casts by `::` are applied to: sqlglot gives `DATE '2024-01-01'::string` and
    `-1::string` as a date of, or the negative of, what the cast makes of the literal. `casts`: number of
    casts that belong to the literal, as that of `1L`."""
    chain = [tree]
    while isinstance(chain[-1], exp.Cast) and not chain[-1].meta.get("written"):
        chain.append(chain[-1].this)
    place = len(chain) - 1 - casts
    changed = change(chain[place])
    if place == 0:
        return changed
    chain[place - 1].set("this", changed)
    return tree


class ExpressionParser(DatabricksParser):
    """The part of the parser for expressions. `grammar.py` adds the part for queries."""

    # ruff: noqa: RUF012 - class attributes are sqlglot's way to configure a parser
    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS = {
        **{
            name: DatabricksParser.FUNCTION_PARSERS[name]
            for name in ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING", "SUBSTR")
        },
        **{
            name: lambda self, name=name: self._parse_written(name)
            for name in ("CAST", "TRY_CAST", "EXTRACT")
        },
        "SUBSTR": lambda self: self._parse_substring("substr"),
        "POSITION": lambda self: self._parse_with_words("position", "IN"),
        "OVERLAY": lambda self: self._parse_with_words("overlay", "PLACING", "FROM", "FOR"),
    }
    TYPE_LITERAL_PARSERS = {
        kind: lambda self, this, kind: _typed_literal(this, kind)
        for kind in (
            exp.DType.DATE,
            exp.DType.TIMESTAMP,
            exp.DType.TIMESTAMPTZ,
            exp.DType.TIMESTAMPLTZ,
            exp.DType.TIMESTAMPNTZ,
        )
    }
    RANGE_PARSERS = {
        key: parse for key, parse in DatabricksParser.RANGE_PARSERS.items() if key is not TokenType.FOR
    }  # FOR belongs to PIVOT
    NO_PAREN_FUNCTION_PARSERS = {"CASE": DatabricksParser.NO_PAREN_FUNCTION_PARSERS["CASE"]}
    COLON_IS_VARIANT_EXTRACT = True
    ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}  # `array[0]` and `array(1, 2)[0]` are items, not arrays
    TERM = {TokenType.DASH: exp.Sub, TokenType.PLUS: exp.Add, TokenType.DPIPE: exp.DPipe}
    FACTOR = {
        TokenType.DIV: exp.IntDiv,
        TokenType.MOD: exp.Mod,
        TokenType.SLASH: exp.Div,
        TokenType.STAR: exp.Mul,
    }

    UNARY_PARSERS = {
        **DatabricksParser.UNARY_PARSERS,
        TokenType.DASH: lambda self: self._parse_negative(),
        TokenType.PLUS: lambda self: self.expression(
            exp.Anonymous(this="positive", expressions=[self._parse_unary()])
        ),
    }

    def _parse_negative(self) -> exp.Expr | None:
        """Parses what follows a minus. The minus of a number belongs to the number: `-1::string` is
        `(-1)::string`, but `-a::string` is `-(a::string)`."""
        is_number = self._curr is not None and self._curr.token_type == TokenType.NUMBER
        suffixes = self.dialect.tokenizer_class.NUMERIC_LITERALS
        # the tokens of 1L are 1, :: and L
        cast, kind = (*self._tokens[self._index + 1 : self._index + 3], None, None)[:2]
        has_suffix = (
            cast is not None
            and cast.token_type == TokenType.DCOLON
            and kind is not None
            and kind.text.upper() in suffixes
        )
        operand = self._parse_unary()
        if operand is None:
            self.raise_error("Expected a value after -")
            return None

        def negative(number: exp.Expr) -> exp.Expr:
            return self.expression(exp.Neg(this=number))

        return _in_operand(operand, negative, int(has_suffix)) if is_number else negative(operand)

    def _parse_colon_as_variant_extract(self, this: exp.Expr | None) -> exp.Expr | None:
        """Parses `v:a.b[0]['c d']` as `variant_get(v, '$.a.b[0]["c d"]')`, and casts by `::` after it."""
        if not self._match(TokenType.COLON):
            return this
        path, key, first = "$", "", True
        while first or self._match(TokenType.DOT) or self._match(TokenType.L_BRACKET, advance=False):
            first = False
            if self._match(TokenType.L_BRACKET):
                step = self._parse_primary()
                if step is None or not self._match(TokenType.R_BRACKET):
                    self.raise_error("Expected a name or a number, and ]")
            elif (step := self._parse_id_var(any_token=True)) is None:
                self.raise_error("Expected a name after :")
            if step is not None:
                is_number = isinstance(step, exp.Literal) and not step.is_string
                key = key if is_number else step.name
                path += f"[{step.name}]" if is_number else f'["{step.name}"]'
        found: exp.Expr = self.expression(
            exp.Anonymous(this="variant_get", expressions=[this, exp.Literal.string(path)])
        )
        found.meta["key"] = key
        while self._match(TokenType.DCOLON):
            found = self.expression(exp.Cast(this=found, to=self._parse_types()))
        return found

    def _parse_written(self, name: str) -> exp.Expr:
        """Parses a call and keeps in `meta` how it was written, for column names: `CAST(1 AS TINYINT)` and
        `1Y` have the same tree, and names show the unit of EXTRACT in the case in which it was written."""
        unit = self._curr.text
        tree = cast(exp.Expr, DatabricksParser.FUNCTION_PARSERS[name](self))
        tree.meta.update(written=True, unit=unit)
        return tree

    def _parse_is(self, this: exp.Expr | None) -> exp.Expr | None:
        found: exp.Expr | None = super()._parse_is(this)
        if isinstance(found, exp.Not):
            found.meta["is_not"] = True  # `a IS NOT NULL`, not `NOT a IS NULL`
        return found

    def _parse_with_words(self, name: str, *words: str) -> exp.Expr:
        """Parses `position(part IN text)` and `overlay(text PLACING part FROM start FOR length)`, or the same
        calls with commas."""
        arguments = [self._parse_bitwise()]
        if name == "position" and not self._match(TokenType.COMMA, advance=False):
            name = "locate"
        for word in words:
            if self._match_text_seq(word):
                arguments.append(self._parse_bitwise())
        if len(arguments) == 1:
            while self._match(TokenType.COMMA):
                arguments.append(self._parse_disjunction())
        return self.expression(
            exp.Anonymous(this=name, expressions=[argument for argument in arguments if argument is not None])
        )

    def _parse_substring(self, name: str = "substring") -> exp.Expr:  # type: ignore[override]
        """Parses `substring(text FROM start FOR length)`, or the same call with commas."""
        arguments = self._parse_csv(self._parse_disjunction)
        for word in (TokenType.FROM, TokenType.FOR):
            if self._match(word) and (argument := self._parse_bitwise()) is not None:
                name = "substring"
                arguments.append(argument)
        if len(arguments) not in (2, 3):
            return self.expression(exp.Anonymous(this="substring", expressions=arguments))
        found = exp.Substring.from_arg_list(arguments)
        found.meta["name"] = name
        return found

    # The methods below raise an error for text that sqlglot accepts and Spark's grammar does not: an item is
    # missing, or a string is in place of a name.

    def _parse_csv(self, parse_method: Callable[[], Any], sep: TokenType = TokenType.COMMA) -> list[Any]:
        items = [parse_method()]
        while self._match(sep):
            items.append(parse_method())
            if items[-1] is None or items[-2] is None:
                # `array(NULL, 3)` is first parsed as a list of types, then again as arguments
                if self._types:
                    return []
                self.raise_error("Expected an item on each side of a comma")
        return [] if items == [None] else items

    _types = 0
    """Number of types that enclose the one being parsed."""

    def _parse_types(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        self._types += 1
        start = self._index
        try:
            found: exp.Expr | None = super()._parse_types(*args, **kwargs)
        finally:
            self._types -= 1
        # sqlglot reads `array<int>[0]` as an array of this type; in `a::array<int>[0]` it is an item of a
        if isinstance(found, exp.Cast):
            self._retreat(_behind_type(self._tokens, start))
            found = found.args["to"]
        return found

    def _parse_in(self, this: exp.Expr | None, alias: bool = False) -> exp.In:
        if not self._match(TokenType.L_PAREN, advance=False):
            self.raise_error("Expected ( after IN")
        found = super()._parse_in(this, alias)
        if not found.expressions and found.args.get("query") is None:
            self.raise_error("Expected a value in IN (...)")
        return found

    def _parse_between(self, this: exp.Expr | None) -> exp.Between:
        symmetric = (
            True
            if self._match_text_seq("SYMMETRIC")
            else False
            if self._match_text_seq("ASYMMETRIC")
            else None
        )
        low = self._parse_bitwise()
        if not self._match(TokenType.AND):
            self.raise_error("Expected AND in BETWEEN")
        return self.expression(
            exp.Between(this=this, low=low, high=self._parse_bitwise(), symmetric=symmetric)
        )

    def _parse_case(self) -> exp.Expr | None:
        if self._match(TokenType.DOT, advance=False):  # a column of a table named `case`
            self._retreat(self._index - 1)
            return None
        expression = self._parse_disjunction()
        branches = []
        while self._match(TokenType.WHEN):
            condition = self._parse_disjunction()
            if not self._match(TokenType.THEN):
                self.raise_error("Expected THEN in CASE")
            branches.append(self.expression(exp.If(this=condition, true=self._parse_disjunction())))
        default = self._parse_disjunction() if self._match(TokenType.ELSE) else None
        if not branches or not self._match(TokenType.END):
            self.raise_error("Expected END after CASE" if branches else "Expected WHEN in CASE")
        return self.expression(exp.Case(this=expression, ifs=branches, default=default))

    def _parse_function_call(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        found: exp.Expr | None = super()._parse_function_call(*args, **kwargs)
        return positional(found) if isinstance(found, exp.Anonymous) else found

    def _parse_interval(
        self, require_interval: bool = True, parse_function_unit: bool = True
    ) -> exp.Interval | None:
        """`INTERVAL 1 DAY`, `INTERVAL '1-2' YEAR TO MONTH`; `INTERVAL 1 DAY 2 HOURS` becomes the tree of
        `INTERVAL '1 DAY 2 HOURS'`."""
        start = self._index
        if not self._match(TokenType.INTERVAL):
            return None
        parts: list[tuple[str, str]] = []
        while (part := self._parse_interval_part(first=not parts)) is not None:
            parts.append(part)
            if not part[1]:
                break
            if self._match_text_seq("TO"):
                unit = exp.IntervalSpan(
                    this=exp.Var(this=part[1]), expression=self._parse_var(any_token=True, upper=True)
                )
                return self.expression(exp.Interval(this=exp.Literal.string(part[0]), unit=unit))
        if len(parts) == 1:
            (text, word), *_ = parts
            return self.expression(
                exp.Interval(this=exp.Literal.string(text), unit=exp.Var(this=word) if word else None)
            )
        if parts:
            return self.expression(exp.Interval(this=exp.Literal.string(" ".join(map(" ".join, parts)))))
        self._retreat(start)
        return None

    def _parse_interval_part(self, *, first: bool) -> tuple[str, str] | None:
        """A number, in quotes or not, and its unit; a text without a unit may stand alone."""
        start, sign = (
            self._index,
            "-" if self._match(TokenType.DASH) else "+" if self._match(TokenType.PLUS) else "",
        )
        if self._curr and self._curr.token_type in (TokenType.NUMBER, TokenType.STRING):
            text, is_text = self._curr.text, self._curr.token_type == TokenType.STRING
            self._advance()
            if self._curr and (word := self._curr.text.upper()).removesuffix("S") in _INTERVAL_UNITS:
                self._advance()
                if sign == "-" and text.startswith("-"):
                    sign, text = "", text[1:]
                return f"{sign}{text}", word
            if first and is_text and not sign:
                return text, ""
        self._retreat(start)
        return None

    def _parse_string_as_identifier(self) -> exp.Identifier | None:
        return None

    def _parse_equality(self, parse_is: bool = True) -> exp.Expr | None:
        this = self._parse_range()
        if self._curr and self._curr.token_type in _COMPARISONS:
            self.raise_error("Expected parentheses around a predicate that is compared")
        return this

    def _parse_range(self, this: exp.Expr | None = None, parse_is: bool = True) -> exp.Expr | None:
        result: exp.Expr | None = super()._parse_range(this or self._parse_comparison(), parse_is)
        return result

    def _is_predicate_ahead(self) -> bool:
        return False

    def _parse_is_rhs(self, distinct: bool = False) -> exp.Expr | None:
        if not distinct and self._match(TokenType.UNKNOWN):
            return exp.Var(this="UNKNOWN")
        return self._parse_bitwise() if distinct else (self._parse_null() or self._parse_bitwise())

    def _parse_comparison(self, this: exp.Expr | None = None) -> exp.Expr | None:
        this = this or self._parse_bitwise()
        while self._curr and (node := _COMPARISONS.get(self._curr.token_type)):
            self._advance()
            this = self.expression(node(this=this, expression=self._parse_bitwise()))
        return this

    def _parse_bitwise(self) -> exp.Expr | None:
        return self._parse_level(0)

    def _parse_level(self, level: int) -> exp.Expr | None:
        if level == len(_BITWISE):
            return self._parse_shift()
        token, node = _BITWISE[level]
        this = self._parse_level(level + 1)
        while self._match(token):
            this = self.expression(node(this=this, expression=self._parse_level(level + 1)))
        return this

    def _parse_shift(self) -> exp.Expr | None:
        this = self._parse_term()
        while True:
            if self._match_pair(TokenType.LT, TokenType.LT):
                name, sign = "shiftleft", "<<"
            elif self._match_pair(TokenType.GT, TokenType.GT):
                name, sign = (
                    ("shiftrightunsigned", ">>>") if self._match(TokenType.GT) else ("shiftright", ">>")
                )
            else:
                return this
            this = self.expression(exp.Anonymous(this=name, expressions=[this, self._parse_term()]))
            this.meta["operator"] = sign


def _behind_type(tokens: list[Token], start: int) -> int:
    """Returns the position behind a type with `<` and `>`, which begins at `start`."""
    depth = 0
    for place in range(start, len(tokens)):
        kind = tokens[place].token_type
        depth += (kind == TokenType.LT) - (kind == TokenType.GT)
        if kind == TokenType.GT and depth == 0:
            return place + 1
    return start
