"""Makes the error of a MERGE in which several source rows match one target row. It shows the key, the file
and the source rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deltaic.errors import MergeCardinalityError
from deltaic.plan.expression import COUNT, column, columns_of
from deltaic.plan.nodes import FILE_COLUMN, ROW_COLUMN, Aggregate, Data, Filter, Project, Union
from deltaic.planning.opening import ROW_ID_FIELDS
from deltaic.protocol.schema import Field, Schema

if TYPE_CHECKING:
    import pyarrow as pa

    from deltaic.engine.engine import Engine

SHOWN_ROWS = 3
"""Maximum number of source rows in the message; further ones are left out."""
SHOWN_LENGTH = 200
"""Maximum characters of each source row in the message; a longer row is cut."""


def cardinality_error(
    engine: Engine,
    changed: Project | Union,
    pairs: Data,
    columns: Schema,
    keys: Sequence[str],
    files: pa.Table,
) -> MergeCardinalityError | None:
    """Returns the error for one target row that occurs twice among the row ids of `changed`; None if there is
    none.

    `pairs`: the matches, with the row id of the target row and the source's `columns`.
    `keys`: the source's columns that the condition of the MERGE reads.
    `files`: the `add` actions to which file ordinals refer.
    """
    counted = Aggregate(changed, columns_of(changed.alias, ROW_ID_FIELDS), (("times", COUNT),))
    several = engine.compose((column(counted.alias, Field("times", "long")), " > 1"), "boolean")
    twice = engine.to_arrow(engine.run(Filter(counted, several)), limit=1).read_all().to_pylist()
    if not twice:
        return None
    file, row, times = twice[0][FILE_COLUMN], twice[0][ROW_COLUMN], twice[0]["times"]
    of_file, of_row = (column(pairs.alias, item) for item in ROW_ID_FIELDS)
    same = Filter(pairs, engine.compose((of_file, f" = {file} AND ", of_row, f" = {row}"), "boolean"))
    shown = Project(same, columns_of(pairs.alias, columns), pairs.alias)
    rows = engine.to_arrow(engine.run(shown), limit=SHOWN_ROWS).read_all().to_pylist()
    key = f" with {_text({name: rows[0][name] for name in keys})}" if keys and rows else ""
    more = ", ..." if times > len(rows) else ""
    return MergeCardinalityError(
        "more than one source row matches the same target row",
        found=(
            f"{times} source rows{key}: {', '.join(map(_text, rows))}{more}; they match row {row} of"
            f" {files['path'][file]}"
        ),
        expected=(
            "at most one source row for each target row: remove duplicates from the source, or add a"
            " condition"
        ),
    )


def _text(values: Mapping[str, Any]) -> str:
    text = "{" + ", ".join(f"{name}: {value!r}" for name, value in values.items()) + "}"
    return text if len(text) <= SHOWN_LENGTH else text[: SHOWN_LENGTH - 3] + "..."
