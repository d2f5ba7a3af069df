"""The SQL text of a Column for which Spark itself writes none: columns of a DataFrame (`frame.x`), lambdas,
Python functions.

The tree of the Column is made anew of what has text: `frame.x` becomes `alias`.`x`, a lambda `(x, y) -> …`, a
Python function the call of a temporary function of the session. Spark must read the same tree in the text, or
there is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from deltaic.engine.spark.native.session import analyzed_plan, expression_of, parsed_expression
from deltaic.errors import DeltaError, InvalidArgumentError, UnsupportedFeatureError
from deltaic.sql_text import quote_name, spark_text

_FUNCTIONS = "_deltaic_python_functions"
_VARIABLE = "__deltaic_"
"""Before the names of lambda variables, so that no column of a table is hidden by one."""


class Origins:
    """Whose column a resolved Column is. `frames`: gives DataFrames, each with the alias by which a command
    knows its columns, None for none; asked again for a column that is not known yet, as a DataFrame may be
    made after a command has been begun. `spark`: the session that reads the text, the active one where it is
    None."""

    def __init__(self, frames: Callable[[], Iterable[tuple[Any, str | None]]] = tuple, spark: Any = None) -> None:
        self._frames, self.spark = frames, spark
        self._known: Mapping[int, set[tuple[str, ...]]] = {}

    def parts(self, attribute: Any, what: str) -> tuple[str, ...]:
        """The name of a resolved column, qualified. UnsupportedFeatureError where it is none of the
        DataFrames', or of two of them."""
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
            output = analyzed_plan(frame).output()
            for index in range(output.size()):
                column = output.apply(index)
                parts = (str(column.name()),) if alias is None else (alias, str(column.name()))
                known.setdefault(int(column.exprId().id()), set()).add(parts)
        return known


def text_of(column: Any, what: str, origins: Origins) -> str:
    """Returns SQL text of a Column: the text that Spark shows, if Spark parses it to the same expression;
    else a text built from its tree."""
    from pyspark.sql import SparkSession

    session = origins.spark or SparkSession.getActiveSession()
    if session is None:
        raise InvalidArgumentError("no Spark session is active", where=what)
    expression, text = _expression(session, column._jc)
    if (said := _as_written(session, expression, text)) is not None:
        return said
    try:
        made = ColumnText(session, origins, what).of(expression)
    except DeltaError:
        raise
    except Exception as error:  # whatever Spark's parser says of it: there is no text
        raise _no_text(what, text) from error
    if made is None:
        raise _no_text(what, text)
    return made


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
        return parsed_expression(self._session, text)

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
        return self._parsed(".".join(map(quote_name, parts)))

    def _variable(self, parts: Sequence[str]) -> Any:
        return self._parsed(f"f(x -> {'.'.join(map(quote_name, parts))})").arguments().apply(0).function()

    def _field(self, node: Any) -> Any:
        name = str(node.name().get())
        made = self._parsed("x['y']")
        literal = self._parsed(spark_text(name))
        return made.withNewChildren(self._seq([node.child(), literal]))

    def _called(self, function: str, arguments: Any) -> Any:
        places = [arguments.apply(index) for index in range(arguments.length())]
        made = self._parsed(f"{function}({', '.join('NULL' for _ in places)})")
        return made.withNewChildren(self._seq(places)) if places else made

    def _seq(self, items: list[Any]) -> Any:
        from pyspark.sql.classic.column import _to_seq

        return _to_seq(self._session.sparkContext, items)

    def _plain(self, tree: Any) -> Any:
        """The tree with columns in the place of lambda variables: the parser takes every name in a lambda for
        a variable."""
        return self._rebuilt(tree, lambda node: self._column(_parts(node)) if _kind(node) == "UnresolvedNamedLambdaVariable" else node)

    # --- text

    def _text(self, tree: Any) -> str:
        def change(node: Any) -> Any:
            if _kind(node) != "LambdaFunction":
                return node
            given = node.arguments()
            named = [quote_name(_parts(given.apply(index))[0]) for index in range(given.length())]
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
        """The name of the temporary function of the session that is this Python function, the same for the
        same function."""
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
        """Number of lists behind the maker of a Python function: two since Spark 4.3, for functions that
        Spark can write as expressions."""
        classes = self._session._jvm.java.lang.Class
        constructors = classes.forName("org.apache.spark.sql.execution.python.UserDefinedPythonFunction").getConstructors()
        return int(constructors[0].getParameterCount()) - 5


def _as_written(session: Any, expression: Any, text: str) -> str | None:
    try:
        parsed = parsed_expression(session, text)
        return text if parsed.equals(expression) or _are_same_structs(session, parsed, expression) else None
    except Exception:  # Spark's parser does not take the text
        return None


_DEEP = re.compile(r"(?:\b(?:or|and)\(){32}")


def _expression(session: Any, column: Any) -> tuple[Any, str]:
    """Spark's expression of a column, and its text; of long chains of ORs and ANDs as a tree of few
    levels."""
    made: Any = None
    failed: Exception | None = None
    try:
        made = expression_of(session, column)
        text = str(made.sql())
        if _DEEP.search(text) is None:
            return made, text
    except Exception as error:  # Spark's recursions end at some hundred levels
        failed = error
    flat = _balanced(session, column)
    if flat is None and failed is not None:
        raise failed
    made = made if flat is None else expression_of(session, flat)
    return made, str(made.sql())


def _balanced(session: Any, column: Any) -> Any | None:
    """`a | b | c | …` as Python makes it is a tree as deep as it is long: `((a | b) | c) | …`. The same chain
    as `(a | b) | (c | d)`, whose depth is the logarithm of its length; None where the column is no chain of
    ORs or ANDs."""
    try:
        node = column.node()
        return None if _junction(node) is None else _rebalanced(session._jvm.org.apache.spark.sql.Column, node)
    except Exception:  # Spark's internal classes have another form: the error that is known already says what is wrong
        return None


def _junction(node: Any) -> str | None:
    name = node.functionName() if node.getClass().getSimpleName() == "UnresolvedFunction" else None
    return name if name in ("or", "and") else None


def _rebalanced(as_column: Any, node: Any) -> Any:
    if (kind := _junction(node)) is None:
        return as_column(node)
    operands, pending = [], [node]
    while pending:
        each = pending.pop()
        if (found := _junction(each)) == kind:
            pair = each.arguments()
            pending += [pair.apply(1), pair.apply(0)]
        else:
            operands.append(as_column(each) if found is None else _rebalanced(as_column, each))
    while len(operands) > 1:
        pairs = [getattr(left, kind)(right) for left, right in zip(operands[::2], operands[1::2], strict=False)]
        operands = [*pairs, *operands[2 * len(pairs) :]]
    return operands[0]


def _are_same_structs(session: Any, parsed: Any, expression: Any) -> bool:
    """True if two expressions differ only in how struct(...) is made, which to the parser is no call of a
    function, and in the ids of the names in it."""
    from pyspark.sql import functions as F
    from pyspark.sql.classic.column import _to_seq

    made = session._jvm.org.apache.spark.sql.catalyst.expressions

    def rebuilt(node: Any, change: Callable[[Any], Any]) -> Any:
        children = node.children()
        inner = [rebuilt(children.apply(index), change) for index in range(children.length())]
        return change(node.withNewChildren(_to_seq(session.sparkContext, inner)) if inner else node)

    def as_parsed(node: Any) -> Any:
        is_call = node.nodeName() == "UnresolvedFunction" and node.nameParts().mkString(".") == "struct"
        return made.CreateStruct.create(node.children()) if is_call else node

    def without_ids(node: Any) -> Any:
        if node.nodeName() != "Alias":
            return node
        name = expression_of(session, F.lit(node.name())._jc)
        return made.CreateNamedStruct(_to_seq(session.sparkContext, [name, node.child()]))

    if "struct(" not in str(expression.sql()):
        return False
    return bool(rebuilt(parsed, without_ids).equals(rebuilt(rebuilt(expression, as_parsed), without_ids)))


def _no_text(what: str, text: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"{what}: a column that has no SQL text",
        found=text[:200],
        expected="col('x') or col('alias.x') with Spark's own functions, or a string: an expression in SQL syntax",
    )


def _kind(node: Any) -> str:
    return str(node.nodeName())


def _parts(node: Any) -> tuple[str, ...]:
    parts = node.nameParts()
    return tuple(str(parts.apply(index)) for index in range(parts.length()))
