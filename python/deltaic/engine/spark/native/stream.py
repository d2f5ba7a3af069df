"""Makes a table a streaming source of Spark: the Python side of Spark's interface `Source`, and a streaming
DataFrame over it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltaic.engine.spark import settings
from deltaic.engine.spark.errors import java_error_text
from deltaic.engine.spark.native.jvm import Jvm
from deltaic.errors import DeltaError
from deltaic.log.stream_limits import MAX_FILES
from deltaic.log.stream_offset import StreamOffset

if TYPE_CHECKING:
    from deltaic.log.schema_log import SchemaLog
    from deltaic.log.stream import TableStream
    from deltaic.log.stream_files import StreamFiles
    from deltaic.log.stream_options import StreamOptions

_STREAMING = "org.apache.spark.sql.execution.streaming."
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\] ?")


@dataclass(eq=False)
class _Query:
    """State of one query over a source. `is_bounded`: True if the query reads the available data and ends.
    `until`: the end of such a query, once it is known."""

    stream: TableStream
    is_bounded: bool = False
    until: StreamOffset | None = None

    def latest(self, start: str | None, all_available: bool) -> StreamOffset:
        stream = self.stream
        if start is None and stream.options.start == "latest":
            # Stored with an empty first batch: a batch of rows without a known start could not run again.
            return stream.start()
        at = stream.start() if start is None else stream.parse(start)
        if self.is_bounded and self.until is None:
            self.until = stream.end(at)
        return stream.next(at, None if all_available else stream.options.limits, self.until)


class StreamSource:
    """The Python side of `TableStream` of `driver_classes`, which calls these methods by their Java names.
    The argument `query` of each is the thread of the query, because several queries may read one DataFrame.

    `opened`: opens the table for a query. `frame_of`: returns a DataFrame of the files of a batch. `token`:
    the number by which the Java object calls this one. `stream`: the table as it was when the DataFrame was
    made."""

    def __init__(
        self,
        jvm: Jvm,
        stream: TableStream,
        opened: Callable[[], TableStream],
        frame_of: Callable[[StreamFiles], Any],
    ) -> None:
        self._jvm, self._opened, self._frame_of = jvm, opened, frame_of
        self._queries: dict[str, _Query] = {}
        self.token = ""
        self.stream = stream

    def _query(self, query: str) -> _Query:
        if query not in self._queries:
            stream = self._opened()
            if (log := stream.schema_log) is not None:
                spark = self._jvm.spark
                root, number = _place_in_checkpoint(self._jvm, query, self.token)
                if not settings.is_on(spark, settings.SCHEMA_LOG_ANYWHERE):
                    log.check_below(root)
                log.source = f"{root}/sources/{number}"
                if not settings.is_off(spark, settings.SCHEMA_LOG_OF_ANY_SOURCE):
                    log.check_source()
                checkpoint = self._jvm.get("java.util.Objects").hashCode(log.source)
                log.allow(settings.changes_of_checkpoint(spark, checkpoint))
            self._queries[query] = _Query(stream)
        return self._queries[query]

    def latestOffset(self, query: str, start: str | None, all_available: bool) -> str:
        """Returns the end offset of the next batch as JSON; the start itself if there is nothing new."""
        return str(self._answer(lambda: self._query(query).latest(start, all_available).json()))

    def getBatch(self, query: str, start: str | None, end: str) -> Any:
        """Returns the analysed plan of the rows between two offsets (JSON)."""
        return self._answer(lambda: self._batch(self._query(query).stream, start, end))

    def _batch(self, stream: TableStream, start: str | None, end: str) -> Any:
        last = stream.parse(end)
        first = stream.first(last) if start is None else stream.parse(start)
        frame = self._frame_of(stream.batch(first, last))
        return self._jvm.callbacks.streaming(frame._jdf.queryExecution().analyzed())

    def commit(self, query: str, end: str) -> str:
        """Records that the query has completed the batch that ends at this offset."""
        stream = self._query(query).stream
        return str(self._answer(lambda: stream.commit(stream.parse(end))))

    def bound(self, query: str) -> str:
        """Bounds the query, which reads the available data and ends (`Trigger.AvailableNow`): its next call
        of `latestOffset` fixes the end, and later versions are left out."""

        def bounded() -> None:
            self._query(query).is_bounded = True

        return str(self._answer(bounded))

    def stop(self, query: str) -> None:
        self._queries.pop(query, None)

    @staticmethod
    def _answer(compute: Callable[[], Any]) -> Any:
        """Returns the result of `compute`, or the text `!CONDITION SQLSTATE message` of its error, from which
        the JVM raises an exception."""
        try:
            return compute()
        except DeltaError as error:
            return "!" + java_error_text(error, _untagged(error))


class _BatchCall:
    """The Python side of `BatchFunction` of `driver_classes`. `write_batch`: a function of the batch's
    DataFrame and number."""

    def __init__(self, spark: Any, write_batch: Callable[[Any, int], None]) -> None:
        self._spark, self._write_batch = spark, write_batch

    def apply(self, rows: Any, number: int) -> Any:
        """Writes a batch. Returns None, or an error from which the JVM raises an exception: a text for
        `Calls.fail`, or the Java exception of an error of Spark. Any other error is raised."""
        from pyspark.sql import DataFrame, SparkSession

        session = SparkSession(self._spark.sparkContext, rows.sparkSession())
        try:
            self._write_batch(DataFrame(rows, session), number)
        except DeltaError as error:
            return java_error_text(error, _untagged(error), default=None)
        except Exception as error:
            java_exception = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
            if java_exception is None:
                raise
            return java_exception
        return None

    class Java:
        implements = ("java.util.function.BiFunction",)


def write_batches(jvm: Jvm, writer: Any, write_batch: Callable[[Any, int], None]) -> Any:
    """Sets the function that writes the batches of a stream, like `writer.foreachBatch(write_batch)`, and
    returns the writer. An error of the function ends the query like an error of a sink of Spark: the query's
    exception has the condition STREAM_FAILED and the error's message."""
    writer._jwrite.foreachBatch(jvm.callbacks.batch_function(_BatchCall(jvm.spark, write_batch)))
    return writer


def _untagged(error: DeltaError) -> str:
    return _CONDITION.sub("", str(error.args[0]), count=1)


def schema_logs(jvm: Jvm, frame: Any) -> list[tuple[SchemaLog, str]]:
    """Returns the schema log and the table's location of each table that a streaming DataFrame follows with a
    schema log."""
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    sources = [
        leaf.source()
        for leaf in map(leaves.apply, range(leaves.size()))
        if leaf.nodeName() == "StreamingExecutionRelation"
    ]
    tokens = dict.fromkeys(each.token() for each in sources if _is_table(each))
    streams = [jvm.callbacks.target(token).stream for token in tokens]
    return [
        (stream.schema_log, stream.snapshot.location) for stream in streams if stream.schema_log is not None
    ]


def stream_frame(jvm: Jvm, source: StreamSource, schema: Any) -> Any:
    """Returns a streaming DataFrame of `source` with the columns of `schema` (a pyspark StructType)."""
    from pyspark.sql import DataFrame

    spark, stream = jvm.spark, source.stream
    limit = _read_limit(jvm, stream.options)
    java = jvm.callbacks.create(
        "TableStream", source, spark, jvm.schema(schema.json()), stream.snapshot.location, limit
    )
    source.token = java.token()
    attributes = spark.createDataFrame([], schema)._jdf.queryExecution().analyzed().output()
    relation = _first_class(
        jvm, _STREAMING + "runtime.StreamingExecutionRelation", _STREAMING + "StreamingExecutionRelation"
    )
    arguments = [java, attributes, jvm.none]
    if relation.getConstructors()[0].getParameterCount() == 5:
        # From Spark 4.2 on, the node has the name of the source, which only users assign.
        arguments.append(jvm.companion("org.apache.spark.sql.catalyst.streaming.Unassigned"))
    node = _construct(jvm, relation, [*arguments, spark._jsparkSession])
    return DataFrame(
        jvm.companion("org.apache.spark.sql.classic.Dataset").ofRows(spark._jsparkSession, node), spark
    )


def _place_in_checkpoint(jvm: Jvm, query: str, token: str) -> tuple[str, int]:
    """Returns the root of a query's checkpoint and the number of a source of the query. `query`: the query's
    thread. Spark gives the source the folder sources/number; by it, delta-spark knows to which source a
    schema log belongs."""
    executions = [each.streamingQuery() for each in jvm.spark._jsparkSession.streams().active()]
    (execution,) = (each for each in executions if str(each.queryExecutionThread().getId()) == query)
    sources, tokens = execution.sources(), []
    for source in map(sources.apply, range(sources.size())):
        known = source.token() if _is_table(source) else source
        tokens += [] if known in tokens else [known]
    return str(execution.resolvedCheckpointRoot()), tokens.index(token)


def _is_table(source: Any) -> bool:
    """True if a Java source of a streaming query is a table."""
    return bool(source.getClass().getSimpleName() == "TableStream")


def _read_limit(jvm: Jvm, options: StreamOptions) -> Any:
    """Returns the `ReadLimit` of a batch, which Spark shows in the query's progress. It has no other effect:
    `StreamSource` reads the options itself."""
    read_limit = jvm.get("org.apache.spark.sql.connector.read.streaming.ReadLimit")
    limits = []
    if options.max_files is not None or options.max_bytes is None:
        limits.append(read_limit.maxFiles(options.max_files or MAX_FILES))
    if options.max_bytes is not None:
        limits.append(read_limit.maxBytes(options.max_bytes))
    return limits[0] if len(limits) == 1 else read_limit.compositeLimit(jvm.array(read_limit, *limits))


def _construct(jvm: Jvm, kind: Any, arguments: list[Any]) -> Any:
    return kind.getConstructors()[0].newInstance(jvm.java_list(arguments).toArray())


def _first_class(jvm: Jvm, *names: str) -> Any:
    """Returns the `java.lang.Class` of the first name that exists, because Spark has moved the class to
    another package."""
    from py4j.protocol import Py4JJavaError

    for name in names[:-1]:
        try:
            return jvm.type_of(name)
        except Py4JJavaError:
            continue
    return jvm.type_of(names[-1])
