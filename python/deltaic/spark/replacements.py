"""The options replaceUsing and replaceOn of an overwrite, for the DataFrame whose rows are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deltaic.commands import replacement as command
from deltaic.commands.replacement import SOURCE, TARGET, Replacement
from deltaic.errors import InvalidArgumentError, UnsupportedFeatureError
from deltaic.spark.aliases import alias_of

if TYPE_CHECKING:
    from deltaic.commands.write_job import Mode
    from deltaic.protocol.schema import Schema
    from deltaic.spark.builders import BuilderState


_OPTIONS = ("replaceOn", "replaceUsing", "targetAlias")


def replacement_of(options: Mapping[str, Any], mode: Mode, take: Callable[[str], Any]) -> Replacement | None:
    """Returns which rows the options of an overwrite replace by replaceOn or replaceUsing; None without these
    two, and in other modes, in which they have no effect. `take`: called with the name of each option that
    this function knows. Raises InvalidArgumentError for options that cannot stand beside the two, because
    they replace other rows or keep no row."""
    for name in _OPTIONS:
        take(name)
    given = {name.lower(): str(value) for name, value in options.items()}
    names = [name for name in _OPTIONS[:2] if name.lower() in given]
    if not names or mode != "overwrite":
        return None
    if len(names) > 1:
        raise _incompatible(*names)
    if "replacewhere" in given:
        raise InvalidArgumentError(
            "[DELTA_OVERWRITE_BY_FILTER_INCOMPATIBLE_REPLACE_ON_OR_USING] an overwrite replaces the rows of a"
            " condition, or those that match a new row",
            found=f"replaceWhere and {names[0]}",
        )
    if "partitionoverwritemode" in given:
        raise InvalidArgumentError(
            "[DELTA_DYNAMIC_PARTITION_OVERWRITE_INCOMPATIBLE_REPLACE_ON_OR_USING] an overwrite replaces"
            " partitions, or rows that match a new row",
            found=f"partitionOverwriteMode and {names[0]}",
        )
    for name, value in (("overwriteSchema", "true"), ("dataChange", "false")):
        if given.get(name.lower(), "").lower() == value:
            raise _incompatible(name, names[0])
    if names == ["replaceOn"]:
        text = given["replaceon"]
        return Replacement(on=text, text=text, target=given.get("targetalias") or TARGET)
    columns = _listed(given["replaceusing"])
    if not all(columns):
        error = InvalidArgumentError(
            "the option replaceUsing", found=repr(given["replaceusing"]), expected="names of columns"
        )
        raise error.with_values(explain="must not contain empty column names")
    return Replacement(columns=columns, text=given["replaceusing"])


def _listed(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def _incompatible(first: str, second: str) -> InvalidArgumentError:
    error = InvalidArgumentError(
        "[DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS] two options of a write cannot stand together",
        found=f"{first} and {second}",
    )
    return error.with_values(first=first, second=second)


def named_in(df: Any, replacement: Replacement) -> Replacement:
    """Returns the replacement with the alias that the DataFrame has in its condition."""
    if replacement.on is None:
        return replacement
    source = alias_of(df) or SOURCE
    if source.lower() == replacement.target.lower():
        raise InvalidArgumentError(
            "the option targetAlias is the alias of the DataFrame, too", found=repr(source)
        )
    return replace(replacement, source=source)


def check_positions(df: Any, state: BuilderState, table: Schema) -> None:
    """Checks replaceUsing and replaceOn of `insertInto`, which matches columns by position. Raises
    InvalidArgumentError if a column of replaceUsing has another position in the DataFrame than in the table.
    Raises UnsupportedFeatureError for replaceOn, because the rows that are inserted have the table's
    names."""
    if state.has("replaceOn"):
        raise UnsupportedFeatureError(
            "replaceOn with insertInto is not supported", expected="save or saveAsTable, which match by name"
        )
    if not state.has("replaceUsing"):
        return
    names = _listed(state.get("replaceUsing") or "")
    if all(names):
        command.check_positions(names, table.names, df.columns)
