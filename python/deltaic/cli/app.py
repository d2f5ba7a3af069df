"""The subcommands of `deltaic`: each opens a table, calls one public method and prints the result."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deltaic import _core
from deltaic.cli.render import note, print_mapping, print_records, print_rows, working
from deltaic.configuration import parse_size
from deltaic.html_tables import readable_size
from deltaic.table import DeltaTable

if TYPE_CHECKING:
    import pyarrow as pa

    from deltaic.rows.rows import Rows

app = typer.Typer(
    name="deltaic",
    help="Show, query and maintain Delta Lake tables.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)

Path = Annotated[str, typer.Argument(help="the table's folder or URL", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="JSON on stdout, for another program")]
Version = Annotated[int | None, typer.Option("--version", help="look at this version")]
Timestamp = Annotated[
    str | None, typer.Option("--timestamp", help="look at the table as of this time (ISO 8601, UTC)")
]
Where = Annotated[str | None, typer.Option("--where", help="a condition in Spark SQL")]
StorageOptions = Annotated[
    list[str] | None, typer.Option("--storage-option", metavar="KEY=VALUE", help="an option of the store")
]


def pairs(items: list[str] | None, what: str) -> dict[str, str] | None:
    """Parses KEY=VALUE texts into a dict; None if there are none. A key that comes twice is wrong usage.
    `what`: the option, for that message."""
    pairs = {}
    for item in items or ():
        key, divider, value = item.partition("=")
        if not (key and divider):
            raise typer.BadParameter(f"{item!r} is not KEY=VALUE", param_hint=what)
        pairs[key] = value
    return pairs or None


def _open(path: str, version: int | None, timestamp: str | None, options: list[str] | None) -> DeltaTable:
    return DeltaTable(
        path, version=version, timestamp=timestamp, storage_options=pairs(options, "--storage-option")
    )


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"deltaic {_core.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="print the version of deltaic and exit", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    pass


@app.command()
def show(
    path: Path,
    version: Version = None,
    timestamp: Timestamp = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Show version, rows, files, size, properties and columns of a table."""
    table = _open(path, version, timestamp, storage_option)
    with working("counting rows"):
        detail = table.detail()
        rows = table.scan().count()
    facts: dict[str, Any] = {
        "location": table.location,
        "version": table.version,
        "rows": rows,
        "files": detail.num_files,
        "size": detail.size_in_bytes if as_json else readable_size(detail.size_in_bytes),
        "partitioned_by": list(table.metadata.partition_columns),
        "properties": dict(table.metadata.configuration),
        "reader_version": table.protocol.min_reader_version,
        "writer_version": table.protocol.min_writer_version,
        "features": sorted(
            {*(table.protocol.reader_features or ()), *(table.protocol.writer_features or ())}
        ),
        "schema": table.schema.to_ddl(),
    }
    print_mapping(facts, as_json=as_json)


@app.command()
def head(
    path: Path,
    number: Annotated[int, typer.Option("-n", "--number", min=0, help="number of rows")] = 10,
    columns: Annotated[str | None, typer.Option("--columns", help="only these columns: a,b,c")] = None,
    where: Where = None,
    version: Version = None,
    timestamp: Timestamp = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Print the first rows."""
    chosen = [name.strip() for name in columns.split(",")] if columns else None
    _print(_open(path, version, timestamp, storage_option).scan(chosen, where, limit=number), as_json)


@app.command()
def history(
    path: Path,
    number: Annotated[
        int | None, typer.Option("-n", "--number", min=1, help="only this many of the newest commits")
    ] = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """List the commits, newest first: version, time, operation, and its parameters and metrics."""
    entries = _open(path, None, None, storage_option).history(number)
    if not as_json:
        entries = [
            {
                "version": entry["version"],
                "time (UTC)": entry["timestamp"].replace(tzinfo=None).isoformat(" ", "seconds"),
                "operation": entry.get("operation"),
                "details": _details(entry),
            }
            for entry in entries
        ]
    print_records(entries, as_json=as_json)


def _details(entry: Mapping[str, Any]) -> str:
    """Returns parameters, then metrics, one on each line, without those that are empty or 0."""
    named = {**(entry.get("operationParameters") or {}), **(entry.get("operationMetrics") or {})}
    return "\n".join(
        f"{name}: {value}" for name, value in named.items() if value not in (None, "", "[]", "{}", "0", 0)
    )


@app.command()
def files(
    path: Path,
    where: Where = None,
    version: Version = None,
    timestamp: Timestamp = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """List the live data files; with --where, those that may have a matching row."""
    rows = _open(path, version, timestamp, storage_option).files(where).to_arrow()
    if not as_json:
        shown = [
            name
            for name in ("path", "size", "num_records", "partition_values", "deletion_vector")
            if name in rows.column_names
        ]
        rows = rows.select(shown)
    print_rows(rows.to_batches(), rows.schema, as_json=as_json)


@app.command()
def detail(path: Path, storage_option: StorageOptions = None, as_json: AsJson = False) -> None:
    """Print the row of DESCRIBE DETAIL: name, location, columns, files, properties, protocol."""
    found = _open(path, None, None, storage_option).detail()
    print_mapping({field.name: getattr(found, field.name) for field in fields(found)}, as_json=as_json)


@app.command()
def optimize(
    path: Path,
    where: Annotated[str | None, typer.Option("--where", help="a condition on partition columns")] = None,
    z_order: Annotated[
        str | None, typer.Option("--z-order", metavar="A,B", help="cluster by these columns")
    ] = None,
    cluster: Annotated[
        bool, typer.Option("--cluster", help="cluster by the table's own clustering columns")
    ] = False,
    purge: Annotated[bool, typer.Option("--purge", help="rewrite every file with deleted rows")] = False,
    target_size: Annotated[
        str | None,
        typer.Option("--target-size", metavar="SIZE", help="size of a new file: bytes, 256MB, 1GB"),
    ] = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Merge small files into larger ones; with --z-order or --cluster sort rows along a curve, with --purge
    remove deleted rows."""
    if bool(z_order) + cluster + purge > 1:
        raise typer.BadParameter("one of --z-order, --cluster and --purge at a time", param_hint="--purge")
    if cluster and where:
        raise typer.BadParameter("--cluster takes the whole table", param_hint="--where")
    size = None if target_size is None else parse_size(target_size, "--target-size")
    table = _open(path, None, None, storage_option)
    with working(f"optimizing {table.location}"):
        if z_order:
            metrics = table.optimize.z_order(
                [name.strip() for name in z_order.split(",")], where, target_size=size
            )
        elif cluster:
            metrics = table.optimize.cluster(target_size=size)
        else:
            metrics = (table.optimize.purge if purge else table.optimize.compact)(where, target_size=size)
    print_mapping(metrics, as_json=as_json)


@app.command()
def picture(
    path: Path,
    columns: Annotated[
        str | None, typer.Option("--columns", metavar="A,B", help="the axes of a layout: one or two columns")
    ] = None,
    where: Annotated[
        str | None, typer.Option("--where", help="a condition in Spark SQL: files that it reads are orange")
    ] = None,
    kind: Annotated[str, typer.Option("--kind", help="layout, sizes or history")] = "layout",
    before: Annotated[
        int | None, typer.Option("--before", metavar="VERSION", help="draw this version at the left")
    ] = None,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="the SVG file; - is standard output")
    ] = "-",
    version: Version = None,
    timestamp: Timestamp = None,
    storage_option: StorageOptions = None,
) -> None:
    """Draw where the files lie over two columns, their sizes, or the history, as SVG."""
    axes = [name.strip() for name in columns.split(",")] if columns else None
    optimize = _open(path, version, timestamp, storage_option).optimize
    drawn = optimize.picture(axes, where, kind=kind, before=before)  # type: ignore[arg-type]
    if output == "-":
        print(drawn.svg)
    else:
        drawn.save(output)
        note(f"{output}: {len(drawn.svg):,} characters of SVG")
    for line in drawn.notes:
        note(line)


@app.command()
def vacuum(
    path: Path,
    retain: Annotated[
        float | None, typer.Option("--retain", metavar="HOURS", min=0, help="keep files younger than this")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="list the files, and delete nothing")] = False,
    lite: Annotated[
        bool, typer.Option("--lite", help="only files that the log names, without listing the folder")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="allow a --retain that is shorter than the table's")
    ] = False,
    inventory: Annotated[
        str | None,
        typer.Option(
            "--inventory",
            metavar="PATH",
            help="Parquet list of the folder's files: path, length, isDir, modificationTime",
        ),
    ] = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Delete files that no version within the retention needs."""
    from deltaic.commands.vacuum import hours

    table = _open(path, None, None, storage_option)
    with working(f"vacuuming {table.location}"):
        gone = table.vacuum(
            retention=None if retain is None else hours(retain),
            mode="lite" if lite else "full",
            dry_run=dry_run,
            enforce_retention=not force,
            inventory=inventory,
        ).to_arrow()
    print_rows(gone.to_batches(), gone.schema, as_json=as_json)
    note(f"{gone.num_rows} files {'would go' if dry_run else 'deleted'}")


@app.command()
def sql(
    statement: Annotated[
        str,
        typer.Argument(
            help="one statement of Spark SQL; a table is delta.`path`; - reads it from standard input",
            show_default=False,
        ),
    ] = "-",
    table: Annotated[
        list[str] | None, typer.Option("--table", "-t", metavar="NAME=PATH", help="a name for a table")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=0, help="rows to print, 0 all of them  [default: 100, with --json all]"),
    ] = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Run a statement and print its rows."""
    from deltaic.sql.statement import sql as run_sql  # here: the other commands start without a parser of SQL

    options = pairs(storage_option, "--storage-option")
    named = {
        name: DeltaTable(path, storage_options=options)
        for name, path in (pairs(table, "--table") or {}).items()
    }
    text = sys.stdin.read() if statement == "-" else statement
    with working("running"):
        rows = run_sql(text, tables=named, storage_options=options)
    _print(rows, as_json, limit if limit is not None else (0 if as_json else 100))


def _print(rows: Rows, as_json: bool, limit: int = 0) -> None:
    reader = rows.to_reader()
    print_rows(_first(reader, limit), reader.schema, as_json=as_json)


def _first(reader: pa.RecordBatchReader, limit: int) -> Iterator[pa.RecordBatch]:
    """Prints the first `limit` rows (0: all), and a remark if there are more."""
    left = limit
    for batch in reader:
        if limit and batch.num_rows > left:
            yield batch.slice(0, left)
            note(f"only the first {limit} rows; --limit 0 prints all")
            reader.close()
            return
        left -= batch.num_rows
        yield batch
