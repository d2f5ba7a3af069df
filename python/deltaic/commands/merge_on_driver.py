"""Runs a small MERGE of a Spark session on the driver, by the embedded engine. There it takes about 10 ms,
while each Spark job takes about 100 ms.

This is done if the source's rows are on the driver, the files that may match are small together, and the
clauses use only operators. Otherwise, and if it fails, Spark runs the MERGE, so that rows and errors are
always those of Spark.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from deltaic.commands.marking import total_size
from deltaic.commands.merge_clauses import conditions
from deltaic.commands.merge_planning import equalities
from deltaic.commands.merge_run import Run
from deltaic.configuration import checked_time_zone
from deltaic.errors import DeltaError
from deltaic.plan.expression import Expression
from deltaic.protocol.schema import primitive_types
from deltaic.spark_sql.char_types import has_char

if TYPE_CHECKING:
    from deltaic.commands.delete import Metrics

log = logging.getLogger("deltaic.commands")

_NAMES_AND_VALUES = (exp.Column, exp.Identifier, exp.Dot, exp.Literal, exp.Boolean, exp.Null, exp.Paren)
_COMPARISONS = (
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.NullSafeEQ,
    exp.Is,
    exp.In,
    exp.Between,
)
_OPERATORS = (
    *_NAMES_AND_VALUES,
    *_COMPARISONS,
    exp.And,
    exp.Or,
    exp.Not,
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.Neg,
    exp.Case,
    exp.If,
)
"""Parts of expressions whose meaning a session cannot change. It can change that of a function, by
registering another one with its name."""


def staged(run: Run, held: ExitStack) -> tuple[Run, Metrics]:
    """Stages the changes, on the driver if possible. Returns the run that has staged them, and its
    metrics."""
    if (local := _on_driver(run, held)) is not None:
        try:
            return local, local.stage()
        except DeltaError as error:
            log.debug("the cluster does a MERGE that failed on the driver: %s", error)
    return run, run.stage()


def _on_driver(run: Run, held: ExitStack) -> Run | None:
    """Returns a run of the MERGE by the embedded engine; None if Spark must run it."""
    from deltaic.engine.duckdb.engine import LocalEngine

    if (most_bytes := run.engine.driver_bytes(run.snapshot.store)) == 0 or not all(
        map(_is_of_operators, _expressions(run))
    ):
        return None
    if (run.engine.pads_char and any(map(has_char, run.schema))) or _writes_doubles_as_text(run):
        return None
    if (rows := run.engine.rows_here(run.source)) is None:
        return None
    try:
        # Java knows further names of time zones
        engine = LocalEngine(checked_time_zone(run.engine.time_zone))
        local = Run(run.snapshot, engine, replace(run.spec, source=rows), held)
        if local.metadata != run.metadata or not equalities(
            local.on.conjuncts, local.schema, local.source_schema, local.s, local.t
        ):
            return None
        local.transaction.parameters = run.transaction.parameters  # conditions in the form of Spark
        local.rules = run.rules  # on Spark, also those of null structs
        planned = run.matches.planned = local.matches.planned
        return local if total_size(planned.selection.adds) <= most_bytes else None
    except DeltaError as error:
        log.debug("the cluster does a MERGE that the driver cannot do: %s", error)
        return None


def _expressions(run: Run) -> Iterator[Expression]:
    """Yields the expressions that the user wrote."""
    yield run.on
    yield from conditions(run.clauses)
    for each in run.clauses:
        if each.assignments is not None:
            yield from each.assignments.values(run.engine, each.scope)


def _writes_doubles_as_text(run: Run) -> bool:
    """True if a clause assigns a double to a string column. The texts differ: the embedded engine writes 2e23
    as `2.0E23`, Java before version 19 as `1.9999999999999998E23`."""
    assignments = [(each.assignments, each.scope) for each in run.clauses if each.assignments is not None]
    assigned = [pair for of_clause, scope in assignments for pair in of_clause.assigned(run.engine, scope)]
    return any(
        value.type != data_type
        and "string" in primitive_types(data_type)
        and not {"float", "double"}.isdisjoint(primitive_types(value.type))
        for data_type, value in assigned
    )


def _is_of_operators(expression: Expression) -> bool:
    if expression.path is not None:
        return True
    return expression.tree is not None and all(
        isinstance(node, _OPERATORS) for node in expression.tree.walk()
    )
