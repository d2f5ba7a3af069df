"""The files of a scan as the JVM is told of them, in bulk, each with its constants: known from the start, or chosen for each query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.engine.spark.native.jvm import Jvm
from deltaic.plan.nodes import Later

MANY_FILES = 10_000
"""The JVM is told of so many files at once; of more when a query has chosen among them."""
MANY_VECTORS = 100
"""Of so many files with deletion vectors, which may have megabytes each; of those of more when a query has chosen among them."""
MOST_SHARE = 4
"""It is told of the chosen files alone where they are a smaller part than one in so many."""


@dataclass(frozen=True, eq=False)
class Told:
    """What the JVM has of some files. `rows`: InternalRow[] of constants; `statuses`: FileStatus[] of the same length. `positions`: int[]
    of those that are meant, None for all. `count`: how many are meant at most."""

    rows: Any
    statuses: Any
    positions: Any | None
    count: int


class Files(Protocol):
    """The files of one scan."""

    size: int
    """Their bytes."""

    @property
    def by_partition(self) -> bool:
        """Whether it is worth the while to choose by conditions on constants too: these are applied to what comes of it anyway."""

    def told(self, hint: _core.Predicate | None) -> Told:
        """At least those that may hold a match."""

    def one(self) -> Told:
        """Like one of them."""


class Given:
    """Files that are known when the scan is made. `constants`: a table with a row for each, its columns those of `schema` (a pyspark
    StructType). `statuses`: of `_core.hand_over`. `adds` and `table_schema`: for skipping."""

    def __init__(
        self, jvm: Jvm, handed: pa.Table, constants: pa.Table, schema: Any, adds: pa.Table, table_schema: _core.TableSchema
    ) -> None:
        self._jvm, self._schema, self._adds, self._table_schema = jvm, schema, adds, table_schema
        self._statuses, self._constants = handed["__deltaic_status"], constants
        self.size = int(np.sum(handed["__deltaic_size"].to_numpy()))
        self._all: Told | None = None
        if adds.num_rows <= MANY_FILES:
            self._all = self._of(None)

    @property
    def by_partition(self) -> bool:
        return self._all is None

    def told(self, hint: _core.Predicate | None) -> Told:
        chosen = None if hint is None or self._adds.num_rows < 2 else self._chosen(hint)
        if self._all is None and chosen is not None and len(chosen) * MOST_SHARE < self._adds.num_rows:
            return self._of(chosen)
        if self._all is None:
            self._all = self._of(None)
        if chosen is None:
            return self._all
        return Told(self._all.rows, self._all.statuses, self._jvm.ints(chosen), len(chosen))

    def _of(self, chosen: Any | None) -> Told:
        """The files at these positions, None: all."""
        constants, statuses = self._constants, self._statuses
        if chosen is not None:
            positions = pa.array(chosen)
            constants, statuses = constants.take(positions), statuses.take(positions)
        return Told(self._jvm.rows(constants, self._schema), self._jvm.file_statuses(statuses), None, constants.num_rows)

    def _chosen(self, hint: _core.Predicate) -> Any | None:
        """Positions of the files that are left, None for all."""
        left = _core.filter_adds(self._adds, self._table_schema, hint)
        if left.num_rows == self._adds.num_rows:
            return None
        stay = pc.is_in(self._adds["path"], value_set=left["path"].combine_chunks())
        return np.flatnonzero(stay.to_numpy())

    def one(self) -> Told:
        return self._of(np.zeros(1, np.int64))


Describe: TypeAlias = Callable[[pa.Table], tuple[pa.Table, Any]]


class Chosen:
    """Files that are chosen for each query. `describe`: rows of `add` -> their constants, whose columns are those of `schema` (a pyspark
    StructType), and their statuses. `invent`: the same of a file that is not there. `marked`: those with a deletion vector, else those
    without."""

    by_partition = True

    def __init__(
        self, jvm: Jvm, later: Later, marked: bool, schema: Any, describe: Describe, invent: Callable[[], tuple[pa.Table, Any]]
    ) -> None:
        self._jvm, self._later, self._marked, self._schema = jvm, later, marked, schema
        self._describe, self._invent = describe, invent
        self.size = (later.marked if marked else later.plain)[1]
        self._last: tuple[str | None, Told] | None = None

    def told(self, hint: _core.Predicate | None) -> Told:
        """Spark asks several times for one query: the last answer is kept, unless it is large: Java decides when this object goes."""
        key = None if hint is None else hint.json
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        adds = self._later.files(hint)
        has_vector = adds["deletionVector"].is_valid()
        told = self._of(*self._describe(adds.filter(has_vector if self._marked else pc.invert(has_vector))))
        if told.count <= MANY_FILES:
            self._last = key, told
        return told

    def _of(self, constants: pa.Table, statuses: Any) -> Told:
        return Told(self._jvm.rows(constants, self._schema), self._jvm.file_statuses(statuses), None, constants.num_rows)

    def one(self) -> Told:
        """A file that is not there: which are is not known without looking."""
        return self._of(*self._invent())
