"""Tells which words of a query may name a table: those in the list of a FROM, and none that WITH defines."""

from __future__ import annotations

from dataclasses import dataclass

from deltaic.sql.subqueries import definition_names
from deltaic.sql.tokens import Reader, is_distinct_from

QUERY = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE"})
"""First words of a query."""
_BEFORE_A_TABLE = frozenset({"FROM", "JOIN", ",", "(", "USING"})
ENDS_FROM = frozenset(
    [
        "WHERE",
        "GROUP",
        "HAVING",
        "ORDER",
        "SORT",
        "CLUSTER",
        "DISTRIBUTE",
        "LIMIT",
        "OFFSET",
        "SELECT",
        "UNION",
        "EXCEPT",
        "MINUS",
        "INTERSECT",
        "WINDOW",
        "QUALIFY",
        "SET",
        "VALUES",
    ]
)
"""Words behind which no more tables of a FROM stand."""


class Clauses:
    """Tracks the clause of each token, for every level of brackets: `, x` is a table in FROM and a column in
    SELECT."""

    def __init__(self) -> None:
        self._in_from = [False]
        self._is_query = [True]

    def may_name_table(self, reader: Reader) -> bool:
        """True if the token at the cursor may be a table's name."""
        before = reader.tokens[reader.position - 1].keyword if reader.position else ""
        if is_distinct_from(reader.tokens, reader.position - 1):
            return False
        return before == "TABLE" or (self._in_from[-1] and before in _BEFORE_A_TABLE)

    def update(self, reader: Reader) -> None:
        """Updates the clause and the level with the token at the cursor."""
        token = reader.tokens[reader.position]
        before = reader.tokens[reader.position - 1].keyword if reader.position else ""
        after = reader.tokens[reader.position + 1].keyword if reader.position + 1 < len(reader.tokens) else ""
        word = token.keyword if before != "." else ""
        if word == "(":
            # behind USING are the columns of a join
            inherits = self._in_from[-1] and before in _BEFORE_A_TABLE - {"USING"}
            self._is_query.append(inherits or after in QUERY or after == "(")
            self._in_from.append(inherits and after not in QUERY)
        elif word == ")" and len(self._in_from) > 1:
            self._is_query.pop()
            self._in_from.pop()
        elif is_distinct_from(reader.tokens, reader.position):
            pass
        elif (word == "FROM" and self._is_query[-1]) or word in ("JOIN", "USING"):
            self._in_from[-1] = True
        elif word in ENDS_FROM and not is_name(reader, reader.position):
            self._in_from[-1] = False


def is_name(reader: Reader, position: int) -> bool:
    """True if a word of ENDS_FROM begins no clause: `FROM values`, `AS window`, `set.id`, `t sort, u`."""
    words = [token.keyword for token in reader.tokens[max(position - 1, 0) : position + 2]]
    before = words[0] if position else ""
    after = words[-1] if position + 1 < len(reader.tokens) else ")"
    is_alias = before == "AS" and reader.tokens[position].keyword not in QUERY
    return is_alias or before in ("FROM", "JOIN", ",", ".") or after in (",", ")", ".", "JOIN", "WHERE")


@dataclass(frozen=True)
class Definition:
    """A name that WITH defines, in lower case, and the part of the text in which it hides a table."""

    name: str
    start: int
    end: int

    def hides(self, name: str, position: int) -> bool:
        return self.name == name.lower() and self.start <= position < self.end


def definitions_of(whole: Reader) -> list[Definition]:
    """Returns the names that WITH defines in a text: each is known behind its query, up to the end of the
    query with WITH. The first `t` of `WITH t AS (SELECT * FROM t) SELECT * FROM t` is a table."""
    levels: list[list[tuple[str, int]]] = [[]]  # a list for each bracket that is open
    result: list[Definition] = []
    for position, token in enumerate(whole.tokens):
        if token.text == "(":
            levels.append([])
        elif token.text == ")" and len(levels) > 1:
            result += [Definition(*each, token.start) for each in levels.pop()]
        elif token.keyword == "WITH":
            levels[-1] += definition_names(whole.part(position, len(whole.tokens)))
    return result + [Definition(*each, len(whole.text)) for level in levels for each in level]
