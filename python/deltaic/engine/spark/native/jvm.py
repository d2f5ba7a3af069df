"""`Jvm`, which gives access to Spark's driver JVM by py4j: classes by their names, and Java arrays and lists
that are created in bulk. Nothing here makes a call for each row or file."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import pyarrow as pa

from deltaic.engine.spark.native.callbacks import Callbacks

DATASOURCES = "org.apache.spark.sql.execution.datasources."
EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
LOCAL_BYTES = 32 * 1024**2
"""Maximum bytes of rows in one call of `createDataFrame`; more rows are passed in several calls. Up to 48 MB
(spark.sql.execution.arrow.localRelationThreshold) Spark keeps the rows on the driver and runs no job."""

HEAP_SHARE = 8
"""Deletion vectors may use at most 1/HEAP_SHARE of the driver's heap. Above it, tasks read them."""

STATUSES = 50_000
"""Maximum number of files in one message to the JVM, because py4j keeps several copies of each message; more
files are sent in several messages."""


class Jvm:
    """The JVM of one session."""

    def __init__(self, spark: Any) -> None:
        from pyspark.java_gateway import ensure_callback_server_started

        self.spark = spark
        self.root = spark._jvm
        self.gateway = spark.sparkContext._gateway
        self.is_rehearsed = False
        """True after `file_index.rehearse` has listed a file through a file index."""
        self.plans_tables = False
        """True after the optimizer has replaced a table's leaf by a scan (`tables._rehearse`)."""
        self._classes: dict[str, Any] = {}
        ensure_callback_server_started(self.gateway)
        self.callbacks = Callbacks.of(self.gateway)

    def get(self, name: str) -> Any:
        """Returns a Java class as py4j shows it, to create objects or to call static methods."""
        if name not in self._classes:
            self._classes[name] = getattr(self.root, name)
        return self._classes[name]

    def companion(self, name: str) -> Any:
        """Returns the instance of a Scala `object` (a singleton)."""
        key = f"{name}$"
        if key not in self._classes:
            self._classes[key] = getattr(getattr(self.root, key), "MODULE$")
        return self._classes[key]

    def type_of(self, name: str) -> Any:
        """Returns the `java.lang.Class` of a full name."""
        key = f"class {name}"
        if key not in self._classes:
            self._classes[key] = self.get("java.lang.Class").forName(name)
        return self._classes[key]

    def primitive(self, name: str) -> Any:
        """Returns the `java.lang.Class` of a primitive type: `int` for `Integer`."""
        key = f"primitive {name}"
        if key not in self._classes:
            self._classes[key] = self.get(f"java.lang.{name}").TYPE
        return self._classes[key]

    def having(self, name: str, method: str, *types: Any) -> Any:
        """Returns `type_of(name)`, after a check that the class has this method. Spark's generated code calls
        the method; without the check, the query would fail if it is missing."""
        key = f"method {name}.{method}"
        if key not in self._classes:
            self._classes[key] = self.type_of(name).getMethod(method, self._types(*types))
        return self.type_of(name)

    @cached_property
    def most_set_bytes(self) -> int:
        """Maximum bytes of deletion vectors that the driver's JVM gets at a time. The heap has several copies
        of each vector, and G1 stores an object that is larger than half a region in whole regions."""
        return int(self.get("java.lang.Runtime").getRuntime().maxMemory()) // HEAP_SHARE

    @property
    def none(self) -> Any:
        return self.companion("scala.None")

    def array(self, cls: Any, *items: Any) -> Any:
        array = self.gateway.new_array(cls, len(items))
        for index, item in enumerate(items):
            array[index] = item
        return array

    def seq(self, *items: Any) -> Any:
        """Creates a Scala Seq."""
        return self.get("org.apache.spark.api.python.PythonUtils").toSeq(self.java_list(items))

    def java_list(self, items: Iterable[Any]) -> Any:
        """Creates a Java List."""
        java_list = self.get("java.util.ArrayList")()
        for item in items:
            java_list.add(item)
        return java_list

    def expression(self, column: Any) -> Any:
        """Returns the Catalyst expression of a Column."""
        return self.companion("org.apache.spark.sql.classic.ExpressionUtils").expression(column._jc)

    def column(self, expression: Any) -> Any:
        """Returns the Column of a Catalyst expression."""
        from pyspark.sql import Column

        return Column(self.companion("org.apache.spark.sql.classic.ExpressionUtils").column(expression))

    def schema(self, json: str) -> Any:
        """Creates a Java StructType from its JSON."""
        return self.get("org.apache.spark.sql.types.DataType").fromJson(json)

    def file_statuses(self, statuses: pa.ChunkedArray | pa.Array) -> Any:
        """Creates a FileStatus[] from the column `__deltaic_status`, whose values are Hadoop's own
        serialization of each status. A few calls read up to STATUSES of them."""
        whole = statuses.combine_chunks() if isinstance(statuses, pa.ChunkedArray) else statuses
        java_statuses = self.gateway.new_array(self.get("org.apache.hadoop.fs.FileStatus"), len(whole))
        for start in range(0, len(whole), STATUSES):
            part = whole.slice(start, STATUSES)
            payload = bytearray(struct.pack(">i", len(part)) + _values_of(part))
            writable = self.get("org.apache.hadoop.io.ArrayWritable")(
                self.type_of("org.apache.hadoop.fs.FileStatus")
            )
            stream = self.get("java.io.DataInputStream")(self.get("java.io.ByteArrayInputStream")(payload))
            writable.readFields(stream)
            self.get("java.lang.System").arraycopy(writable.toArray(), 0, java_statuses, start, len(part))
        return java_statuses

    def rows(self, table: pa.Table, schema: Any) -> Any:
        """Creates an InternalRow[] from an Arrow table with the columns of `schema` (a pyspark StructType).
        At most LOCAL_BYTES are converted at a time, so that Spark runs no job."""
        if all(column.null_count == table.num_rows for column in table.columns):
            return self._null_rows(table)
        step = max(1, table.num_rows * LOCAL_BYTES // max(table.nbytes, 1))
        parts = [
            self._local_rows(table.slice(start, step), schema) for start in range(0, table.num_rows, step)
        ]
        if len(parts) == 1:
            return parts[0]
        java_rows = self.gateway.new_array(
            self.get("org.apache.spark.sql.catalyst.InternalRow"), table.num_rows
        )
        for number, part in enumerate(parts):
            self.get("java.lang.System").arraycopy(part, 0, java_rows, number * step, len(part))
        return java_rows

    def _null_rows(self, table: pa.Table) -> Any:
        """Creates an InternalRow[] of rows with only nulls; all elements are the same Java object."""
        java_rows = self.gateway.new_array(
            self.get("org.apache.spark.sql.catalyst.InternalRow"), table.num_rows
        )
        row = self.get(EXPRESSIONS + "GenericInternalRow")(table.num_columns)
        copies = self.get("java.util.Collections").nCopies(table.num_rows, row).toArray()
        self.get("java.lang.System").arraycopy(copies, 0, java_rows, 0, table.num_rows)
        return java_rows

    def _local_rows(self, table: pa.Table, schema: Any) -> Any:
        frame = self.spark.createDataFrame(table, schema)
        plan = frame._jdf.queryExecution().analyzed()
        if plan.getClass().getSimpleName() != "LocalRelation":
            return frame.coalesce(1)._jdf.queryExecution().executedPlan().executeCollect()
        tag = self.companion("scala.reflect.ClassTag").apply(
            self.type_of("org.apache.spark.sql.catalyst.InternalRow")
        )
        return plan.data().toArray(tag)

    def partition_directories(
        self, rows: Any, statuses: Any, positions: Any | None, predicate: Any | None
    ) -> Any:
        """Creates a Seq of one PartitionDirectory for each file, from its row of constants and its status.

        `positions`: indexes of the files to list (a NumPy array), None for all. `predicate`: a
        `BasePredicate` of Catalyst, bound to the rows, or None; a file is left out if the predicate is not
        true for the file's row."""
        numbers = None if positions is None else positions.astype(">i4").tobytes()
        return self.callbacks.directories(rows, statuses, numbers, predicate)

    def _types(self, *types: Any) -> Any:
        return self.array(self.get("java.lang.Class"), *types)


def _values_of(binary: pa.Array) -> bytes:
    """Returns the bytes of all values, concatenated."""
    import numpy as np

    if not len(binary):
        return b""
    _, offsets, data = binary.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)[binary.offset : binary.offset + len(binary) + 1]
    return memoryview(data)[ends[0] : ends[-1]].tobytes()
