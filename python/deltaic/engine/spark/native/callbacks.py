"""Calls from Spark's driver JVM to Python objects: one py4j proxy for all of them, reached through a few threads."""

from __future__ import annotations

import contextvars
import itertools
import threading
from dataclasses import dataclass
from typing import Any

from deltaic.engine.spark.native.driver_classes import FOR_STREAMS, PACKAGE, SOURCES

THREADS = 4
"""Maximum number of calls from the JVM that run at once, and of py4j connections they use; further calls wait."""

_lock = threading.Lock()


@dataclass(frozen=True, eq=False)
class _Counterpart:
    """`target`: the Python object of a Java object. `context`: the context variables of the thread that made it."""

    target: Any
    context: contextvars.Context


class Callbacks:
    """The Java classes of one gateway, and the Python objects that Java objects call. Threads and sessions share it."""

    def __init__(self, gateway: Any) -> None:
        self._counterparts: dict[str, _Counterpart] = {}
        self._tokens = itertools.count()
        self._gateway = gateway
        self._loader = gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader()
        self._classes: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._calls = self._made("Calls", _Proxy(self._counterparts), THREADS)

    @staticmethod
    def of(gateway: Any) -> Callbacks:
        """The one of a gateway, made at the first call."""
        with _lock:
            made: Callbacks | None = gateway.__dict__.get("_deltaic_callbacks")
            if made is None:
                made = gateway.__dict__["_deltaic_callbacks"] = Callbacks(gateway)
            return made

    def made(self, name: str, target: Any, spark: Any, *arguments: Any) -> Any:
        """A Java object of the class `name`, whose constructor takes `Calls`, the session, a token and `arguments`. It calls methods of
        `target`, which is kept as long as the JVM keeps the object."""
        for token in self._calls.released().split(","):
            self._counterparts.pop(token, None)
        token = str(next(self._tokens))
        self._counterparts[token] = _Counterpart(target, contextvars.copy_context())
        try:
            return self._made(name, self._calls, spark._jsparkSession, token, *arguments)
        except BaseException:
            del self._counterparts[token]
            raise

    def rule(self) -> Any:
        """The optimizer rule that resolves tables."""
        return self._made("PlanTables")

    def function(self, plan: Any) -> Any:
        """A table function that stands for an analysed plan."""
        return self._made("PlanFunction", plan)

    def selected(self, rows: Any, lines: str) -> Any:
        """A Java Dataset with columns of another one, as `Selected` takes them."""
        return self._made("Selected").of(rows, lines)

    def streaming(self, plan: Any) -> Any:
        """The analysed plan of a batch of a stream."""
        return self._made("StreamRows").of(plan)

    @property
    def count(self) -> int:
        """Number of Python objects that are kept for the JVM."""
        return len(self._counterparts)

    def _made(self, name: str, *arguments: Any) -> Any:
        with self._lock:
            if name not in self._classes:
                self._compile(*FOR_STREAMS if name in FOR_STREAMS else SOURCES)
        return self._classes[name](*arguments)

    def _compile(self, *names: str) -> None:
        """Classes that use each other are compiled in their order, each with a loader above that of the one before."""
        for name in names:
            if name not in self._classes:
                compiler = self._gateway.jvm.org.codehaus.janino.SimpleCompiler()
                compiler.setParentClassLoader(self._loader)
                compiler.cook((SOURCES | FOR_STREAMS)[name])
                self._loader = compiler.getClassLoader()
                self._classes[name] = _constructor(self._gateway, self._loader.loadClass(PACKAGE + name))


class _Proxy:
    """The Python side of `Calls`: the method named by the first argument, on the object of a token."""

    def __init__(self, counterparts: dict[str, _Counterpart]) -> None:
        self._counterparts = counterparts

    def apply(self, token: str, arguments: Any) -> Any:
        counterpart = self._counterparts[token]
        name, *rest = arguments
        # A context runs one call at a time: Spark may plan two scans at once.
        return counterpart.context.copy().run(getattr(counterpart.target, name), *rest)

    class Java:
        implements = ("java.util.function.BiFunction",)


def _constructor(gateway: Any, cls: Any) -> Any:
    """A function that makes objects of a class with one constructor."""
    constructor, listed = cls.getConstructors()[0], gateway.jvm.java.util.ArrayList

    def make(*arguments: Any) -> Any:
        given = listed()  # and not an array: py4j puts no proxy into one
        for argument in arguments:
            given.add(argument)
        return constructor.newInstance(given.toArray())

    return make
