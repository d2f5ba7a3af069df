"""The formats "deltaic" and "delta" as a Python data source, which reads, appends to and overwrites tables by
path in any Spark session.

PySpark finds the data source through the packages `pyspark_deltaic` and `pyspark_delta`. Its code runs in
Python workers of the driver and the executors. They do not have the state of the user's process: settings of
`deltaic.configure` and LogStores of the user are missing there. Modules are imported in the methods that need
them, so that importing this module stays cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, DataSourceReader, DataSourceStreamReader

from deltaic.spark.portable.shipping import WorkerObject

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


# PySpark's classes are unknown to the type checker
class DeltaicSource(WorkerObject, DataSource):  # type: ignore[misc]
    """The data source of one DataFrame. `version`: the version that is read, which `schema` sets; Spark
    stores this object with the DataFrame."""

    version: int | None = None

    def __init__(self, options: dict[str, str]) -> None:
        # A plain dict can be unpickled without PySpark, so that `_opened` of `shipping` can report that
        # deltaic is missing.
        self.options = dict(options)

    @classmethod
    def name(cls) -> str:
        return "deltaic"

    def schema(self) -> StructType:
        from deltaic.spark.options import is_of_stream, without_stream_options
        from deltaic.spark.portable.reader import frame_schema, opened

        if is_of_stream(self.options):
            from deltaic.spark.portable.stream import stream_source

            snapshot, schema = stream_source(self.options, merging=True)
            self.version = snapshot.version
            return schema
        # Spark asks for the schema before it says if a stream or a batch reads the rows. A batch warns of
        # options of streams when it makes its reader.
        snapshot, read = opened(without_stream_options(self.options))
        self.version = snapshot.version
        return frame_schema(snapshot, read)

    def reader(self, schema: StructType) -> DataSourceReader:
        from deltaic.spark.portable.reader import DeltaReader

        return DeltaReader.of(self.options, self.version, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from deltaic.spark.portable.stream import DeltaStreamReader

        return DeltaStreamReader.of(self.options, self.version, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        from deltaic.spark.portable.writer import DeltaWriter

        return DeltaWriter.of(self.options, schema, overwrite)


class DeltaSource(DeltaicSource):
    """The data source under the name "delta", for sessions without a Delta jar."""

    @classmethod
    def name(cls) -> str:
        return "delta"
