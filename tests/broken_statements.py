"""Makes statements that are broken on purpose: cut off after a token, with a word removed, doubled or added
at the end, or with two neighbours swapped.

Spark's parser decides whether such a text is still a statement; a text that it refuses must change nothing
here.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

from deltaic.sql.tokens import Reader, Token

STATEMENTS = (
    "DELETE FROM {t} WHERE id = 1 AND p < 3",
    "DELETE FROM {t} AS x WHERE x.id > 3 OR x.s IN ('a', 'b') AND NOT x.p IS NULL",
    "DELETE FROM {t} WHERE CASE WHEN p = 1 THEN id ELSE 0 END BETWEEN 1 AND 2",
    "UPDATE {t} SET s = upper(s), p = p + 1 WHERE id BETWEEN 2 AND 3",
    "UPDATE {t} AS x SET x.s = concat(x.s, '!') WHERE x.p = 1 OR x.s LIKE 'c%'",
    (
        "MERGE INTO {t} AS t USING {s} AS s ON t.id = s.id AND t.p < 3 WHEN MATCHED AND s.p > 1 THEN UPDATE"
        " SET t.s = s.s WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, p, s) VALUES (s.id, s.p,"
        " s.s)"
    ),
    (
        "MERGE INTO {t} AS t USING {s} AS s ON t.id = s.id WHEN NOT MATCHED AND s.p > 0 THEN INSERT * "
        "WHEN NOT MATCHED BY SOURCE AND t.id > 2 THEN UPDATE SET p = t.p * 2"
    ),
    "INSERT INTO {t} (id, p, s) VALUES (9, 9, 'z'), (10, 10, 'y')",
    "INSERT INTO {t} SELECT id + 10 AS id, p, s FROM {s} WHERE id < 3",
    "INSERT OVERWRITE {t} SELECT id, p, s FROM {s}",
    (
        "INSERT INTO {t} SELECT CAST(count(*) AS BIGINT) AS id, max(a.p) AS p, a.s FROM {s} AS a JOIN {s} AS"
        " b ON a.id = b.id GROUP BY a.s HAVING count(*) > 0 ORDER BY s DESC LIMIT 3"
    ),
    (
        "INSERT INTO {t} WITH c AS (SELECT id, p, s FROM {s} WHERE p IN (1, 2)), d AS (SELECT * FROM c) "
        "SELECT id, p, trim(BOTH 'a' FROM s) AS s FROM d UNION ALL SELECT id, p, s FROM c WHERE NOT (p = 1)"
    ),
    "INSERT INTO {t} REPLACE WHERE p = 2 AND id > 0 SELECT id, 2 AS p, s FROM {s} WHERE id > 2",
    (
        "CREATE OR REPLACE TABLE {t} (id BIGINT, p INT NOT NULL, s STRING COMMENT 'text') USING delta"
        " PARTITIONED BY (p)"
    ),
    "ALTER TABLE {t} ADD COLUMNS (x INT COMMENT 'new', y STRING)",
    "ALTER TABLE {t} SET TBLPROPERTIES ('delta.appendOnly' = 'false', 'a.b' = 'c')",
)
TRAILING = ("AND", "OR", "garbage", "WHERE", ")", "= 1", "'text'", "THEN DELETE", "SET p = 1", "1", ",")


def broken(statements: tuple[str, ...], seed: int, per_statement: int) -> Iterator[str]:
    """Some of the broken forms of each statement."""
    random_ = random.Random(seed)
    for statement in statements:
        tokens = _tokens(statement)
        forms = [
            *_truncated(statement, tokens),
            *_without(statement, tokens),
            *_doubled(statement, tokens),
            *_swapped(statement, tokens),
        ]
        forms += [f"{statement} {word}" for word in TRAILING]
        yield from random_.sample(forms, min(per_statement, len(forms)))


def _tokens(statement: str) -> list[Token]:
    """Returns the tokens of the statement; {t} and {s} are one token each."""
    found: list[Token] = []
    for token in Reader(statement).tokens:
        if len(found) > 1 and token.text == "}" and found[-2].text == "{":
            start = found[-2].start
            del found[-2:]
            found.append(Token("word", statement[start : token.end], start, token.end))
        else:
            found.append(token)
    return found


def _truncated(statement: str, tokens: list[Token]) -> Iterator[str]:
    return (statement[: token.end] for token in tokens[:-1])


def _without(statement: str, tokens: list[Token]) -> Iterator[str]:
    return (statement[: token.start] + statement[token.end :] for token in tokens)


def _doubled(statement: str, tokens: list[Token]) -> Iterator[str]:
    return (f"{statement[: token.end]} {token.text}{statement[token.end :]}" for token in tokens)


def _swapped(statement: str, tokens: list[Token]) -> Iterator[str]:
    for first, second in itertools.pairwise(tokens):
        if first.text != second.text:
            middle = statement[first.end : second.start] or " "
            yield f"{statement[: first.start]}{second.text}{middle}{first.text} {statement[second.end :]}"


def is_statement(spark: object, text: str) -> bool:
    """Returns true if Spark's own parser accepts the text."""
    try:
        spark._jsparkSession.sessionState().sqlParser().parsePlan(text)  # type: ignore[attr-defined]
    except Exception as error:
        if "PARSE" in str(error) or "ParseException" in type(error).__name__:
            return False
        raise
    return True
