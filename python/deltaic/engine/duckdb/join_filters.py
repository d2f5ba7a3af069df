"""Derives filters on a large table from the rows of a small table that is joined with it.

`FROM sales, days WHERE sold = day AND year = 2001` needs only the sales of 365 days. DuckDB makes such a
filter while it runs and gives it to its own Parquet scan, not to other sources. Here the days are read ahead,
and the scan of the sales gets `sold IN (...)`, by which it leaves out row groups and rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from deltaic import _core
from deltaic.spark_sql.values import INTEGRAL

if TYPE_CHECKING:
    from deltaic.engine.duckdb.sources import ScanSource
    from deltaic.spark_sql.query.queries import TableColumn

MOST_READ = 500_000
"""Maximum number of rows of a table whose keys are read before the query; larger ones filter nothing."""
FEWEST_FILTERED = 50_000
"""Minimum number of rows of a table that gets a filter."""
MOST_KEYS = 1000
"""Maximum number of distinct keys in a filter; with more, only integers or dates that are close to each other
become one (`_core.Predicate.among`)."""


def push_keys(
    sources: Mapping[str, ScanSource | None],
    rows: Mapping[str, int | None],
    keys: Sequence[tuple[TableColumn, TableColumn]],
) -> None:
    """Adds filters to sources. `keys`: pairs of columns of two tables; the query needs no row of the second
    table without an equal key in the first. A filtered table becomes a source of keys itself: the days of a
    year filter the weeks, and the weeks filter an inventory."""
    pending = {(few, many) for few, many in keys if few[0] != many[0]}
    while ready := sorted(pair for pair in pending if _is_ready(sources, rows, *pair)):
        few, many = ready[0]
        pending -= {(few, many), (many, few)}
        source, target = sources[few[0]], sources[many[0]]
        assert source is not None
        assert target is not None
        if (found := _filter(source, few[1], target, many[1])) is not None:
            target.require(found)


def _is_ready(
    sources: Mapping[str, ScanSource | None],
    rows: Mapping[str, int | None],
    few: TableColumn,
    many: TableColumn,
) -> bool:
    """True if a filter of `many` by the keys of `few` saves more time than it costs."""
    source, target = sources.get(few[0]), sources.get(many[0])
    if source is None or target is None or not source.is_filtered:
        return False
    here, there = rows.get(few[0]), rows.get(many[0])
    return (
        here is not None and there is not None and here <= min(there, MOST_READ) and there >= FEWEST_FILTERED
    )


def _filter(source: ScanSource, key: str, target: ScanSource, column: str) -> _core.Predicate | None:
    """Predicate that `column` of the target is one of the source's keys; None if it would prune too
    little."""
    kind = source.type_of(key)
    if kind not in (*INTEGRAL, "date", "string") or kind != target.type_of(column):
        return None
    return source.among_keys(key, target, column, MOST_KEYS)
