"""What the statements of `deltaic.sql` need of a Spark session: its tables, queries, writes and times."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from deltaic.commands.write import Mode
from deltaic.engine.spark import settings
from deltaic.engine.spark.errors import named_errors
from deltaic.errors import InvalidArgumentError
from deltaic.relation.literal import lit
from deltaic.spark.views import path_of
from deltaic.sql.names import Name, Tables
from deltaic.table import DeltaTable, write

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def spark_sql(spark: Any, statement: str, args: Any = None, **parameters: Any) -> Any:
    """Spark's own `sql`, whatever stands in its place on this session."""
    return type(spark).sql(spark, statement, args, **parameters)


def moment_of(spark: Any, text: str) -> datetime:
    """SQL of a time, or of text that says one, as Spark understands it in the zone of the session -> UTC."""
    with named_errors():
        micros = spark_sql(spark, f"SELECT unix_micros(CAST(({text}) AS TIMESTAMP))").collect()[0][0]
    if micros is None:
        raise InvalidArgumentError("no time", found=text, expected="a timestamp")
    return _EPOCH + timedelta(microseconds=micros)


class SparkTables(Tables):
    """delta.`path` and temporary views; rows of statements are DataFrames.

    `definitions`: WITH and what follows it before the statement; `defined`: the names that it gives, in lower case."""

    def __init__(self, spark: Any, definitions: str = "", defined: Sequence[str] = ()) -> None:
        super().__init__(None, None)
        self._spark, self._definitions, self._defined = spark, definitions, defined

    def overwrites_partitions(self) -> bool:
        return settings.overwrites_partitions(self._spark)

    def opened(self, path: str, version: int | None = None, timestamp: Any = None) -> DeltaTable:
        moment = moment_of(self._spark, lit(timestamp)) if isinstance(timestamp, str) else timestamp
        return DeltaTable(path, version=version, timestamp=moment, spark=self._spark)

    def moment(self, text: str) -> Any:
        return moment_of(self._spark, lit(text))

    def rows(self, name: Name) -> Any:
        """A Delta table by its path or view, or whatever the session or the statement knows under the name."""
        if len(name.parts) == 1 and name.parts[0].lower() in self._defined:
            return self.query(f"SELECT * FROM {name}")
        path = path_of(self._spark, name)
        travels = name.version is not None or name.timestamp is not None
        if path is not None and (name.path is not None or travels):
            from deltaic.spark import read

            moment = None if name.timestamp is None else self.moment(name.timestamp)
            return read(self._spark, path, version=name.version, timestamp=moment)
        if travels:
            raise InvalidArgumentError("only a Delta table has versions", where=str(name))
        return self._spark.table(str(name))

    def query(self, text: str) -> Any:
        from deltaic.spark.statements import sql

        return sql(self._spark, f"{self._definitions} SELECT * FROM ({text})" if self._definitions else text)

    @property
    def evolves(self) -> bool:
        return settings.is_on(self._spark, settings.MERGE_SCHEMA)

    def insert(self, table: DeltaTable, rows: Any, mode: Mode, where: str | None) -> None:
        write(table, rows, mode=mode, where=where, schema_mode="merge" if self.evolves else None)

    def column_names(self, rows: Any) -> Sequence[str]:
        names: Sequence[str] = rows.columns
        return names

    def renamed(self, rows: Any, names: Sequence[str]) -> Any:
        return rows.toDF(*names)

    def _lookup(self, name: Name) -> Any:
        path = path_of(self._spark, name)
        if path is None:
            raise InvalidArgumentError("no Delta table", found=str(name), expected="delta.`path`, or a temporary view of a Delta table")
        return self.opened(path)
