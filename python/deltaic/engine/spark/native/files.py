"""The files of a scan as Java objects, each with its constants (partition values, deletion vector, ...). The
files are listed when the scan is created, or selected for each query. Objects are created in bulk, because
each call to the JVM takes time."""

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
"""Maximum number of files whose metadata is sent to the JVM when the scan is created. Above it, only the
files that remain after a query's filters are sent."""
MANY_VECTORS = 100
"""Like MANY_FILES, for files with deletion vectors, because one vector can take megabytes."""
MOST_SHARE = 4
"""If the filters keep fewer than 1/MOST_SHARE of the files, only those are sent. Otherwise all files are sent
once, and each query passes positions."""


@dataclass(frozen=True, eq=False)
class JvmFiles:
    """File metadata as Java objects. `rows`: InternalRow[] of constants, one for each file. `statuses`:
    FileStatus[] of the same length. `positions`: indexes of the selected files (a NumPy array), None for all.
    `count`: number of files, before partition filters are evaluated for each."""

    rows: Any
    statuses: Any
    positions: Any | None
    count: int


class Files(Protocol):
    """The files of one scan."""

    size: int
    """Total bytes of the files, which Spark uses as the size of the scan's rows."""

    @property
    def by_partition(self) -> bool:
        """True if `selected` should prune files by partition filters, too. They are evaluated for each
        selected file anyway, so this only saves work."""

    def selected(self, hint: _core.Predicate | None) -> JvmFiles:
        """Returns the files whose rows may match `hint`, and perhaps others; all files if `hint` is None."""

    def one(self) -> JvmFiles:
        """Returns one file with constants of the scan's types, for `file_index.rehearse`."""


class ListedFiles:
    """Files that are known when the scan is created.

    `spark_files`: the result of `_core.hand_over`. `constants`: a table with one row for each file and the
    columns of `schema` (a pyspark StructType). `adds` and `table_schema`: the files' add actions and the
    table's schema, for pruning by statistics."""

    def __init__(
        self,
        jvm: Jvm,
        spark_files: pa.Table,
        constants: pa.Table,
        schema: Any,
        adds: pa.Table,
        table_schema: _core.TableSchema,
    ) -> None:
        self._jvm, self._schema, self._adds, self._table_schema = jvm, schema, adds, table_schema
        self._statuses, self._constants = spark_files["__deltaic_status"], constants
        self.size = int(np.sum(spark_files["__deltaic_size"].to_numpy()))
        self._all: JvmFiles | None = None
        if adds.num_rows <= MANY_FILES:
            self._all = self._of(None)

    @property
    def by_partition(self) -> bool:
        return self._all is None

    def selected(self, hint: _core.Predicate | None) -> JvmFiles:
        positions = None if hint is None or self._adds.num_rows < 2 else self._matching(hint)
        if self._all is None and positions is not None and len(positions) * MOST_SHARE < self._adds.num_rows:
            return self._of(positions)
        if self._all is None:
            self._all = self._of(None)
        if positions is None:
            return self._all
        return JvmFiles(self._all.rows, self._all.statuses, positions, len(positions))

    def _of(self, positions: Any | None) -> JvmFiles:
        """Returns the files at these positions (a NumPy array), or all files for None."""
        constants, statuses = self._constants, self._statuses
        if positions is not None:
            indexes = pa.array(positions)
            constants, statuses = constants.take(indexes), statuses.take(indexes)
        return JvmFiles(
            self._jvm.rows(constants, self._schema),
            self._jvm.file_statuses(statuses),
            None,
            constants.num_rows,
        )

    def _matching(self, hint: _core.Predicate) -> Any | None:
        """Returns the positions (a NumPy array) of the files that the statistics do not rule out; None for
        all files."""
        matching = _core.filter_adds(self._adds, self._table_schema, hint)
        if matching.num_rows == self._adds.num_rows:
            return None
        matches = pc.is_in(self._adds["path"], value_set=matching["path"].combine_chunks())
        return np.flatnonzero(matches.to_numpy())

    def one(self) -> JvmFiles:
        return self._of(np.zeros(1, np.int64))


Describe: TypeAlias = Callable[[pa.Table], tuple[pa.Table, Any]]


class SelectedFiles:
    """Files that are selected for each query by its filters.

    `marked`: True for the files with a deletion vector, False for those without. `describe`: a function from
    add actions to the files' constants, with the columns of `schema` (a pyspark StructType), and their
    statuses. `invent`: a function that returns constants and status of a file that does not exist."""

    by_partition = True

    def __init__(
        self,
        jvm: Jvm,
        later: DeferredFiles,
        marked: bool,
        schema: Any,
        describe: Describe,
        invent: Callable[[], tuple[pa.Table, Any]],
    ) -> None:
        self._jvm, self._later, self._marked, self._schema = jvm, later, marked, schema
        self._describe, self._invent = describe, invent
        self.size = (later.marked if marked else later.plain)[1]
        self._last: tuple[str | None, JvmFiles] | None = None

    def selected(self, hint: _core.Predicate | None) -> JvmFiles:
        """Like `Files.selected`. The last result is cached, because Spark lists the files several times for
        one query. A large result is not: this object lives until the JVM's garbage collector frees it."""
        key = None if hint is None else hint.json
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        adds = self._later.files(hint)
        has_vector = adds["deletionVector"].is_valid()
        files = self._of(*self._describe(adds.filter(has_vector if self._marked else pc.invert(has_vector))))
        if files.count <= MANY_FILES:
            self._last = key, files
        return files

    def _of(self, constants: pa.Table, statuses: Any) -> JvmFiles:
        return JvmFiles(
            self._jvm.rows(constants, self._schema),
            self._jvm.file_statuses(statuses),
            None,
            constants.num_rows,
        )

    def one(self) -> JvmFiles:
        """Returns a file that does not exist, because the log would have to be read to find an existing
        one."""
        return self._of(*self._invent())
