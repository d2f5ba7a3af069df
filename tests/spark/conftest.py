"""Disables the sessions that a test has enabled before the next test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from collector import Collector

from spark_session import REMOTE, with_jvm

ENABLED = "_deltaic_enabled_session"


def application() -> Any:
    """What the sessions of a test share, None before the first: the context, or with Spark Connect their
    class."""
    if REMOTE in os.environ:
        return pytest.importorskip("pyspark.sql.connect.session").SparkSession
    return pytest.importorskip("pyspark").SparkContext._active_spark_context


@pytest.fixture(autouse=True)
def enabled_session_of_the_test_alone() -> Iterator[None]:
    """A session that was not enabled itself behaves like the one that was enabled last; this fixture restores
    the state before the test."""
    before = getattr(application(), ENABLED, None)
    yield
    if (active := application()) is not None:
        setattr(active, ENABLED, before)


@pytest.fixture
def session(spark: Any) -> Iterator[Any]:
    """The session of the tests, enabled, and afterwards as plain PySpark has it."""
    import deltaic.spark
    from deltaic.engine.spark.engine import SETTING

    deltaic.spark.enable(spark)
    yield spark
    delattr(spark, SETTING)
    for name in ("sql", "table"):
        spark.__dict__.pop(name, None)


@pytest.fixture
def session_of_the_test(spark: Any) -> Iterator[Any]:
    """A new enabled session, whose settings a test may change."""
    import deltaic.spark
    from deltaic.engine.spark.engine import SETTING

    own = spark.newSession()
    deltaic.spark.enable(own)
    yield own
    delattr(own, SETTING)


@pytest.fixture
def collector(session: Any, tmp_path: Path) -> Collector:
    return Collector(with_jvm(session), tmp_path)


@pytest.fixture
def catalog_of_the_test_alone(session: Any) -> Iterator[None]:
    """Tables and views that a test registers do not stay in the session catalog for the tests after it."""
    yield
    for table in session.catalog.listTables("default"):
        if not table.isTemporary:
            session.sql(f"DROP {'VIEW' if table.tableType == 'VIEW' else 'TABLE'} `{table.name}`")
