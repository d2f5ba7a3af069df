"""The formats "deltaic" and "delta" as a Python data source: reading, appending and overwriting by path, on any Spark session.

PySpark finds it by the packages `pyspark_deltaic` and `pyspark_delta`. It runs in Python workers of the driver and the executors, so
nothing of the user's process is there: neither its `configure()` nor a store of its own. Nothing heavy is imported before it is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, DataSourceReader, DataSourceStreamReader

from deltaic.spark.portable.shipping import WorkerObject

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class DeltaicSource(WorkerObject, DataSource):  # type: ignore[misc]  # PySpark's classes are unknown to the type checker
    """One use of the format. `schema()` pins the version: Spark keeps this object with the DataFrame."""

    version: int | None = None

    def __init__(self, options: dict[str, str]) -> None:
        # Not Spark's own dictionary: that one would need PySpark before this package can say what is missing.
        self.options = dict(options)

    @classmethod
    def name(cls) -> str:
        return "deltaic"

    def schema(self) -> StructType:
        from deltaic.spark.options import is_of_stream
        from deltaic.spark.portable.reader import opened, shown_schema

        if is_of_stream(self.options):
            from deltaic.spark.portable.stream import followed

            followed_version, schema = followed(self.options)
            self.version = followed_version.version
            return schema
        snapshot, read = opened(self.options)
        self.version = snapshot.version
        return shown_schema(snapshot, read)

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
