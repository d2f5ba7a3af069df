"""Renames the columns of a query, and the fields of structs in them, to those of a table by position, as
INSERT requires."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from deltaic.errors import InvalidArgumentError, SchemaMismatchError
from deltaic.protocol.evolution import Widening
from deltaic.protocol.schema import Array, DataType, Field, Map, Schema, Struct
from deltaic.rows.rows import Rows

if TYPE_CHECKING:
    import pyarrow as pa
else:
    from deltaic.deferred import pyarrow as pa


def matched(
    names: Sequence[str],
    columns: Sequence[Field],
    table: str,
    statement: str = "INSERT",
    *,
    listed: bool = False,
    fixed: int = 0,
    evolves: bool,
) -> list[Field | None]:
    """Returns the table's column for each column of a query, by position; None for those beyond the last one,
    which are new columns if the schema `evolves` and the statement has no list of columns (`listed`). Raises
    SchemaMismatchError for another number of columns, and InvalidArgumentError for a new column with the name
    of another one. `fixed`: how many columns get their values from PARTITION, for the values of the
    error."""
    few = len(names) < len(columns)
    if few or (len(names) > len(columns) and (listed or not evolves)):
        message = "needs one value for each column" if few else "has more values than columns"
        needed = tuple(column.name for column in columns)
        error = SchemaMismatchError(
            f"{statement} {message}{' of its list' if listed else ''}",
            where=table,
            found=f"{len(names)} ({', '.join(names)})",
            expected=f"{len(needed)} ({', '.join(needed)})",
        )
        raise error.with_values(
            columns=needed,
            given=tuple(names),
            value_count=len(names) + fixed,
            column_count=len(needed) + fixed,
        )
    taken = {column.name.lower() for column in columns}
    for name in names[len(columns) :]:
        if name.lower() in taken:
            raise InvalidArgumentError("a column comes twice", where=table, found=name)
        taken.add(name.lower())
    return [*columns, *([None] * (len(names) - len(columns)))]


def placed(
    rows: Rows, columns: Sequence[Field | None], *, listed: bool = False, widen: Widening | None = None
) -> Rows:
    """Renames the columns of rows as `named_columns` does. No value is copied."""
    fields = Schema(named_columns(list(rows.schema), columns, listed=listed, widen=widen))

    def opened() -> pa.RecordBatchReader:
        reader = rows.to_reader()
        schema = pa.schema(
            [_arrow_field(source, field) for source, field in zip(reader.schema, fields, strict=True)]
        )
        return pa.RecordBatchReader.from_batches(schema, (_viewed(batch, schema) for batch in reader))

    return Rows(fields, opened, reads=rows._reads)


def named_columns(
    sources: Sequence[Field],
    columns: Sequence[Field | None],
    *,
    listed: bool = False,
    widen: Widening | None = None,
) -> list[Field]:
    """Returns the columns of a query with the names of `columns`, by position; None keeps a column's name.

    Fields of structs, also inside arrays and maps, are renamed by position, too. As in delta-spark, they keep
    their names, and match by name, if no column needs another name or a cast: `INSERT INTO t SELECT
    named_struct('y', 1, 'x', 2) AS s` writes 2 to `s.x` of a table with `s struct<x: int, y: int>`, and 1 if
    the query calls the column `r`. A list of columns (`listed`) names the columns of the query and the fields
    of their structs, by position, before that is decided. `widen`: which wider types the table takes from the
    query, so that they need no cast."""
    pairs = list(zip(sources, columns, strict=True))
    if listed:
        sources = [source if target is None else _listed(source, target) for source, target in pairs]
    if fit_by_name(sources, columns, widen):
        return list(sources)
    return [source if target is None else named(source, target) for source, target in pairs]


def fit_by_name(sources: Sequence[Field], columns: Sequence[Field | None], widen: Widening | None) -> bool:
    """True if no column of a query needs another name or a cast when the fields of structs match by name.
    None in `columns`: a column that the table lacks. `widen`: as for `named_columns`."""
    return all(
        target is None or (source.name == target.name and _fits_by_name(source.type, target.type, widen))
        for source, target in zip(sources, columns, strict=True)
    )


def _fits_by_name(source: DataType, target: DataType, widen: Widening | None) -> bool:
    """True if the values of a type need no cast when the fields of its structs match by name. Structs may
    have more fields than those of `target`, which are new fields, but not fewer."""
    if isinstance(source, Struct) and isinstance(target, Struct):
        fields = {item.name.lower(): item for item in target.fields}
        pairs = [(item, fields.pop(item.name.lower(), None)) for item in source.fields]
        return not fields and all(
            other is None or (item.name == other.name and _fits_by_name(item.type, other.type, widen))
            for item, other in pairs
        )
    if isinstance(source, Array) and isinstance(target, Array):
        return _fits_by_name(source.element, target.element, widen)
    if isinstance(source, Map) and isinstance(target, Map):
        return _fits_by_name(source.key, target.key, widen) and _fits_by_name(
            source.value, target.value, widen
        )
    return source == target or (widen is not None and widen(target, source))


def named(source: Field, target: Field) -> Field:
    """Renames a field, and the fields in it by position, to those of `target`. Fields after the last one of
    `target` keep their names."""
    return source.with_(name=target.name, type=_named_type(source.type, target.type))


def _named_type(source: DataType, target: DataType) -> DataType:
    if isinstance(source, Struct) and isinstance(target, Struct):
        return _named_struct(source, target, named)
    if isinstance(source, Array) and isinstance(target, Array):
        return Array(_named_type(source.element, target.element), source.contains_null)
    if isinstance(source, Map) and isinstance(target, Map):
        return Map(
            _named_type(source.key, target.key),
            _named_type(source.value, target.value),
            source.value_contains_null,
        )
    return source


def _listed(source: Field, target: Field) -> Field:
    """Like `named`, but without the fields inside arrays and maps."""
    kind = source.type
    if isinstance(kind, Struct) and isinstance(target.type, Struct):
        kind = _named_struct(kind, target.type, _listed)
    return source.with_(name=target.name, type=kind)


def _named_struct(source: Struct, target: Struct, renamed: Callable[[Field, Field], Field]) -> Struct:
    pairs = zip(source.fields, target.fields, strict=False)
    return Struct([*(renamed(*pair) for pair in pairs), *source.fields[len(target.fields) :]])


def _arrow_field(source: pa.Field, named: Field) -> pa.Field:
    return source.with_name(named.name).with_type(_arrow_type(source.type, named.type))


def _arrow_type(source: pa.DataType, named: DataType) -> pa.DataType:
    """Renames the fields of an Arrow type to those of `named`. All fields are nullable, as those of a null
    struct are null."""
    if isinstance(named, Struct) and pa.types.is_struct(source):
        return pa.struct(
            [
                _arrow_field(*pair).with_nullable(True)
                for pair in zip(source.fields, named.fields, strict=True)
            ]
        )
    if isinstance(named, Array) and (pa.types.is_list(source) or pa.types.is_large_list(source)):
        element = source.value_field.with_type(_arrow_type(source.value_type, named.element))
        return pa.large_list(element) if pa.types.is_large_list(source) else pa.list_(element)
    if isinstance(named, Map) and pa.types.is_map(source):
        key = source.key_field.with_type(_arrow_type(source.key_type, named.key))
        value = source.item_field.with_type(_arrow_type(source.item_type, named.value))
        return pa.map_(key, value, keys_sorted=source.keys_sorted)
    return source


def _viewed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    pairs = zip(batch.columns, schema.types, strict=True)
    return pa.RecordBatch.from_arrays(
        [array if array.type == to else array.view(to) for array, to in pairs], schema=schema
    )
