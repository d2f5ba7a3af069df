"""Runs SQL scripts (`BEGIN … END`) that name Delta tables, statement by statement, as Spark runs other
scripts.

The variables of a script are session variables while their block runs, so that Spark resolves their names. A
session variable of the same name gets its value back afterwards. The rows of a query are collected when it
runs; the rows of the last query are the script's result.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from deltaic.errors import InvalidArgumentError
from deltaic.spark.identifiers import executed
from deltaic.spark.patches import spark_sql
from deltaic.spark.scripts import Block, Choice, Declaration, ForLoop, Handler, Loop, Node, Sql, parse_script
from deltaic.sql.tokens import Reader
from deltaic.sql_text import QUERY_STARTS, quote_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_numbers = itertools.count()


def run_script(spark: Any, text: str, run: Callable[[str], DataFrame]) -> DataFrame:
    """Runs a script. Returns the rows of its last query, or an empty DataFrame without columns. `run`: a
    function that runs one statement."""
    script = _ScriptRun(spark, run)
    script.do(parse_script(text))
    return script.result if script.result is not None else spark.createDataFrame([], "")


class _JumpSignal(Exception):
    """Raised by LEAVE and ITERATE, and caught by the block or loop of their label. An EXIT handler raises it
    with its block as `label`. `again`: True for ITERATE."""

    def __init__(self, label: str | Block, *, again: bool = False) -> None:
        super().__init__(f"no such label: {label if isinstance(label, str) else 'of a handler'}")
        self.label, self.again = label, again


class _ScriptRun:
    """One run of a script. `result`: the rows of the last query. `_blocks`: the blocks that are running, the
    innermost one last, each with an ExitStack that restores session variables at the block's end."""

    def __init__(self, spark: Any, run: Callable[[str], DataFrame]) -> None:
        self._spark, self._run = spark, run
        self._blocks: list[tuple[Block, ExitStack]] = []
        self.result: DataFrame | None = None

    def do(self, node: Node) -> None:
        """Runs one statement. If it raises an error, the innermost block that has a handler for the error
        runs the handler."""
        try:
            self._do(node)
        except _JumpSignal:
            raise
        except Exception as error:
            depth, handler = self._handler_of(error)
            if handler is None:
                raise
            inner, self._blocks = self._blocks[depth:], self._blocks[:depth]
            try:
                self.do(handler.body)
            finally:
                self._blocks = [*self._blocks, *inner]
            if handler.exits:
                raise _JumpSignal(self._blocks[depth][0]) from None

    def _do(self, node: Node) -> None:
        if isinstance(node, Sql):
            self._statement(node.text)
        elif isinstance(node, Declaration):
            for name in node.names:
                self._declare(self._blocks[-1][1], name, node.definition)
        elif isinstance(node, Block):
            self._block(node)
        elif isinstance(node, Choice):
            self._choose(node)
        elif isinstance(node, Loop):
            self._loop(node)
        elif isinstance(node, ForLoop):
            self._for(node)
        else:
            raise _JumpSignal(node.label, again=node.again)

    def _statement(self, text: str) -> None:
        query = executed(self._spark, text) or text
        frame = self._run(text)
        if frame.columns and Reader(query).tokens[0].keyword in QUERY_STARTS | {"("}:
            self.result = self._spark.createDataFrame(frame.collect(), frame.schema)

    def _block(self, block: Block) -> None:
        with ExitStack() as scope:
            self._blocks.append((block, scope))
            try:
                self._all(block.body)
            except _JumpSignal as jump:
                if jump.label not in (block, block.label) or jump.again:
                    raise
            finally:
                self._blocks.pop()

    def _all(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self.do(node)

    def _choose(self, choice: Choice) -> None:
        for condition, body in choice.branches:
            if self._holds(condition):
                self._all(body)
                return
        if choice.otherwise is None:
            raise InvalidArgumentError(
                "[CASE_NOT_FOUND] no WHEN of CASE is true, and there is no ELSE", expected="ELSE"
            )
        self._all(choice.otherwise)

    def _loop(self, loop: Loop) -> None:
        while loop.before is None or self._holds(loop.before):
            if not self._turn(loop) or (loop.until is not None and self._holds(loop.until)):
                return

    def _turn(self, loop: Loop | ForLoop) -> bool:
        """Runs the body of a loop once. Returns False if the body ended the loop by LEAVE."""
        try:
            self._all(loop.body)
        except _JumpSignal as jump:
            if loop.label is None or jump.label != loop.label:
                raise
            return jump.again
        return True

    def _for(self, loop: ForLoop) -> None:
        frame = self._run(loop.query)
        types = {item.name: item.dataType.simpleString() for item in frame.schema.fields}
        row_type = f"STRUCT<{', '.join(f'{quote_name(name)}: {kind}' for name, kind in types.items())}>"
        kinds = {**types, **({} if loop.variable is None else {loop.variable: row_type})}
        with ExitStack() as scope:
            for name, kind in kinds.items():
                self._declare(scope, name, kind)
            for row in frame.collect():
                values = {
                    **row.asDict(recursive=False),
                    **({} if loop.variable is None else {loop.variable: row}),
                }
                for name, value in values.items():
                    spark_sql(
                        self._spark,
                        f"SET VAR {quote_name(name)} = CAST(:value AS {kinds[name]})",
                        {"value": _column(value)},
                    )
                if not self._turn(loop):
                    return

    def _holds(self, condition: str) -> bool:
        return bool(self._run(f"SELECT ({condition}\n)").collect()[0][0])

    def _declare(self, scope: ExitStack, name: str, definition: str) -> None:
        """Declares a variable until the end of `scope`."""
        scope.enter_context(self._restoring(quote_name(name)))
        self._run(f"DECLARE OR REPLACE VARIABLE {quote_name(name)} {definition}")

    @contextmanager
    def _restoring(self, name: str) -> Iterator[None]:
        """Restores the session variable `name` after the body: its value, or its absence."""
        copy = f"__deltaic_variable_{next(_numbers)}"
        try:
            with _without_error_log():
                spark_sql(self._spark, f"DECLARE VARIABLE {copy} = system.session.{name}")
        except Exception:  # there is no such variable
            copy = ""
        try:
            yield
        finally:
            if copy:
                spark_sql(self._spark, f"DECLARE OR REPLACE VARIABLE {name} = {copy}")
            spark_sql(self._spark, f"DROP TEMPORARY VARIABLE IF EXISTS {copy or name}")

    def _handler_of(self, error: Exception) -> tuple[int, Handler | None]:
        """Returns the handler of an error, or None, and the index in `_blocks` of the handler's block."""
        condition, state = (_result_of(error, method) for method in ("getCondition", "getSqlState"))
        for depth in range(len(self._blocks) - 1, -1, -1):
            block = self._blocks[depth][0]
            broad = "SQLEXCEPTION" if state[:2] not in ("02", "01") else "NOT FOUND"
            # the most specific handler comes first, whatever their order
            for wanted in filter(None, (condition, condition.partition(".")[0], state, broad)):
                for handler in block.handlers:
                    if wanted in {block.states.get(name, name) for name in handler.conditions}:
                        return depth, handler
        return 0, None


@contextmanager
def _without_error_log() -> Iterator[None]:
    """Keeps PySpark from logging the errors of this thread's statements, each with its whole stack trace, as
    these errors are expected."""
    from pyspark.logger import PySparkLogger

    thread = threading.get_ident()

    def is_of_another_thread(record: logging.LogRecord) -> bool:
        return record.thread != thread

    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    logger.addFilter(is_of_another_thread)
    try:
        yield
    finally:
        logger.removeFilter(is_of_another_thread)


def _result_of(error: Exception, method: str) -> str:
    """Calls a method of an error of PySpark, and returns the result in upper case; "" for other errors."""
    return str(getattr(error, method, lambda: None)() or "").upper()


def _column(value: Any) -> Any:
    """Returns the literal of a value, and a struct of literals for a Row."""
    from pyspark.sql import Row
    from pyspark.sql import functions as F

    return F.struct(*(_column(each) for each in value)) if isinstance(value, Row) else F.lit(value)
