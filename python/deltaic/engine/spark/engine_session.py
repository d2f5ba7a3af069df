"""`EngineSession`, the Spark session that the modules of the engine work with. They take it in place of the
engine, so that no module imports `engine`, which imports them all."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from deltaic.engine.exporters import rows_of
from deltaic.engine.source import table_reads
from deltaic.engine.spark.native.jvm import Jvm
from deltaic.engine.spark.native.session import (
    analyzed_plan,
    is_classic_frame,
    is_local,
    locations_of,
    optimized_plan,
    same_frame,
)
from deltaic.engine.spark.read_path import ReadPath
from deltaic.plan.nodes import TableRead

ROWS_SETTING = "spark.deltaic.driverRows"
"""Setting: maximum number of rows that a command collects to the driver, where it then groups, joins and
writes them; 0: none. More rows stay in Spark's tasks."""
MOST_ROWS = 5_000
"""Default of ROWS_SETTING. Each rule of Spark's optimizer visits all rows that are part of a plan: with
40,000 rows a MERGE takes a third longer than one whose rows all stay in tasks."""


@dataclass(frozen=True)
class EngineSession:
    """A Spark session and its read path."""

    spark: Any
    read_path: ReadPath

    @property
    def is_native(self) -> bool:
        """True if Spark's driver interfaces are used."""
        return self.read_path.is_native

    @cached_property
    def jvm(self) -> Jvm:
        """Spark's interfaces in the JVM, created by the first use."""
        return Jvm(self.spark)

    @property
    def plans_tables(self) -> bool:
        """True if a leaf of a table has been replaced by a scan in this session, so that leaves work here."""
        return self.is_native and "jvm" in vars(self) and self.jvm.plans_tables

    @property
    def max_driver_rows(self) -> int:
        """Maximum number of rows that a command may collect to the driver; 0 on the public path."""
        return int(self.spark.conf.get(ROWS_SETTING, str(MOST_ROWS))) if self.is_native else 0

    def default_of(self, setting: str) -> str | None:
        """Returns the value of a setting that is not set; None if Spark does not know it. Spark is asked once
        for each setting."""
        from pyspark.errors import PySparkException

        if setting not in self._defaults:
            try:
                self._defaults[setting] = self.spark.conf.get(setting)
            except PySparkException:
                self._defaults[setting] = None
        return self._defaults[setting]

    @cached_property
    def _defaults(self) -> dict[str, str | None]:
        return {}

    def same_frame(self, frame: Any) -> Any:
        """Returns another DataFrame of the same plan, or on the public path, which keeps no plan, the
        frame."""
        return self.read_path.planned("another frame of a plan", lambda: same_frame(frame), lambda: frame)

    def reads_of(self, data: Any) -> tuple[TableRead, ...]:
        """Returns the tables from which rows come that a caller passes. For a DataFrame these are the tables
        that it reads, also in subqueries, without Delta tables at a version; the public path, which keeps no
        plan, knows none."""
        if not is_classic_frame(data):
            return table_reads(rows_of(data))
        locations = self.read_path.planned(
            "which tables rows come from", lambda: locations_of(data), frozenset[str]
        )
        return tuple(map(TableRead, locations))

    def size_of(self, frame: Any) -> int | None:
        """Returns Spark's estimate of a frame's bytes; None on the public path."""
        return self.read_path.planned(
            "the size of rows", lambda: int(str(optimized_plan(frame).stats().sizeInBytes())), lambda: None
        )

    def is_local(self, frame: Any) -> bool:
        """True if the frame's rows are on the driver already, so that no job is needed to read them."""
        return self.read_path.planned("where rows lie", lambda: is_local(frame), lambda: False)

    def has_few_rows(self, frame: Any) -> bool:
        """True if the frame's plan limits the number of rows, as LIMIT does, to at most `max_driver_rows`."""

        def native() -> bool:
            max_rows = optimized_plan(frame).maxRows()
            return bool(max_rows.isDefined()) and int(str(max_rows.get())) <= self.max_driver_rows

        return self.read_path.planned("how many rows there are", native, lambda: False)

    def is_deterministic(self, frame: Any) -> bool:
        """True if the frame has the same rows each time it is computed."""
        return self.read_path.planned(
            "whether rows are the same each time",
            lambda: bool(analyzed_plan(frame).deterministic()),
            lambda: False,
        )
