"""The SQL text of a Column for which Spark itself writes none: columns of a DataFrame (`frame.x`), lambdas, Python functions.

The tree of the Column is made anew of what has text: `frame.x` becomes `alias`.`x`, a lambda `(x, y) -> …`, a Python function the call of a
temporary function of the session. Spark must read the same tree in the text, or there is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from deltaic.errors import UnsupportedFeatureError
from deltaic.protocol.schema import quote_name

_FUNCTIONS = "_deltaic_python_functions"
_VARIABLE = "__deltaic_"
"""Before the names of lambda variables, so that no column of a table is hidden by one."""


class Origins:
    """Whose column a resolved Column is. `frames`: gives DataFrames, each with the alias by which a command knows its
    columns, None for none; asked again for a column that is not known yet, as a DataFrame may be made after a command has
    been begun. `spark`: the session that reads the text, the active one where it is None."""

    def __init__(self, frames: Callable[[], Iterable[tuple[Any, str | None]]] = tuple, spark: Any = None) -> None:
        self._frames, self.spark = frames, spark
        self._known: Mapping[int, set[tuple[str, ...]]] = {}

    def parts(self, attribute: Any, what: str) -> tuple[str, ...]:
        """The name of a resolved column, qualified. UnsupportedFeatureError where it is none of the DataFrames', or of two of them."""
        number = int(attribute.exprId().id())
        if number not in self._known:
            self._known = self._listed()
        found = self._known.get(number, set())
        if len(found) == 1:
            return next(iter(found))
        problem = "of another DataFrame" if not found else "of target and source alike"
        raise UnsupportedFeatureError(
            f"{what}: a column {problem}",
            found=str(attribute.name()),
            expected="a column of toDF() of this DeltaTable or of the source, col('alias.x'), or a string: an expression in SQL syntax",
        )

    def _listed(self) -> dict[int, set[tuple[str, ...]]]:
        known: dict[int, set[tuple[str, ...]]] = {}
        for frame, alias in self._frames():
            output = frame._jdf.queryExecution().analyzed().output()
            for index in range(output.size()):
                column = output.apply(index)
                parts = (str(column.name()),) if alias is None else (alias, str(column.name()))
                known.setdefault(int(column.exprId().id()), set()).add(parts)
        return known


class ColumnText:
    """Writes the text of one Column. `what`: the argument that it is, for messages."""

    def __init__(self, session: Any, origins: Origins, what: str) -> None:
        self._session, self._origins, self._what = session, origins, what
        self._lambdas: dict[str, str] = {}

    def of(self, expression: Any) -> str | None:
        """The text of a Catalyst expression, None where Spark reads another expression in it."""
        wanted = self._rebuilt(expression, self._said)
        text = self._text(wanted)
        parsed = self._parsed(text)
        return text if self._plain(parsed).equals(self._plain(wanted)) else None

    # --- trees

    def _parsed(self, text: str) -> Any:
        return self._session._jsparkSession.sessionState().sqlParser().parseExpression(text)

    def _rebuilt(self, node: Any, change: Callable[[Any], Any]) -> Any:
        from pyspark.sql.classic.column import _to_seq

        children = node.children()
        inner = [self._rebuilt(children.apply(index), change) for index in range(children.length())]
        return change(node.withNewChildren(_to_seq(self._session.sparkContext, inner)) if inner else node)

    def _said(self, node: Any) -> Any:
        """The node as the parser would make it."""
        kind = _kind(node)
        if kind == "AttributeReference":
            return self._column(self._origins.parts(node, self._what))
        if kind == "UnresolvedNamedLambdaVariable":
            return self._variable(tuple(f"{_VARIABLE}{part}" for part in _parts(node)))
        if kind == "GetStructField" and _kind(node.child()) in ("UnresolvedAttribute", "UnresolvedExtractValue"):
            return self._field(node)
        if kind == "Alias" and _kind(node.child()) == "UnresolvedExtractValue":  # frame["struct.field"]
            return node.child()
        if kind == "PythonUDF":
            return self._called(self._registered(node), node.children())
        return node

    def _column(self, parts: Sequence[str]) -> Any:
        return self._parsed(".".join(map(_quoted, parts)))

    def _variable(self, parts: Sequence[str]) -> Any:
        return self._parsed(f"f(x -> {'.'.join(map(_quoted, parts))})").arguments().apply(0).function()

    def _field(self, node: Any) -> Any:
        name = str(node.name().get())
        made = self._parsed("x['y']")
        literal = self._parsed("'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'")
        return made.withNewChildren(self._seq([node.child(), literal]))

    def _called(self, function: str, arguments: Any) -> Any:
        places = [arguments.apply(index) for index in range(arguments.length())]
        made = self._parsed(f"{function}({', '.join('NULL' for _ in places)})")
        return made.withNewChildren(self._seq(places)) if places else made

    def _seq(self, items: list[Any]) -> Any:
        from pyspark.sql.classic.column import _to_seq

        return _to_seq(self._session.sparkContext, items)

    def _plain(self, tree: Any) -> Any:
        """The tree with columns in the place of lambda variables: the parser takes every name in a lambda for a variable."""
        return self._rebuilt(tree, lambda node: self._column(_parts(node)) if _kind(node) == "UnresolvedNamedLambdaVariable" else node)

    # --- text

    def _text(self, tree: Any) -> str:
        def change(node: Any) -> Any:
            if _kind(node) != "LambdaFunction":
                return node
            given = node.arguments()
            named = [_quoted(_parts(given.apply(index))[0]) for index in range(given.length())]
            names = named[0] if len(named) == 1 else f"({', '.join(named)})"
            marker = f"{_VARIABLE}lambda{len(self._lambdas)}"
            self._lambdas[marker] = f"{names} -> {self._filled(str(node.function().sql()))}"
            return self._column((marker,))

        return self._filled(str(self._rebuilt(tree, change).sql()))

    def _filled(self, text: str) -> str:
        """The text with lambdas in the place of their markers."""
        return re.sub(rf"`?({_VARIABLE}lambda\d+)`?", lambda found: self._lambdas.get(found[1], found[0]), text)

    # --- Python functions

    def _registered(self, node: Any) -> str:
        """The name of the temporary function of the session that is this Python function, the same for the same function."""
        known: list[tuple[Any, str]] = self._session.__dict__.setdefault(_FUNCTIONS, [])
        function, kind = node.func(), node.evalType()
        for other, name in known:
            if other.func().equals(function) and other.evalType() == kind and other.dataType().equals(node.dataType()):
                return name
        name = f"{_VARIABLE}function{len(known)}"
        maker = self._session._jvm.org.apache.spark.sql.execution.python.UserDefinedPythonFunction
        made = maker(name, function, node.dataType(), kind, node.udfDeterministic(), *([] for _ in range(self._more_of_functions)))
        self._session._jsparkSession.udf().registerPython(name, made)
        known.append((node, name))
        return name

    @property
    def _more_of_functions(self) -> int:
        """Number of lists behind the maker of a Python function: two since Spark 4.3, for functions that Spark can write as expressions."""
        classes = self._session._jvm.java.lang.Class
        constructors = classes.forName("org.apache.spark.sql.execution.python.UserDefinedPythonFunction").getConstructors()
        return int(constructors[0].getParameterCount()) - 5


def _kind(node: Any) -> str:
    return str(node.nodeName())


def _parts(node: Any) -> tuple[str, ...]:
    parts = node.nameParts()
    return tuple(str(parts.apply(index)) for index in range(parts.length()))


def _quoted(name: str) -> str:
    return quote_name(name)
