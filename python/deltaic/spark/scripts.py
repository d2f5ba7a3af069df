"""Parses SQL scripts (`BEGIN … END`) into trees of statements. `script_runs` runs them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from deltaic.errors import UnsupportedFeatureError
from deltaic.sql.tokens import Reader


@dataclass(frozen=True)
class Sql:
    """A statement that `spark.sql` runs as a whole."""

    text: str


@dataclass(frozen=True)
class Declaration:
    """DECLARE [VARIABLE] name, … [type] [DEFAULT expression]. `definition`: the text of type and default."""

    names: tuple[str, ...]
    definition: str


@dataclass(frozen=True)
class Handler:
    """DECLARE EXIT | CONTINUE HANDLER FOR condition, … `exits`: True for EXIT. `conditions`: names of
    conditions, SQLSTATEs, SQLEXCEPTION and NOT FOUND, in upper case."""

    exits: bool
    conditions: frozenset[str]
    body: Node


@dataclass(frozen=True)
class Block:
    """BEGIN … END. `states`: condition that the block declares -> its SQLSTATE."""

    body: tuple[Node, ...]
    label: str | None = None
    handlers: tuple[Handler, ...] = ()
    states: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Choice:
    """IF or CASE: the first branch whose condition is true is run, else `otherwise`. None is a CASE without
    ELSE, which is an error."""

    branches: tuple[tuple[str, tuple[Node, ...]], ...]
    otherwise: tuple[Node, ...] | None


@dataclass(frozen=True)
class Loop:
    """WHILE (condition `before` the body), REPEAT (condition `until` after the body) or LOOP (neither)."""

    body: tuple[Node, ...]
    label: str | None
    before: str | None = None
    until: str | None = None


@dataclass(frozen=True)
class ForLoop:
    """FOR [variable AS] query DO … END FOR: the body runs for each row of the query."""

    body: tuple[Node, ...]
    label: str | None
    variable: str | None
    query: str


@dataclass(frozen=True)
class Jump:
    """LEAVE label, or ITERATE label (`again` is True)."""

    label: str
    again: bool


Node: TypeAlias = "Sql | Declaration | Block | Choice | Loop | ForLoop | Jump"
_REFUSED = ("SIGNAL", "RESIGNAL", "GET", "OPEN", "FETCH", "CLOSE")
"""First words of statements that a script over Delta tables does not support."""


def parse_script(text: str) -> Block:
    """Returns the tree of a script. Raises InvalidArgumentError if the script does not parse, and
    UnsupportedFeatureError for the statements of _REFUSED."""
    reader = Reader(text, several=True)
    block = _block(reader, None)
    reader.end()
    return block


def _block(reader: Reader, label: str | None) -> Block:
    reader.expect("BEGIN")
    reader.accept("NOT", "ATOMIC")
    handlers: list[Handler] = []
    states: dict[str, str] = {}
    body: list[Node] = []
    while not reader.at("END"):
        node = _handler(reader) or _condition(reader, states)
        if isinstance(node, Handler):
            handlers.append(node)
        elif node is None:
            body.append(_node(reader))
        reader.expect(";")
    _ends(reader, (), label)
    return Block(tuple(body), label, tuple(handlers), states)


def _handler(reader: Reader) -> Handler | None:
    for kind in ("EXIT", "CONTINUE"):
        if reader.accept("DECLARE", kind, "HANDLER", "FOR"):
            conditions = frozenset(reader.listed(lambda: _handled(reader)))
            return Handler(kind == "EXIT", conditions, _node(reader))
    return None


def _handled(reader: Reader) -> str:
    """Reads one condition of a handler: NOT FOUND, SQLSTATE [VALUE] 'state', or a name."""
    if reader.accept("NOT", "FOUND"):
        return "NOT FOUND"
    if reader.accept("SQLSTATE"):
        reader.accept("VALUE")
        return reader.string().upper()
    return ".".join(reader.dotted()).upper()


def _condition(reader: Reader, states: dict[str, str]) -> bool | None:
    """Reads DECLARE name CONDITION [FOR SQLSTATE [VALUE] 'state'], adds it to `states` and returns True.
    Returns None for another statement."""
    start = reader.position
    if (
        reader.accept("DECLARE")
        and not reader.done
        and reader.tokens[reader.position].kind in ("word", "quoted")
    ):
        name = reader.name().upper()
        if reader.accept("CONDITION"):
            state = "45000"
            if reader.accept("FOR", "SQLSTATE"):
                reader.accept("VALUE")
                state = reader.string().upper()
            states[name] = state
            return True
    reader.position = start
    return None


def _node(reader: Reader) -> Node:
    label = _label(reader)
    if reader.at("BEGIN"):
        return _block(reader, label)
    for word, parse in _LABELLED.items():
        if reader.accept(word):
            return parse(reader, label)
    if reader.accept("IF"):
        return _if(reader)
    if reader.accept("CASE"):
        return _case(reader)
    if reader.accept("DECLARE"):
        return _declaration(reader)
    for word in ("LEAVE", "ITERATE"):
        if reader.accept(word):
            return Jump(reader.name().lower(), word == "ITERATE")
    return Sql(_statement(reader))


def _label(reader: Reader) -> str | None:
    ahead = reader.tokens[reader.position : reader.position + 2]
    if len(ahead) < 2 or ahead[0].kind not in ("word", "quoted") or ahead[1].text != ":":
        return None
    label = reader.name().lower()
    reader.expect(":")
    return label


def _statement(reader: Reader) -> str:
    start = reader.position
    if not reader.done and (word := reader.tokens[start].keyword) in _REFUSED:
        raise UnsupportedFeatureError(
            f"{word} in a script over Delta tables", expected="other statements of a script"
        )
    while not reader.done and not reader.at(";"):
        reader.position += 1
    if reader.position == start:
        reader.fail("a statement")
    text = reader.text[reader.tokens[start].start : reader.tokens[reader.position - 1].end]
    return _assignment(text)


def _assignment(text: str) -> str:
    """Converts SET, which sets variables in a script: `SET x = 1` becomes `SET VAR x = 1`."""
    reader = Reader(text)
    if not reader.accept("SET") or reader.at("VAR") or reader.at("VARIABLE"):
        return text
    return f"SET VAR {reader.rest('variables')}"


def _declaration(reader: Reader) -> Declaration:
    if reader.accept("OR", "REPLACE"):
        reader.fail("a variable: OR REPLACE is not for those of a script")
    reader.accept("VARIABLE") or reader.accept("VAR")
    names = tuple(reader.listed(reader.name))
    return Declaration(names, _statement(reader))


def _body(reader: Reader, *ends: str) -> tuple[Node, ...]:
    """Reads statements, each with a semicolon, up to one of the words `ends`."""
    body: list[Node] = []
    while not any(map(reader.at, ends)):
        body.append(_node(reader))
        reader.expect(";")
    return tuple(body)


def _ends(reader: Reader, words: tuple[str, ...], label: str | None) -> None:
    """Reads END words [label]."""
    reader.expect("END", *words)
    if label is not None and not reader.done and not reader.at(";") and reader.name().lower() != label:
        reader.fail(f"the label {label}")


def _if(reader: Reader) -> Choice:
    branches = []
    while True:
        condition = reader.slice("THEN", expected="a condition")
        reader.expect("THEN")
        branches.append((condition, _body(reader, "ELSEIF", "ELSE", "END")))
        if not reader.accept("ELSEIF"):
            break
    otherwise = _body(reader, "END") if reader.accept("ELSE") else ()
    _ends(reader, ("IF",), None)
    return Choice(tuple(branches), otherwise)


def _case(reader: Reader) -> Choice:
    subject = None if reader.at("WHEN") else reader.slice("WHEN", expected="a value")
    branches = []
    while reader.accept("WHEN"):
        value = reader.slice("THEN", expected="a condition")
        reader.expect("THEN")
        condition = value if subject is None else f"({subject}) = ({value})"
        branches.append((condition, _body(reader, "WHEN", "ELSE", "END")))
    otherwise = _body(reader, "END") if reader.accept("ELSE") else None
    _ends(reader, ("CASE",), None)
    return Choice(tuple(branches), otherwise)


def _while(reader: Reader, label: str | None) -> Loop:
    before = reader.slice("DO", expected="a condition")
    reader.expect("DO")
    body = _body(reader, "END")
    _ends(reader, ("WHILE",), label)
    return Loop(body, label, before=before)


def _repeat(reader: Reader, label: str | None) -> Loop:
    body = _body(reader, "UNTIL")
    reader.expect("UNTIL")
    until = reader.slice("END", expected="a condition")
    _ends(reader, ("REPEAT",), label)
    return Loop(body, label, until=until)


def _loop(reader: Reader, label: str | None) -> Loop:
    body = _body(reader, "END")
    _ends(reader, ("LOOP",), label)
    return Loop(body, label)


def _for(reader: Reader, label: str | None) -> ForLoop:
    ahead = reader.tokens[reader.position : reader.position + 2]
    variable = None
    if len(ahead) == 2 and ahead[0].kind in ("word", "quoted") and ahead[1].keyword == "AS":
        variable = reader.name()
        reader.expect("AS")
    query = reader.slice("DO", expected="a query")
    reader.expect("DO")
    body = _body(reader, "END")
    _ends(reader, ("FOR",), label)
    return ForLoop(body, label, variable, query)


_LABELLED: dict[str, Callable[[Reader, str | None], Node]] = {
    "WHILE": _while,
    "REPEAT": _repeat,
    "LOOP": _loop,
    "FOR": _for,
}
