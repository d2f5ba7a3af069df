"""Spark's grammar where it differs from that of sqlglot's Databricks parser: queries here, expressions in
`expression_grammar.py`."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.databricks import Databricks
from sqlglot.tokenizer_core import Token, TokenType

from deltaic.spark_sql.expression_grammar import ExpressionParser


class PipeOperator(exp.Expression):
    """An operator of the pipe syntax (`|> WHERE …`): its name and its clauses."""

    arg_types: ClassVar[dict[str, bool]] = dict.fromkeys(
        ["this", "expressions", "condition", "distinct", "alias", "order", "limit", "offset", "keys", "word",
         "by_name", "sample", "pivot", "join"], False
    )  # fmt: skip


class _Parser(ExpressionParser):
    """The part of the parser for queries. Some methods only raise an error for text that sqlglot accepts and
    Spark's grammar does not."""

    def _parse_join(self, *args: Any, **kwargs: Any) -> exp.Join | None:
        is_list = self._match(TokenType.COMMA, advance=False)
        found: exp.Join | None = super()._parse_join(*args, **kwargs)
        if is_list and found is None:
            self.raise_error("Expected a table after the comma")
        if (
            found is not None
            and found.method == "NATURAL"
            and (found.args.get("using") or found.args.get("on"))
        ):
            self.raise_error("Expected no ON and no USING after NATURAL JOIN")
        return found

    def _parse_from(
        self, joins: bool = False, skip_from_token: bool = False, consume_pipe: bool = False
    ) -> exp.From | None:
        # a pipe belongs to the whole query, not to a subquery in FROM
        found: exp.From | None = super()._parse_from(joins, skip_from_token)
        return found

    def _parse_pivot_aggregation(self) -> exp.Expr | None:
        return self._parse_alias(self._parse_disjunction())

    def _parse_table_alias(self, *args: Any, **kwargs: Any) -> exp.TableAlias | None:
        found: exp.TableAlias | None = super()._parse_table_alias(*args, **kwargs)
        if found is not None and self._match_text_seq("MAX", "RECURSION", "LEVEL"):  # of WITH RECURSIVE
            if not self._match(TokenType.NUMBER):
                self.raise_error("Expected a number of levels")
            found.meta["levels"] = int(self._prev.text)
        return found

    def _parse_limit(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        if self._match(TokenType.FETCH, advance=False):
            self.raise_error("Expected LIMIT instead of FETCH")
        found: exp.Expr | None = super()._parse_limit(*args, **kwargs)
        return found

    def _parse_locks(self) -> list[exp.Lock]:
        return []  # Spark has no FOR UPDATE

    def _parse_table_sample(self, as_modifier: bool = False) -> exp.TableSample | None:
        found: exp.TableSample | None = super()._parse_table_sample()  # Spark has no USING SAMPLE
        return found

    def _parse_pivot_in(self) -> exp.In:
        found = super()._parse_pivot_in()
        if not found.expressions and found.args.get("field") is None:
            self.raise_error("Expected a value in IN (...) of PIVOT")
        return found

    def _parse_cube_or_rollup(self, with_prefix: bool = False) -> exp.Cube | exp.Rollup | None:
        # sqlglot takes no conditions (`v > 1`) as keys
        if with_prefix or not (self._match(TokenType.CUBE) or self._match(TokenType.ROLLUP)):
            found: exp.Cube | exp.Rollup | None = super()._parse_cube_or_rollup(with_prefix)
            return found
        kind = exp.Cube if self._prev.token_type == TokenType.CUBE else exp.Rollup
        return self.expression(kind(expressions=self._parse_wrapped_csv(self._parse_disjunction)))

    def _parse_grouping_set(self) -> exp.Expr | None:
        return self._parse_grouping_sets() or self._parse_cube_or_rollup() or self._parse_disjunction()

    def _parse_cte(self) -> Any:
        if self._match(TokenType.ALIAS, advance=False):
            self.raise_error("Expected a name in WITH")
        return super()._parse_cte()

    def _parse_select(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        start = self._index if self._match(TokenType.FROM, advance=False) else None
        if kwargs == {"table": True}:  # after LATERAL: a pipe belongs to the whole query
            kwargs["consume_pipe"] = False
        found: exp.Expr | None = super()._parse_select(*args, **kwargs)
        if start is not None and found is not None:
            stop = next(
                (i for i in range(start, self._index) if self._tokens[i].token_type == TokenType.PIPE_GT),
                self._index,
            )
            if not _has_outside_brackets(TokenType.SELECT, self._tokens[start:stop]):
                if found.meta.get("operators") is None:
                    self.raise_error("Expected SELECT after FROM")
                found.args["from_"].this.this.meta["bare"] = True
        if (
            isinstance(found, exp.Values)
            and kwargs.get("consume_pipe", True)
            and self._match(TokenType.PIPE_GT, advance=False)
        ):
            return self._parse_pipe_syntax_query(found)
        return found

    def _parse_pipe_syntax_query(self, query: exp.Query | exp.Values) -> exp.Query | None:
        """Parses `query |> operator |> operator`: returns a SELECT from the query, with the operators in its
        `meta`."""
        operators = []
        while self._match(TokenType.PIPE_GT):
            operators.append(self._parse_pipe_operator())
        piped = exp.Select(
            expressions=[exp.Star()], from_=exp.From(this=exp.Subquery(this=query)), operators=operators
        )
        piped.meta["operators"] = operators
        return piped

    def _parse_pipe_operator(self) -> exp.Expr:
        def operator(name: str, **args: Any) -> exp.Expr:
            return PipeOperator(this=name, **args)

        if self._match(TokenType.WHERE):
            return operator("where", condition=self._parse_disjunction())
        if self._match(TokenType.SELECT):
            distinct = bool(self._match(TokenType.DISTINCT))
            return operator("select", expressions=self._parse_expressions(), distinct=distinct)
        if self._match(TokenType.SET):
            return operator("set", expressions=self._parse_csv(self._parse_disjunction))
        if self._match(TokenType.ALIAS):
            return operator("as", alias=self._parse_id_var())
        if self._match(TokenType.ORDER_BY, advance=False) or self._curr.text.upper() in ("LIMIT", "OFFSET"):
            return operator(
                "order", order=self._parse_order(), limit=self._parse_limit(), offset=self._parse_offset()
            )
        if self._match_text_seq("EXTEND"):
            return operator("extend", expressions=self._parse_expressions())
        if self._match(TokenType.DROP):
            return operator("drop", expressions=self._parse_csv(self._parse_column))
        if self._match_text_seq("AGGREGATE"):
            grouped = self._match(TokenType.GROUP_BY, advance=False)
            expressions = [] if grouped else self._parse_expressions()
            keys = self._parse_expressions() if self._match(TokenType.GROUP_BY) else []
            return operator("aggregate", expressions=expressions, keys=keys)
        if (word := self._curr.text.upper()) in ("UNION", "EXCEPT", "MINUS", "INTERSECT"):
            self._advance()
            every = self._match(TokenType.ALL)
            if not every:
                self._match(TokenType.DISTINCT)
            by_name = bool(self._match_text_seq("BY", "NAME"))
            others = self._parse_csv(
                lambda: self._parse_select(nested=True, parse_set_operation=False, consume_pipe=False)
            )
            return operator(
                "union",
                word={"MINUS": "EXCEPT"}.get(word, word),
                distinct=not every,
                by_name=by_name,
                expressions=others,
            )
        if (sample := self._parse_table_sample()) is not None:
            return operator("sample", sample=sample)
        if (pivot := self._parse_pivot()) is not None:
            return operator("pivot", pivot=pivot)
        if (join := self._parse_join()) is not None:
            return operator("join", join=join)
        self.raise_error("Expected an operator after |>")
        raise AssertionError

    def _is_table_query(self) -> bool:
        """True before `TABLE name`, a query of all columns. A table may be named `table`, too."""
        follows_from = self._prev is not None and self._prev.token_type in (
            TokenType.FROM,
            TokenType.JOIN,
            TokenType.COMMA,
        )
        is_name = self._next is not None and self._next.token_type in (
            *self.ID_VAR_TOKENS,
            TokenType.IDENTIFIER,
        )
        return bool(self._match(TokenType.TABLE, advance=False)) and is_name and not follows_from


def _has_outside_brackets(wanted: TokenType, tokens: list[Token]) -> bool:
    depth = 0
    for token in tokens:
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth == 0 and token.token_type == wanted:
            return True
    return False


class _Dialect(Databricks):
    class Tokenizer(Databricks.Tokenizer):
        # ruff: noqa: RUF012 - class attributes are sqlglot's way to configure a tokenizer
        # a doubled quote is one quote, not the end of one string and the start of another
        STRING_ESCAPES = ["\\", "'", '"']
        # RELEASE and SAVEPOINT begin statements for sqlglot since 30.31; Spark has none, so they are names
        KEYWORDS = {
            word: kind
            for word, kind in Databricks.Tokenizer.KEYWORDS.items()
            if word not in ("RELEASE", "SAVEPOINT")
        }

    Parser = _Parser


DIALECT = _Dialect()
"""Reads Spark's SQL."""
