"""The files of a scan as Java objects, made in bulk, each with its constants: listed from the start, or selected for each query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.engine.spark.native.jvm import Jvm
from deltaic.plan.nodes import DeferredFiles

MANY_FILES = 10_000
"""Maximum files whose metadata is sent to the JVM when the scan is created. Above it, only files that a query's filters leave are sent."""
MANY_VECTORS = 100
"""Like MANY_FILES, for files with deletion vectors, because one vector can take megabytes."""
MOST_SHARE = 4
"""If the filters keep fewer than 1/MOST_SHARE of the files, only those are sent; otherwise all are sent once, and positions are passed."""


@dataclass(frozen=True, eq=False)
class JvmFiles:
    """File metadata as Java objects. `rows`: InternalRow[] of constants; `statuses`: FileStatus[] of the same length. `positions`: int[],
    the indexes of the selected files, None for all. `count`: how many files are selected at most."""

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
        """True if partition filters should prune files here, too. Spark applies them to the result anyway: this only saves work."""

    def selected(self, hint: _core.Predicate | None) -> JvmFiles:
        """The files that may hold a match, and perhaps others."""

    def one(self) -> JvmFiles:
        """One file of the kind that the scan has, for the rehearsal of a session."""


class ListedFiles:
    """Files that are listed when the scan is made. `constants`: a table with a row for each, its columns those of `schema` (a pyspark
    StructType). `statuses`: of `_core.hand_over`. `adds` and `table_schema`: for skipping."""

    def __init__(
        self, jvm: Jvm, handed: pa.Table, constants: pa.Table, schema: Any, adds: pa.Table, table_schema: _core.TableSchema
    ) -> None:
        self._jvm, self._schema, self._adds, self._table_schema = jvm, schema, adds, table_schema
        self._statuses, self._constants = handed["__deltaic_status"], constants
        self.size = int(np.sum(handed["__deltaic_size"].to_numpy()))
        self._all: JvmFiles | None = None
        if adds.num_rows <= MANY_FILES:
            self._all = self._of(None)

    @property
    def by_partition(self) -> bool:
        return self._all is None

    def selected(self, hint: _core.Predicate | None) -> JvmFiles:
        chosen = None if hint is None or self._adds.num_rows < 2 else self._chosen(hint)
        if self._all is None and chosen is not None and len(chosen) * MOST_SHARE < self._adds.num_rows:
            return self._of(chosen)
        if self._all is None:
            self._all = self._of(None)
        if chosen is None:
            return self._all
        return JvmFiles(self._all.rows, self._all.statuses, self._jvm.ints(chosen), len(chosen))

    def _of(self, chosen: Any | None) -> JvmFiles:
        """The files at these positions, None: all."""
        constants, statuses = self._constants, self._statuses
        if chosen is not None:
            positions = pa.array(chosen)
            constants, statuses = constants.take(positions), statuses.take(positions)
        return JvmFiles(self._jvm.rows(constants, self._schema), self._jvm.file_statuses(statuses), None, constants.num_rows)

    def _chosen(self, hint: _core.Predicate) -> Any | None:
        """Positions of the files that are left, None for all."""
        left = _core.filter_adds(self._adds, self._table_schema, hint)
        if left.num_rows == self._adds.num_rows:
            return None
        stay = pc.is_in(self._adds["path"], value_set=left["path"].combine_chunks())
        return np.flatnonzero(stay.to_numpy())

    def one(self) -> JvmFiles:
        return self._of(np.zeros(1, np.int64))


Describe: TypeAlias = Callable[[pa.Table], tuple[pa.Table, Any]]


class SelectedFiles:
    """Files that are selected for each query, by its filters.

    `describe`: rows of `add` -> their constants, whose columns are those of `schema` (a pyspark StructType), and their statuses. `invent`:
    the same of a file that is not there. `marked`: those with a deletion vector, else those without."""

    by_partition = True

    def __init__(
        self, jvm: Jvm, later: DeferredFiles, marked: bool, schema: Any, describe: Describe, invent: Callable[[], tuple[pa.Table, Any]]
    ) -> None:
        self._jvm, self._later, self._marked, self._schema = jvm, later, marked, schema
        self._describe, self._invent = describe, invent
        self.size = (later.marked if marked else later.plain)[1]
        self._last: tuple[str | None, JvmFiles] | None = None

    def selected(self, hint: _core.Predicate | None) -> JvmFiles:
        """Spark asks several times for one query: the last answer is kept, unless it is large: Java decides when this object goes."""
        key = None if hint is None else hint.json
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        adds = self._later.files(hint)
        has_vector = adds["deletionVector"].is_valid()
        converted = self._of(*self._describe(adds.filter(has_vector if self._marked else pc.invert(has_vector))))
        if converted.count <= MANY_FILES:
            self._last = key, converted
        return converted

    def _of(self, constants: pa.Table, statuses: Any) -> JvmFiles:
        return JvmFiles(self._jvm.rows(constants, self._schema), self._jvm.file_statuses(statuses), None, constants.num_rows)

    def one(self) -> JvmFiles:
        """A file that is not there: which are is not known without looking."""
        return self._of(*self._invent())
