"""Functions over private interfaces of a Spark session: plans of DataFrames, Spark's parser, its session
catalog and Hadoop's settings.

Spark 4.1 to 4.3 have these interfaces under the same names. Spark Connect has none of them (`has_jvm`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_KEY_START = "deltaic "
"""Beginning of the text of the file index (`TableFiles` of `leaf_classes`) of rows of a table or of a change
feed."""
TABLE_KEY = f"{_KEY_START}table "
"""Beginning of that text for rows of a table."""
_AT_VERSION = re.compile(r" [0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12} (\d+) ")
"""Matches the table's id and the version in that text, for rows of one version."""
_CATALOG, _CLASSES = "_deltaic_session_catalog", "_deltaic_java_classes"


def has_jvm(spark: Any) -> bool:
    """True if Python reaches the session's JVM, False on Spark Connect."""
    return hasattr(spark, "_jsparkSession")


def spark_context(spark: Any) -> Any | None:
    """Returns the SparkContext of a session; None on Spark Connect."""
    return getattr(spark, "_sc", None)


def is_classic_frame(frame: Any) -> bool:
    """True if a DataFrame is an object of the JVM, False on Spark Connect."""
    return hasattr(frame, "_jdf")


def is_classic_column(value: Any) -> bool:
    """True if a value is a Column of the JVM; False for a Column of Spark Connect, and for any other
    value."""
    return hasattr(value, "_jc")


def logical_plan(frame: Any) -> Any:
    """Returns the plan of a DataFrame as its user wrote it (a Catalyst LogicalPlan)."""
    return frame._jdf.queryExecution().logical()


def analyzed_plan(frame: Any) -> Any:
    """Returns the plan of a DataFrame with names and types resolved (a Catalyst LogicalPlan)."""
    return frame._jdf.queryExecution().analyzed()


def locations_of(frame: Any) -> frozenset[str]:
    """Returns the locations of the tables and files that a DataFrame reads, also in subqueries, without those
    of Delta tables at a version."""
    plan = analyzed_plan(frame)
    relations = [
        leaf.relation()
        for each in (plan, *_items(plan.subqueriesAll()))
        for leaf in _items(each.collectLeaves())
        if leaf.nodeName() == "LogicalRelation"
    ]
    return frozenset(
        location
        for relation in relations
        if relation.getClass().getSimpleName() == "HadoopFsRelation"
        for location in str(relation.location().rootPaths().mkString("\0")).split("\0")
    )


def followed_table(frame: Any) -> tuple[str, list[str]] | None:
    """Returns the location of the table that a DataFrame follows, and the names of its columns in the
    DataFrame. Returns None unless the DataFrame has all rows of one table, and columns of it under their own
    names: it may be an alias, a temporary view or a selection of those, as in `SELECT x.id FROM v x`."""
    plan = analyzed_plan(frame)
    columns = _items(plan.output())
    names = [str(column.name()) for column in columns]
    ids = [column.exprId().id() for column in columns]
    while plan.nodeName() in ("SubqueryAlias", "View", "Project"):
        if plan.nodeName() == "View" and not plan.isTempView():
            return None
        if plan.nodeName() == "Project":
            sources = {each.exprId().id(): _source_of(each) for each in _items(plan.projectList())}
            ids = [sources.get(each) for each in ids]
        plan = plan.child()
    if not _index_key(plan).startswith(TABLE_KEY):
        return None
    location = _location(plan)
    own_names = {each.exprId().id(): str(each.name()) for each in _items(plan.output())}
    followed = [own_names.get(each) for each in ids]
    if (
        not location
        or None in followed
        or any(name.lower() != str(own).lower() for name, own in zip(names, followed, strict=True))
    ):
        return None
    return location, names


@dataclass(frozen=True)
class ViewedTable:
    """The Delta table whose rows a view shows, without joining, grouping, sorting or limiting them.
    `location`: "" for a table at a version. `version`: None for the newest one. `is_filtered`: True if a
    condition leaves out rows."""

    location: str
    version: str | None
    is_filtered: bool


def viewed_table(frame: Any) -> ViewedTable | None:
    """Returns the table of a view that has only columns and conditions, None for any other query."""
    plan, is_filtered = analyzed_plan(frame), False
    while plan.nodeName() in ("SubqueryAlias", "View", "Project", "Filter"):
        is_filtered |= plan.nodeName() == "Filter"
        plan = plan.child()
    key = _index_key(plan)
    if not key.startswith(TABLE_KEY):
        return None
    at_version = None if (location := _location(plan)) else _AT_VERSION.search(key)
    return ViewedTable(location, None if at_version is None else at_version[1], is_filtered)


def reads_delta(frame: Any) -> bool:
    """True if a DataFrame reads a Delta table, or the changes of one."""
    return any(
        _index_key(leaf).startswith(_KEY_START) for leaf in _items(analyzed_plan(frame).collectLeaves())
    )


def _index_key(plan: Any) -> str:
    """Returns the text of the file index that a leaf of a plan reads, "" for any other plan."""
    relation = plan.relation() if plan.nodeName() == "LogicalRelation" else None
    if relation is None or relation.getClass().getSimpleName() != "HadoopFsRelation":
        return ""
    return str(relation.location().toString())


def _location(plan: Any) -> str:
    return str(plan.relation().location().rootPaths().mkString("\0"))


def _items(sequence: Any) -> list[Any]:
    """Returns the elements of a Scala Seq."""
    return [sequence.apply(at) for at in range(sequence.size())]


def _source_of(expression: Any) -> int | None:
    """Returns the id of the column that an expression of a Project shows without changing it; None for a
    computed value. A view casts each column to the type that it had when the view was made."""
    value = expression
    if value.nodeName() == "Alias":
        value = value.child()
    if value.nodeName() == "Cast" and value.dataType().sameType(value.child().dataType()):
        value = value.child()
    is_column = value.getClass().getSimpleName() == "AttributeReference"
    return value.exprId().id() if is_column else None


def qualified_columns(frame: Any) -> list[tuple[str, str]]:
    """Returns alias and name of each column that kept an alias from below other operations: (`s`, `id`) for
    `df.alias("s").withColumn(...)`. The columns of a join may have several aliases."""
    plan = analyzed_plan(frame)
    if "SubqueryAlias" not in plan.toString():  # then the columns, which may be many, need not be asked
        return []
    output = plan.output()
    columns = [output.apply(at) for at in range(output.size())]
    return [
        (str(column.qualifier().last()), str(column.name()))
        for column in columns
        if column.qualifier().nonEmpty()
    ]


def qualified(spark: Any, frame: Any, parts: Sequence[str]) -> Any:
    """Returns the DataFrame of a table with the table's name on its columns. With the parts `spark_catalog`,
    `default` and `t`, a column `c` is also `t.c`, `default.t.c` and `spark_catalog.default.t.c`."""
    from pyspark.sql import DataFrame

    of_plans = "org.apache.spark.sql.catalyst"
    place = java_class(spark, "org.apache.spark.api.python.PythonUtils").toSeq(list(parts[:-1]))
    name = java_class(spark, f"{of_plans}.AliasIdentifier")(parts[-1], place)
    plan = java_class(spark, f"{of_plans}.plans.logical.SubqueryAlias")(name, logical_plan(frame))
    datasets = java_class(spark, "org.apache.spark.sql.classic.Dataset")
    return DataFrame(datasets.ofRows(spark._jsparkSession, plan), spark)


def same_frame(frame: Any) -> Any:
    """Returns another DataFrame of the same plan. A DataFrame keeps the first optimized plan that is made for
    it, and with it the versions of the tables that it reads. On a copy of the user's DataFrame a command can
    optimize without fixing what the user's own later `collect` reads."""
    from pyspark.sql import DataFrame

    spark = frame.sparkSession
    datasets = java_class(spark, "org.apache.spark.sql.classic.Dataset")
    return DataFrame(datasets.ofRows(spark._jsparkSession, analyzed_plan(frame)), spark)


def optimized_plan(frame: Any) -> Any:
    """Returns the plan of a DataFrame after Spark's optimizer (a Catalyst LogicalPlan)."""
    return frame._jdf.queryExecution().optimizedPlan()


def is_local(frame: Any) -> bool:
    """True if Spark's optimizer has already computed the rows on the driver, so that no job is needed to
    read them."""
    return str(optimized_plan(frame).getClass().getSimpleName()) == "LocalRelation"


def parsed_expression(spark: Any, text: str) -> Any:
    """Returns the Catalyst expression to which Spark parses a text."""
    return spark._jsparkSession.sessionState().sqlParser().parseExpression(text)


def expression_of(spark: Any, java_column: Any) -> Any:
    """Returns the Catalyst expression of a Column's Java object."""
    return spark._jsparkSession.expression(java_column)


def session_catalog(spark: Any) -> Any:
    """Returns the session's catalog of tables, views and functions (a Catalyst SessionCatalog), which is the
    same object in each call."""
    if (catalog := spark.__dict__.get(_CATALOG)) is None:
        catalog = spark.__dict__[_CATALOG] = spark._jsparkSession.sessionState().catalog()
    return catalog


def java_class(spark: Any, name: str) -> Any:
    """Returns a Java class as py4j shows it. It is looked up once, because py4j calls the JVM for each part
    of a name."""
    classes: dict[str, Any] = spark.__dict__.setdefault(_CLASSES, {})
    if name not in classes:
        classes[name] = getattr(spark._jvm, name)
    return classes[name]


def can_load(spark: Any, name: str) -> bool:
    """True if the session's JVM has a class of this name."""
    return bool(java_class(spark, "org.apache.spark.util.Utils").classIsLoadable(name))


def has_temporary_view(spark: Any, name: str) -> bool:
    """True if the session has a temporary view of this name. Always False on Spark Connect, which has no
    interface for it."""
    return has_jvm(spark) and bool(session_catalog(spark).getRawTempView(name).isDefined())


def table_functions(spark: Any) -> Any:
    """Returns the session's table functions (a Catalyst TableFunctionRegistry)."""
    return spark._jsparkSession.sessionState().tableFunctionRegistry()


def hadoop_settings(spark: Any) -> Any:
    """Returns a copy of the session's Hadoop Configuration."""
    return spark._jsparkSession.sessionState().newHadoopConf()


def delete_folder(spark: Any, location: str) -> None:
    """Deletes a folder with all its files by Hadoop's file system. A missing folder is no error."""
    path = spark._jvm.org.apache.hadoop.fs.Path(location)
    path.getFileSystem(hadoop_settings(spark)).delete(path, True)


def caches_rows(spark: Any) -> bool:
    """True if the application has cached the rows of a DataFrame."""
    return not spark._jsparkSession.sharedState().cacheManager().isEmpty()


def in_own_session(spark: Any, frame: Any, settings: Mapping[str, str]) -> Any:
    """Returns the rows as a DataFrame of a clone of the session, in which these settings are changed. A job
    of the clone completes the user's Observations of the rows, too."""
    from pyspark.sql import DataFrame, SparkSession

    session = spark._jsparkSession.cloneSession()
    for name, value in settings.items():
        session.conf().set(name, value)
    field = _observations_field(spark)
    waiting = field.get(spark._jsparkSession.observationManager())
    if not waiting.isEmpty():
        field.get(session.observationManager()).putAll(waiting)
    datasets = getattr(spark._jvm, "org.apache.spark.sql.classic.Dataset")
    return DataFrame(datasets.ofRows(session, logical_plan(frame)), SparkSession(spark.sparkContext, session))


def _observations_field(spark: Any) -> Any:
    """Returns the field of a session's manager with the Observations that wait for a job of the session (a
    ConcurrentHashMap), as a java.lang.reflect.Field. The gateway keeps it: to find it takes many calls."""
    kept = spark.sparkContext._gateway.__dict__
    if (field := kept.get("_deltaic_observations")) is None:
        manager = spark._jsparkSession.observationManager()
        field = kept["_deltaic_observations"] = manager.getClass().getDeclaredField("observations")
        field.setAccessible(True)
    return field
