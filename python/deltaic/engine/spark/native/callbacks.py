"""Calls from Spark's driver JVM to Python objects, all through one py4j proxy and a few threads. Other
modules create the Java objects here, by the methods of `Callbacks`."""

from __future__ import annotations

import contextvars
import itertools
import threading
from dataclasses import dataclass
from typing import Any

from deltaic.engine.spark.native.driver_classes import FOR_STREAMS, PACKAGE, SOURCES

THREADS = 4
"""Maximum number of calls from the JVM that run at once, and so of their py4j connections; further calls
wait."""

_lock = threading.Lock()


@dataclass(frozen=True, eq=False)
class _Counterpart:
    """The Python side of a Java object. `target`: the object whose methods the Java object calls. `context`:
    the context variables of the thread that created the object; calls run with a copy of them."""

    target: Any
    context: contextvars.Context


class Callbacks:
    """The compiled Java classes of one py4j gateway, and the Python objects that Java objects call. All
    threads and sessions of the gateway share it."""

    def __init__(self, gateway: Any) -> None:
        self._counterparts: dict[str, _Counterpart] = {}
        self._tokens = itertools.count()
        self._gateway = gateway
        self._loader = gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader()
        self._classes: dict[str, Any] = {}
        self._shared: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._calls = self._create("Calls", _Proxy(self._counterparts), THREADS)

    @staticmethod
    def of(gateway: Any) -> Callbacks:
        """Returns the `Callbacks` of a gateway; the first call creates them."""
        with _lock:
            callbacks: Callbacks | None = gateway.__dict__.get("_deltaic_callbacks")
            if callbacks is None:
                callbacks = gateway.__dict__["_deltaic_callbacks"] = Callbacks(gateway)
            return callbacks

    def create(self, name: str, target: Any, spark: Any, *arguments: Any) -> Any:
        """Creates a Java object of the class `name` of `driver_classes`, which calls methods of `target`. The
        class's constructor takes `Calls`, the session, a token and `arguments`. `target` is referenced until
        the JVM has collected the object."""
        for token in self._calls.released().split(","):
            self._counterparts.pop(token, None)
        token = str(next(self._tokens))
        self._counterparts[token] = _Counterpart(target, contextvars.copy_context())
        try:
            return self._create(name, self._calls, spark._jsparkSession, token, *arguments)
        except BaseException:
            del self._counterparts[token]
            raise

    def rule(self) -> Any:
        """Creates the optimizer rule that replaces the leaves of tables by scans."""
        return self._create("PlanTables")

    def tracked_format(self, names: str) -> Any:
        """Creates the file format of the leaf of a table with row tracking. `names`: its further fields of
        `_metadata`, separated by spaces."""
        return self._create("TrackedFormat", names)

    def function(self, plan: Any) -> Any:
        """Creates a table function without arguments whose result is an analysed plan."""
        return self._create("PlanFunction", plan)

    def selected(self, rows: Any, lines: str) -> Any:
        """Returns a Java Dataset with columns of the Dataset `rows`. `lines`: the columns, as `Selected` of
        `driver_classes` takes them."""
        return self._one("Selected").of(rows, lines)

    def directories(self, rows: Any, statuses: Any, positions: bytes | None, predicate: Any | None) -> Any:
        """Returns a Seq[PartitionDirectory] of files, by `FileListing` of `listing_classes`."""
        return self._one("FileListing").of(rows, statuses, positions, predicate)

    def filter_trees(self, filters: Any) -> str:
        """Returns a Seq of Catalyst expressions as JSON, by `FilterTrees` of `listing_classes`."""
        return str(self._one("FilterTrees").of(filters))

    def streaming(self, plan: Any) -> Any:
        """Returns the analysed plan with its leaves marked as those of a stream."""
        return self._create("StreamRows").of(plan)

    def target(self, token: str) -> Any:
        """Returns the Python object that the Java object with this token calls."""
        return self._counterparts[token].target

    def batch_function(self, python: Any) -> Any:
        """Creates the function of `foreachBatch` that calls a py4j proxy for each batch."""
        return self._create("BatchFunction", python)

    @property
    def count(self) -> int:
        """Number of Python objects that Java objects can call."""
        return len(self._counterparts)

    def _one(self, name: str) -> Any:
        """Returns the only object of a Java class without state; the first call creates it."""
        if name not in self._shared:
            self._shared[name] = self._create(name)
        return self._shared[name]

    def _create(self, name: str, *arguments: Any) -> Any:
        with self._lock:
            if name not in self._classes:
                self._compile(*FOR_STREAMS if name in FOR_STREAMS else SOURCES)
        return self._classes[name](*arguments)

    def _compile(self, *names: str) -> None:
        """Compiles classes in their order. The parent of a class's loader is the loader of the class before,
        so that a class can use the classes before it."""
        for name in names:
            if name not in self._classes:
                compiler = self._gateway.jvm.org.codehaus.janino.SimpleCompiler()
                compiler.setParentClassLoader(self._loader)
                compiler.cook((SOURCES | FOR_STREAMS)[name])
                self._loader = compiler.getClassLoader()
                self._classes[name] = _constructor(self._gateway, self._loader.loadClass(PACKAGE + name))


class _Proxy:
    """The Python side of `Calls`, the only py4j proxy: it calls the method that the first argument names, on
    the object of a token."""

    def __init__(self, counterparts: dict[str, _Counterpart]) -> None:
        self._counterparts = counterparts

    def apply(self, token: str, arguments: Any) -> Any:
        counterpart = self._counterparts[token]
        name, *rest = arguments
        try:
            # A copy, because a context runs only one call at a time, and Spark may plan two scans at once.
            return counterpart.context.copy().run(getattr(counterpart.target, name), *rest)
        except Exception as error:
            # `Calls` raises the Java exception of an error of Spark, such as one of a partition filter.
            if (java_exception := getattr(error, "_origin", None)) is None:
                raise
            return java_exception

    class Java:
        implements = ("java.util.function.BiFunction",)


def _constructor(gateway: Any, cls: Any) -> Any:
    """Returns a function that creates objects of a Java class with one constructor."""
    constructor, array_list = cls.getConstructors()[0], gateway.jvm.java.util.ArrayList

    def make(*arguments: Any) -> Any:
        # A Java List, because py4j cannot put a proxy into a Java array.
        java_arguments = array_list()
        for argument in arguments:
            java_arguments.add(argument)
        return constructor.newInstance(java_arguments.toArray())

    return make
