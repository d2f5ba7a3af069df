"""Records what users set on PySpark's readers and writers of DataFrames and streams, which do not show it
themselves."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from deltaic.engine.spark.engine import enabled_as, session_of
from deltaic.plan.nodes import TableRead
from deltaic.spark import patches

FORMATS = frozenset({"delta", "deltaic"})
"""Names of the format, in lower case."""
_ENDS_OF_CHANGES = ("startingversion", "startingtimestamp", "endingversion", "endingtimestamp")
"""Options, in lower case, that begin and end the range of a change feed."""
_STATE = "_deltaic_state"
"""Attribute of a reader or writer: its `BuilderState`."""
_FRAME = "_deltaic_frame"
"""Attribute of a writer: the DataFrame that it writes."""
_REPEATED = frozenset({"outputMode", "queryName", "trigger"})
"""Methods of a stream writer whose calls are repeated on the writer that starts the query."""


class BuilderState:
    """The format, options, mode and columns that were set on a DataFrame reader or writer before `load` or
    `save`.

    `properties`: table properties of DataFrameWriterV2. `refused`: the name of a call that a Delta table does
    not support, such as bucketBy. `streaming`: what `commitInfo` says of the query whose batch is written.
    `reads`: the tables that this query reads.
    `new`: a table by name that the query of a stream creates before its first batch, unless it exists.
    `calls`: name, positional and named arguments of each call of _REPEATED.
    """

    def __init__(self) -> None:
        self.format: str | None = None
        self.options: dict[str, Any] = {}
        self.mode: str | None = None
        self.partition_by: tuple[str, ...] = ()
        self.cluster_by: tuple[str, ...] = ()
        self.schema: Any = None
        self.properties: dict[str, str] = {}
        self.refused: str | None = None
        self.streaming: dict[str, Any] | None = None
        self.reads: tuple[TableRead, ...] = ()
        self.new: Any = None
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def put(self, more: Mapping[str, Any]) -> None:
        """Adds options. Names are case-insensitive, a later value replaces an earlier one, and None removes
        the option, unless it is an end of a range of changes: as in delta-spark, None is a wrong value then,
        and the range does not become longer."""
        for name, value in more.items():
            for known in [each for each in self.options if each.lower() == name.lower()]:
                del self.options[known]
            if value is None and name.lower() in _ENDS_OF_CHANGES:
                self.options[name] = "null"
            elif value is not None:
                self.options[name] = str(value).lower() if isinstance(value, bool) else str(value)

    def get(self, name: str) -> str | None:
        """Returns the value of an option, or None."""
        return next((value for each, value in self.options.items() if each.lower() == name.lower()), None)

    def has(self, name: str) -> bool:
        return self.get(name) is not None


def state_of(builder: Any) -> BuilderState:
    """Returns what was set on a reader or writer."""
    state: BuilderState = builder.__dict__.setdefault(_STATE, BuilderState())
    return state


def is_delta(builder: Any, format: str | None) -> bool:
    """True if the format of a reader or writer of an enabled session is one of FORMATS. `format`: an argument
    of `load` or `save`, which replaces the one that was set."""
    spark = session_of(builder)
    if enabled_as(spark) is None:
        return False
    name = format or state_of(builder).format or spark.conf.get("spark.sql.sources.default", "parquet")
    return str(name).lower() in FORMATS


def frame_of_writer(writer: Any) -> Any:
    """Returns the DataFrame that a writer writes."""
    return writer.__dict__.get(_FRAME) or writer._df


def names_of(columns: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns the names of an argument list, which may be one list of names."""
    return tuple(columns[0]) if len(columns) == 1 and isinstance(columns[0], (list, tuple)) else columns


def record_frames(frames: Any, name: str) -> None:
    """Replaces the property `write` or `writeStream` of a class of DataFrames, so that `frame_of_writer` has
    the DataFrame. A writer of Spark Connect itself has only the plan."""

    def recording(original: Any) -> Any:
        @functools.wraps(original.fget)
        def writer(self: Any) -> Any:
            new_writer = original.fget(self)
            new_writer.__dict__[_FRAME] = self
            return new_writer

        return property(writer, doc=original.__doc__)

    patches.wrap(frames, name, recording)


def record_calls(builders: Any, *names: str) -> None:
    """Replaces methods of a class of readers or writers, so that `state_of` has what they set. `names`: those
    of _NOTES and _REPEATED."""
    for name in names:
        patches.wrap(builders, name, functools.partial(_recording, name))


def _recording(name: str, original: Any) -> Any:
    @functools.wraps(original)
    def call(self: Any, *args: Any, **named: Any) -> Any:
        state = state_of(self)
        if name in _NOTES:
            _NOTES[name](state, *args, **named)
        if name in _REPEATED:
            state.calls.append((name, args, named))
        return original(self, *args, **named)

    return call


def note_function(state: BuilderState, *args: Any, **named: Any) -> None:
    """Sets a format that is not Delta's, because the user's function writes the rows, even if the session's
    default format is delta."""
    state.format = "foreach"


# The parameters of these functions have the names of PySpark's, as they may be passed by name.


def _format(state: BuilderState, source: str) -> None:
    state.format = source


def _option(state: BuilderState, key: str, value: Any) -> None:
    state.put({key: value})


def _options(state: BuilderState, **options: Any) -> None:
    state.put(options)


def _schema(state: BuilderState, schema: Any) -> None:
    state.schema = schema


def _mode(state: BuilderState, saveMode: str | None) -> None:
    state.mode = saveMode or state.mode


def _output_mode(state: BuilderState, outputMode: str) -> None:
    state.mode = outputMode


def _partition_by(state: BuilderState, *columns: Any) -> None:
    state.partition_by = names_of(columns)


def _cluster_by(state: BuilderState, *columns: Any) -> None:
    state.cluster_by = names_of(columns)


def _bucket_by(state: BuilderState, *args: Any, **named: Any) -> None:
    state.refused = "bucketBy"


def _sort_by(state: BuilderState, *args: Any, **named: Any) -> None:
    state.refused = state.refused or "sortBy"


_NOTES: dict[str, Callable[..., None]] = {
    "format": _format,
    "option": _option,
    "options": _options,
    "schema": _schema,
    "mode": _mode,
    "outputMode": _output_mode,
    "partitionBy": _partition_by,
    "clusterBy": _cluster_by,
    "bucketBy": _bucket_by,
    "sortBy": _sort_by,
    "foreach": note_function,
}
"""Method of a reader or writer -> the function that records its call."""
