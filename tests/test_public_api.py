"""The public names and parameters are those of `public_api.txt`, so that a change is visible in a review."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import deltaic
import deltaic.errors
import deltaic.spark
from deltaic import _core

SURFACE = (Path(__file__).parent / "public_api.txt").read_text(encoding="utf-8").splitlines()
LINES = [line for line in SURFACE if line and not line.startswith("#")]

# The exception tree: each class with its parent.
ERRORS = {
    "DeltaError": "Exception",
    "InvalidArgumentError": "DeltaError",
    "TableNotFoundError": "DeltaError",
    "TableAlreadyExistsError": "DeltaError",
    "VersionNotFoundError": "DeltaError",
    "ProtocolError": "DeltaError",
    "UnsupportedFeatureError": "ProtocolError",
    "PathOutsideTableError": "DeltaError",
    "UnsafeStoreError": "DeltaError",
    "SchemaMismatchError": "DeltaError",
    "ConstraintViolationError": "DeltaError",
    "MergeCardinalityError": "DeltaError",
    "CommitError": "DeltaError",
    "AppendOnlyError": "CommitError",
    "DeltaConcurrentModificationException": "CommitError",
    "CommitUnknownError": "DeltaError",
    "CancelledError": "DeltaError",
}
BUILTIN = {
    "InvalidArgumentError": ValueError,
    "TableNotFoundError": FileNotFoundError,
    "TableAlreadyExistsError": FileExistsError,
    "SchemaMismatchError": ValueError,
    "ConstraintViolationError": ValueError,
}
CONFLICTS = {
    "ConcurrentWriteException",
    "MetadataChangedException",
    "ProtocolChangedException",
    "ConcurrentAppendException",
    "ConcurrentDeleteReadException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentTransactionException",
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return deltaic.DeltaTable.create(tmp_path_factory.mktemp("api") / "t", "id long")


def _owner(name: str, table: Any) -> Any:
    """What the name before the dot is: a class, or the namespace of a table."""
    return getattr(table, name) if name in ("alter", "optimize") else getattr(deltaic, name)


def _default(value: object) -> str:
    if value is inspect.Parameter.empty:
        return ""
    if isinstance(value, deltaic.ColumnOptions):
        return "=ColumnOptions()"
    return f"={dict(value)!r}" if hasattr(value, "keys") else f"={value!r}"


def _signature(function: Any) -> str:
    parts: list[str] = []
    starred = False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            starred = True
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        prefix = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        default = parameter.default
        if repr(default) == "<factory>":  # a dataclass's default_factory
            default = {}
        parts.append(prefix + parameter.name + _default(default))
    return ", ".join(parts)


@pytest.mark.parametrize("line", LINES, ids=lambda line: re.split(r"[(]", line)[0])
def test_signature(line: str, table: Any) -> None:
    name, bracket, _ = line.partition("(")
    owner, _, member = name.rpartition(".")
    holder = _owner(owner, table) if owner else deltaic
    if bracket:
        assert f"{name}({_signature(getattr(holder, member))})" == line
    else:
        assert hasattr(holder, member)


def test_the_names_of_the_package_are_the_listed_ones() -> None:
    listed = {line.partition("(")[0].partition(".")[0] for line in LINES} - {"alter", "optimize"}
    # Types that calls return, or that other types contain: users call none of their members.
    assert set(deltaic.__all__) == listed | {
        "Array",
        "CommitCoordinator",
        "Detail",
        "Limits",
        "Map",
        "Metadata",
        "Protocol",
        "QueryReport",
        "RatifiedCommits",
        "ScanReport",
        "Struct",
        "TailBatch",
        "errors",
    } & set(deltaic.__all__)


def test_every_name_is_there_at_once() -> None:
    """In a fresh interpreter, each first: nothing works only because something else was imported before."""
    for name in ("errors.DeltaError", "__version__", "sql", "DeltaTable"):
        subprocess.run([sys.executable, "-c", f"import deltaic; deltaic.{name}"], check=True)


def test_type_checkers_see_every_name() -> None:
    """The names are loaded when first used; a type checker reads them from the imports that only it sees."""
    tree = ast.parse(Path(str(deltaic.__file__)).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {
        alias.asname: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == {**deltaic._HOMES, "errors": "deltaic"}


def test_every_name_can_be_imported() -> None:
    for name in deltaic.__all__:
        assert getattr(deltaic, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        deltaic.no_such_name  # noqa: B018


def test_sql_is_a_function_after_its_package_was_imported() -> None:
    from deltaic.sql.statement import sql

    assert deltaic.sql("VALUES (1)").count() == 1
    package = sys.modules["deltaic.sql"]
    assert package("VALUES (1)").count() == 1  # type: ignore[operator]
    assert _signature(package) == _signature(sql)


def test_transaction_is_a_function_after_its_package_was_imported() -> None:
    from deltaic.several_tables import transaction

    package = sys.modules["deltaic.transaction"]
    with pytest.raises(deltaic.errors.InvalidArgumentError, match="at least one"):
        package()  # type: ignore[operator]
    assert _signature(package) == _signature(transaction)


def test_no_module_hides_a_name_of_the_spark_package() -> None:
    """Importing a module binds its name in the package. `deltaic.spark.session` is a function."""
    folder = Path(str(deltaic.spark.__file__)).parent
    modules = {path.stem for path in folder.iterdir()}
    assert modules & set(deltaic.spark._HOMES) == set()


def test_core_stays_small() -> None:
    classes = {name for name, value in vars(_core).items() if inspect.isclass(value)}
    assert len(classes) <= 16


def test_error_tree() -> None:
    for name, parent in ERRORS.items():
        error = getattr(deltaic.errors, name)
        assert error.__mro__[1].__name__ == parent, name
        assert issubclass(error, BUILTIN.get(name, Exception)), name
    for name in CONFLICTS:
        assert issubclass(getattr(deltaic.errors, name), deltaic.errors.DeltaConcurrentModificationException)


def test_errors_carry_what_they_say() -> None:
    error = deltaic.errors.InvalidArgumentError(
        "unknown column", where="scan(columns=)", found="x", expected="a, b"
    )
    assert (error.where, error.found, error.expected) == ("scan(columns=)", "x", "a, b")
    assert str(error) == "scan(columns=): unknown column; found x; expected a, b"


def test_every_public_name_has_a_docstring(table: Any) -> None:
    for line in LINES:
        name = line.partition("(")[0]
        owner, _, member = name.rpartition(".")
        holder = _owner(owner, table) if owner else deltaic
        if inspect.isclass(holder) or owner in ("alter", "optimize"):
            member_object = inspect.getattr_static(
                holder if inspect.isclass(holder) else type(holder), member
            )
        else:
            member_object = getattr(holder, member)
        assert inspect.getdoc(member_object), name
