"""Writes the SQL text of Columns, also of those for which Spark writes none: columns of a DataFrame
(`frame.x`), lambdas, and Python functions.

The Column's tree is rebuilt of nodes that have SQL text: `frame.x` becomes `alias`.`x`, a lambda becomes `(x,
y) -> …`, and a Python function becomes a call of a temporary function of the session. Spark must parse the
text to the same tree; otherwise the Column has no text, which is an UnsupportedFeatureError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from deltaic.engine.spark.native.session import analyzed_plan, expression_of, parsed_expression
from deltaic.errors import DeltaError, InvalidArgumentError, UnsupportedFeatureError
from deltaic.sql_text import quote_name, spark_text

_FUNCTIONS = "_deltaic_python_functions"
"""Attribute of a session: the Python functions that are registered in it, with their names."""
_VARIABLE = "__deltaic_"
"""Prefix of the names of lambda variables, so that they hide no column of a table."""


class Origins:
    """The DataFrames whose columns a Column may use. `frames`: a function that returns DataFrames, each with
    the alias that qualifies its columns in a command, or None. It is called again for an unknown column,
    because a DataFrame may be created after the command was begun. `spark`: the session that parses the text;
    None is the active session. `names`: what replaces a qualifier of the table's columns in a text, such as
    {("default", "t"): "t."}."""

    def __init__(
        self,
        frames: Callable[[], Iterable[tuple[Any, str | None]]] = tuple,
        spark: Any = None,
        names: Mapping[tuple[str, ...], str] | None = None,
    ) -> None:
        self._frames, self.spark, self.names = frames, spark, names or {}
        self._known: Mapping[int, set[tuple[str, ...]]] = {}

    def parts(self, attribute: Any, what: str) -> tuple[str, ...]:
        """Returns the parts of a resolved column's qualified name. Raises UnsupportedFeatureError if the
        column is of none of the DataFrames, or of two of them."""
        number = int(attribute.exprId().id())
        if number not in self._known:
            self._known = self._columns()
        names = self._known.get(number, set())
        if len(names) == 1:
            return next(iter(names))
        problem = "of another DataFrame" if not names else "of target and source alike"
        raise UnsupportedFeatureError(
            f"{what}: a column {problem}",
            found=str(attribute.name()),
            expected=(
                "a column of toDF() of this DeltaTable or of the source, col('alias.x'), or a string: an"
                " expression in SQL syntax"
            ),
        )

    def _columns(self) -> dict[int, set[tuple[str, ...]]]:
        """Returns expression id -> qualified names of the DataFrames' columns."""
        columns: dict[int, set[tuple[str, ...]]] = {}
        for frame, alias in self._frames():
            output = analyzed_plan(frame).output()
            for index in range(output.size()):
                column = output.apply(index)
                parts = (str(column.name()),) if alias is None else (alias, str(column.name()))
                columns.setdefault(int(column.exprId().id()), set()).add(parts)
        return columns


def text_of(column: Any, what: str, origins: Origins) -> str:
    """Returns the SQL text of a Column: the text that Spark shows, if Spark parses it to the same expression,
    else a text of the Column's tree. Raises UnsupportedFeatureError for a Column without SQL text. `what`:
    name of the argument in errors."""
    from pyspark.sql import SparkSession

    session = origins.spark or SparkSession.getActiveSession()
    if session is None:
        raise InvalidArgumentError("no Spark session is active", where=what)
    expression, text = _expression(session, column._jc)
    if _is_parsed_to(session, expression, text):
        return text
    try:
        tree_text = ColumnText(session, origins, what).of(expression)
    except DeltaError:
        raise
    except Exception as error:  # Spark does not parse the text
        raise _no_text(what, text) from error
    if tree_text is None:
        raise _no_text(what, text)
    return tree_text


class ColumnText:
    """Writes the text of one Column. `what`: name of the argument in errors."""

    def __init__(self, session: Any, origins: Origins, what: str) -> None:
        self._session, self._origins, self._what = session, origins, what
        self._lambdas: dict[str, str] = {}

    def of(self, expression: Any) -> str | None:
        """Returns the text of a Catalyst expression; None if Spark parses the text to another expression."""
        tree = _rebuilt(self._session, expression, self._unresolved)
        text = self._text(tree)
        parsed = self._parsed(text)
        return text if self._plain(parsed).equals(self._plain(tree)) else None

    # --- trees

    def _parsed(self, text: str) -> Any:
        return parsed_expression(self._session, text)

    def _unresolved(self, node: Any) -> Any:
        """Returns the node as Spark's parser creates it."""
        kind = _kind(node)
        if kind == "AttributeReference":
            return self._column(self._origins.parts(node, self._what))
        if kind == "UnresolvedNamedLambdaVariable":
            return self._variable(tuple(f"{_VARIABLE}{part}" for part in _parts(node)))
        if kind == "GetStructField" and _kind(node.child()) in (
            "UnresolvedAttribute",
            "UnresolvedExtractValue",
        ):
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
        example = self._parsed("x['y']")
        literal = self._parsed(spark_text(name))
        return example.withNewChildren(_seq(self._session, [node.child(), literal]))

    def _called(self, function: str, arguments: Any) -> Any:
        values = [arguments.apply(index) for index in range(arguments.length())]
        example = self._parsed(f"{function}({', '.join('NULL' for _ in values)})")
        return example.withNewChildren(_seq(self._session, values)) if values else example

    def _plain(self, tree: Any) -> Any:
        """Returns the tree with columns in place of lambda variables, because Spark parses every name in a
        lambda as a variable."""
        return _rebuilt(
            self._session,
            tree,
            lambda node: (
                self._column(_parts(node)) if _kind(node) == "UnresolvedNamedLambdaVariable" else node
            ),
        )

    # --- text

    def _text(self, tree: Any) -> str:
        """Returns the tree's text. A column whose name is a marker stands for each lambda while Spark writes
        the rest, because Spark writes lambdas in another form."""

        def change(node: Any) -> Any:
            if _kind(node) != "LambdaFunction":
                return node
            arguments = node.arguments()
            names = [quote_name(_parts(arguments.apply(index))[0]) for index in range(arguments.length())]
            parameters = names[0] if len(names) == 1 else f"({', '.join(names)})"
            marker = f"{_VARIABLE}lambda{len(self._lambdas)}"
            self._lambdas[marker] = f"{parameters} -> {self._with_lambdas(str(node.function().sql()))}"
            return self._column((marker,))

        return self._with_lambdas(str(_rebuilt(self._session, tree, change).sql()))

    def _with_lambdas(self, text: str) -> str:
        """Returns the text with lambdas in place of their markers."""
        return re.sub(
            rf"`?({_VARIABLE}lambda\d+)`?", lambda match: self._lambdas.get(match[1], match[0]), text
        )

    # --- Python functions

    def _registered(self, node: Any) -> str:
        """Returns the name of a temporary function of the session for a Python function. Equal functions get
        the same name."""
        functions: list[tuple[Any, str]] = self._session.__dict__.setdefault(_FUNCTIONS, [])
        function, kind = node.func(), node.evalType()
        for other, name in functions:
            if (
                other.func().equals(function)
                and other.evalType() == kind
                and other.dataType().equals(node.dataType())
            ):
                return name
        name = f"{_VARIABLE}function{len(functions)}"
        maker = self._session._jvm.org.apache.spark.sql.execution.python.UserDefinedPythonFunction
        java_function = maker(
            name,
            function,
            node.dataType(),
            kind,
            node.udfDeterministic(),
            *([] for _ in range(self._list_arguments)),
        )
        self._session._jsparkSession.udf().registerPython(name, java_function)
        functions.append((node, name))
        return name

    @property
    def _list_arguments(self) -> int:
        """Number of lists at the end of the arguments of `UserDefinedPythonFunction`: two since Spark 4.3,
        for functions that Spark can write as expressions; they are empty here."""
        classes = self._session._jvm.java.lang.Class
        constructors = classes.forName(
            "org.apache.spark.sql.execution.python.UserDefinedPythonFunction"
        ).getConstructors()
        return int(constructors[0].getParameterCount()) - 5


def _is_parsed_to(session: Any, expression: Any, text: str) -> bool:
    """True if Spark parses the text to the expression."""
    try:
        parsed = parsed_expression(session, text)
        return bool(parsed.equals(expression)) or _are_same_structs(session, parsed, expression)
    except Exception:  # Spark does not parse the text
        return False


_DEEP = re.compile(r"(?:\b(?:or|and)\(){32}")
"""Matches a text with 32 nested ORs or ANDs, as `or(or(…`."""


def _expression(session: Any, column: Any) -> tuple[Any, str]:
    """Returns Spark's expression of a column, and its text. A long chain of ORs or ANDs becomes a tree of few
    levels (see `_balanced`)."""
    expression: Any = None
    failure: Exception | None = None
    try:
        expression = expression_of(session, column)
        text = str(expression.sql())
        if _DEEP.search(text) is None:
            return expression, text
    except Exception as error:  # Spark's recursions fail at some hundred levels
        failure = error
    balanced = _balanced(session, column)
    if balanced is None and failure is not None:
        raise failure
    expression = expression if balanced is None else expression_of(session, balanced)
    return expression, str(expression.sql())


def _balanced(session: Any, column: Any) -> Any | None:
    """Returns a chain of ORs or ANDs as a balanced tree; None for any other column. Python makes a tree of `a
    | b | c | …` that is as deep as the chain is long: `((a | b) | c) | …`. The depth of the balanced tree `(a
    | b) | (c | d)` is the logarithm of the length."""
    try:
        node = column.node()
        return (
            None if _junction(node) is None else _rebalanced(session._jvm.org.apache.spark.sql.Column, node)
        )
    except Exception:  # Spark's internal classes have another form: the caller raises the error that it has
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
        if (inner_kind := _junction(each)) == kind:
            pair = each.arguments()
            pending += [pair.apply(1), pair.apply(0)]
        else:
            operands.append(as_column(each) if inner_kind is None else _rebalanced(as_column, each))
    while len(operands) > 1:
        pairs = [
            getattr(left, kind)(right) for left, right in zip(operands[::2], operands[1::2], strict=False)
        ]
        operands = [*pairs, *operands[2 * len(pairs) :]]
    return operands[0]


def _are_same_structs(session: Any, parsed: Any, expression: Any) -> bool:
    """True if two expressions differ only in the node of struct(...), which the parser does not represent as
    a function call, and in the ids of the names in it."""
    from pyspark.sql import functions as F

    catalyst = session._jvm.org.apache.spark.sql.catalyst.expressions

    def as_parsed(node: Any) -> Any:
        is_call = node.nodeName() == "UnresolvedFunction" and node.nameParts().mkString(".") == "struct"
        return catalyst.CreateStruct.create(node.children()) if is_call else node

    def without_ids(node: Any) -> Any:
        if node.nodeName() != "Alias":
            return node
        name = expression_of(session, F.lit(node.name())._jc)
        return catalyst.CreateNamedStruct(_seq(session, [name, node.child()]))

    if "struct(" not in str(expression.sql()):
        return False
    called = _rebuilt(session, expression, as_parsed)
    return bool(_rebuilt(session, parsed, without_ids).equals(_rebuilt(session, called, without_ids)))


def _rebuilt(session: Any, node: Any, change: Callable[[Any], Any]) -> Any:
    """Returns a tree in which `change` has replaced each node, children first."""
    children = node.children()
    inner = [_rebuilt(session, children.apply(index), change) for index in range(children.length())]
    return change(node.withNewChildren(_seq(session, inner)) if inner else node)


def _seq(session: Any, items: list[Any]) -> Any:
    """Creates a Scala Seq."""
    from pyspark.sql.classic.column import _to_seq

    return _to_seq(session.sparkContext, items)


def _no_text(what: str, text: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"{what}: a column that has no SQL text",
        found=text[:200],
        expected=(
            "col('x') or col('alias.x') with Spark's own functions, or a string: an expression in SQL syntax"
        ),
    )


def _kind(node: Any) -> str:
    return str(node.nodeName())


def _parts(node: Any) -> tuple[str, ...]:
    parts = node.nameParts()
    return tuple(str(parts.apply(index)) for index in range(parts.length()))
