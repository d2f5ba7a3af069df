"""Parses simple conditions: comparisons of a column with a literal, BETWEEN, IN and IS NULL, with AND and OR,
such as `id > 5 AND city IN ('Oslo', 'Rome')`.

This parser exists because the parser of Spark's whole grammar takes longer to import than a small table takes
to plan.
A text with anything else is left to `planning.pushdown`. Both use the functions of `planning.literals` for
columns and literals, so a condition has the same meaning in both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from deltaic import _core
from deltaic.planning import literals
from deltaic.planning.literals import Json, Literal, NotExpressible, Number, Text
from deltaic.protocol.schema import DataType, Schema
from deltaic.sql_text import Token, tokens

# Maximum length of a condition in characters; longer ones go to the full parser.
MAX_LENGTH = 100_000
# Maximum depth of brackets in a condition; deeper ones go to the full parser.
_MOST_NESTED = 50
_OPERATORS = {"=": "=", "==": "=", "<>": "!=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_SYMBOLS = frozenset((*_OPERATORS, *"(),.-"))
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
# Words that the full parser does not read as a column's name.
_WORDS = """
alter and array as between call case create cross current_catalog current_date current_time current_timestamp
current_user distinct drop else end except execute explain false fetch for from glob grant having ilike in
inner insert intersect into is join lateral like list localtime localtimestamp map match_recognize minus not
notnull null nullable object on optimize or outer over partitioned_by prepare qualify range regexp rename
returning revoke rlike rollback select serdeproperties session_user show struct tablesample then true uncache
union using vacuum values when where with xor
"""
_RESERVED = frozenset(_WORDS.split())


def read(text: str, schema: Schema, alias: str, time_zone: str) -> list[Json] | None:
    """Parses a condition on the relation `alias`. Returns its conjuncts as nodes of the predicate tree, all
    of them exact; None for any other text, valid or not. `time_zone`: of timestamps written without one."""
    if not isinstance(text, str) or len(text) > MAX_LENGTH or (tokens := _tokens(text)) is None:
        return None
    try:
        return _ConditionParser(tokens, schema, alias, literals.is_utc(time_zone)).whole()
    except NotExpressible:
        return None


def predicate_of(
    nodes: Sequence[Json], schema: Schema, table_schema: _core.TableSchema
) -> _core.Predicate | None:
    """Joins conjuncts to one predicate, with the conditions on generated partition columns that follow from
    them. None without conjuncts."""
    conjuncts = list(nodes)
    if any(
        "delta.generationExpression" in schema.field(name).metadata for name in table_schema.partition_columns
    ):
        from deltaic.planning.generated import GenerationRules

        rules = GenerationRules.of(schema, table_schema.partition_columns)
        if (derived := rules.derive(conjuncts)) is not None:
            conjuncts.append(derived)
    if not conjuncts:
        return None
    whole = conjuncts[0] if len(conjuncts) == 1 else {"op": "and", "args": conjuncts}
    return _core.Predicate.from_json(json.dumps(whole), table_schema)


def _tokens(text: str) -> list[Token] | None:
    """Returns the tokens of a condition; None if one of them is left to the full parser: names that are not
    ASCII, texts with escapes, numbers with exponents, other operators, comments, rare white space."""
    if not text.isprintable() and any(letter.isspace() and letter not in " \t\r\n" for letter in text):
        return None
    found = tokens(text)
    for kind, word, _, _ in found:
        if kind == "word":
            known = word.isascii()
        elif kind == "symbol":
            known = word in _SYMBOLS
        elif kind == "number":
            known = word.isascii() and (word.isdecimal() or all(map(str.isdecimal, word.split("."))))
        elif kind == "string":
            known = word[0] == "'" and "'" not in word[1:-1] and "\\" not in word
        else:
            known = kind == "quoted" and len(word) > 2 and "`" not in word[1:-1] and "\\" not in word
        if not known:
            return None
    found.append(Token("end", "", len(text), len(text)))
    return found


class _ConditionParser:
    """A recursive descent parser. Each method parses the form that it is named after, from the token at `at`,
    or raises NotExpressible."""

    def __init__(self, tokens: Sequence[Token], schema: Schema, alias: str, utc: bool) -> None:
        self.tokens, self.at = tokens, 0
        self.schema, self.alias, self.utc = schema, alias, utc
        self.depth = 0

    def whole(self) -> list[Json]:
        node = self.condition()
        if self.tokens[self.at].kind != "end":
            raise NotExpressible
        return node["args"] if node["op"] == "and" else [node]

    def condition(self) -> Json:
        return self.joined("or", lambda: self.joined("and", self.test))

    def joined(self, word: str, part: Callable[[], Json]) -> Json:
        parts = [part()]
        while self.word(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else {"op": word, "args": parts}

    def test(self) -> Json:
        if self.mark("("):
            return self.nested()
        if self.tokens[self.at].kind in ("number", "string") or self.tokens[self.at].text == "-":
            literal, operator = self.literal(), self.operator()
            return literals.compared(_MIRRORED.get(operator, operator), *self.column(), literal, utc=self.utc)
        path, data_type = self.column()
        if self.word("is"):
            null: Json = {"op": "is_null", "column": list(path)}
            negated = self.word("not")
            self.expect("null")
            return {"op": "not", "arg": null} if negated else null
        if self.word("in"):
            return literals.contained(path, data_type, self.items(), utc=self.utc)
        if self.word("between"):
            low = self.literal()
            self.expect("and")
            return literals.between(path, data_type, low, self.literal(), utc=self.utc)
        return literals.compared(self.operator(), path, data_type, self.literal(), utc=self.utc)

    def nested(self) -> Json:
        self.depth += 1
        if self.depth > _MOST_NESTED:
            raise NotExpressible
        inner = self.condition()
        self.close()
        self.depth -= 1
        return inner

    def items(self) -> list[Literal]:
        if not self.mark("("):
            raise NotExpressible
        values = [self.literal()]
        while self.mark(","):
            values.append(self.literal())
        self.close()
        return values

    def literal(self) -> Literal:
        token = self.take()
        if token.kind == "number":
            return Number.of(token.text)
        if token.kind == "string":
            return Text(token.text[1:-1])
        if token.text == "-" and (number := self.take()).kind == "number" and number.start == token.end:
            return Number.of(number.text, negative=True)
        raise NotExpressible

    def column(self) -> tuple[tuple[str, ...], DataType]:
        parts = [self.name()]
        while self.mark("."):
            parts.append(self.name())
        return literals.find_column(self.schema, self.alias, parts)

    def name(self) -> str:
        token = self.take()
        if token.kind != "quoted" and (token.kind != "word" or token.text.lower() in _RESERVED):
            raise NotExpressible
        return token.name

    def operator(self) -> str:
        operator = _OPERATORS.get(self.take().text)
        if operator is None:
            raise NotExpressible
        return operator

    def take(self) -> Token:
        self.at += 1
        return self.tokens[self.at - 1]

    def word(self, word: str) -> bool:
        """Advances past this word if it is the next token; True if it was."""
        token = self.tokens[self.at]
        found = token.kind == "word" and token.text.lower() == word
        self.at += found
        return found

    def mark(self, mark: str) -> bool:
        found = self.tokens[self.at].text == mark
        self.at += found
        return found

    def expect(self, word: str) -> None:
        if not self.word(word):
            raise NotExpressible

    def close(self) -> None:
        if not self.mark(")"):
            raise NotExpressible
