"""The compiled module: bytes, files and rows. It has one section for each file of `rust/src/python/`.

Arrow data is passed in as any object with `__arrow_c_stream__`, `__arrow_c_array__` or `__arrow_c_schema__`,
and returned as pyarrow. Columns of `add` and `remove` tables have PROTOCOL.md's names (camelCase), as in the
log. A path in such a table is the text of the log, percent-encoded; it is decoded and resolved in one place,
when a file is opened. Errors are the classes of `deltaic.errors`. Every call that may take long releases the
interpreter lock and checks signals.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, final

import pyarrow as pa

__version__: str

# --- interrupt.rs -------------------------------------------------------------------------------------------

@final
class Interrupt:
    """A request of one thread to stop the work of another: Python tells only the main thread about Ctrl-C."""

    def __new__(cls) -> Interrupt: ...
    def watch(self) -> None:
        """From this call on, calls of this module in the current thread end with KeyboardInterrupt after
        `stop`."""
    def stop(self) -> None: ...

# --- schema.rs ----------------------------------------------------------------------------------------------

@final
class TableSchema:
    """A Delta schema for Rust: logical names, physical names and field ids, partition columns. Immutable.

    `schema`: the schemaString of the metadata action. `column_mapping`: "none", "name" or "id"
        (delta.columnMapping.mode).
    """

    def __new__(cls, schema: str, partition_columns: Sequence[str] = (),
                column_mapping: str = "none") -> TableSchema: ...
    @property
    def json(self) -> str: ...
    @property
    def partition_columns(self) -> list[str]: ...
    @property
    def column_mapping(self) -> Literal["none", "name", "id"]: ...
    def to_arrow(self, columns: Sequence[str] | None = None, *, encoded: Sequence[str] = (),
                 views: Sequence[str] = ()) -> pa.Schema:
        """Returns the logical Arrow schema. Metadata of Delta fields becomes metadata of Arrow fields (values
        as text).
        `encoded`, `views`: columns with the types that `read` gives them."""
    def with_hidden(self, names: Sequence[str], ids: Sequence[int] = ()) -> TableSchema:
        """Returns this schema with further columns of type long at its end. Data files may have these
        columns, and the table does not show them. They are found by name whatever the column mapping, and
        have no statistics.
        `ids`: field ids of these columns in new Parquet files."""

def keep_freed_memory(milliseconds: int) -> None: ...  # before the system gets it back;
                                                       # MIMALLOC_PURGE_DELAY of the user wins
def schema_from_arrow(schema: Any) -> str:
    """Returns the JSON of the Delta schema (a struct) for an Arrow schema."""

def type_from_arrow(data_type: Any) -> str:
    """Returns the JSON of the Delta type for an Arrow type (any object with `__arrow_c_schema__`)."""

# --- log_store.rs, store.rs ---------------------------------------------------------------------------------

class LogStore(Protocol):
    """Interface of a user's store. Paths are relative to the table and decoded. Any thread may call the
    methods.

    A missing object is a FileNotFoundError. Every other exception reaches the caller unchanged.
    """

    def list_from(self, prefix: str, start_after: str | None, recursive: bool,
                  /) -> Iterable[tuple[str, int, int]]:
        """Returns (path, size, modification time in ms) of the objects in the folder `prefix` whose names
        sort after `start_after`, in any order."""
    def head(self, path: str, /) -> tuple[int, int] | None:
        """Returns (size, modification time in ms); None if there is no such object."""
    def read(self, path: str, start: int = 0, end: int | None = None, /) -> bytes:
        """Returns the bytes from `start` to `end` (exclusive)."""
    def write_if_absent(self, path: str, data: bytes, /) -> bool | None:
        """Creates an object. True: it was created, completely and visible at once. False (or
        FileExistsError): it exists already. None (or TimeoutError, ConnectionError): the outcome is
        unknown. Any other exception means that nothing was written.
        """
    def write(self, path: str, data: bytes, /) -> None:
        """Creates or replaces an object, atomically."""
    def delete(self, path: str, /) -> bool:
        """Deletes an object. False if it did not exist."""

@final
class StagedObject:
    """A durable object that has no name yet. If it gets none, nothing is left of it."""

    def publish(self, path: str) -> bool:
        """Gives the object this name; False if an object has the name already. The object is visible from
        then on, but its name may be lost with the power."""
    def settle(self) -> None:
        """Makes the object's name durable."""

@final
class Store:
    """The store of a table, through which all its bytes pass. Paths are relative to the table, with `/`, and
    decoded.

    `location`: an absolute local path, `file://`, `memory://name/...`, or a URL of S3, Google Cloud Storage
        or Azure.
    `durable`: True to sync files and folders of local stores.

    A store is pickled as its location and its options without secrets.
    """

    def __new__(cls, location: str, options: Mapping[str, str] | None = None, *, durable: bool = True,
                allowed_roots: Sequence[str] = (),
                credentials: Callable[[str], tuple[dict[str, str], float | None]] | None = None,
                cache: tuple[str, int] | None = None) -> Store:
        """`credentials`: called with the URL of a bucket; returns storage options, and the time (seconds
            since 1970) until which they are valid.
        `cache`: a folder for local copies of immutable objects of an object store, and the maximum of their
        bytes."""
    @staticmethod
    def from_python(log_store: LogStore, location: str) -> Store:
        """Returns a store that calls a user's object. It can be pickled if the object can."""
    @property
    def location(self) -> str: ...
    @property
    def is_remote(self) -> bool:
        """True if each call is a request over a network."""
    def buffered(self, limit: int) -> Store:
        """Returns this store with a memory of small pieces that it has read, for a command that reads the
        same files several times. At most `limit` bytes stay in memory as long as the result lives, and are
        not fetched again."""
    def list_from(self, prefix: str, start_after: str | None = None, *, recursive: bool = False) -> pa.Table:
        """Returns the objects in the folder `prefix` and below it whose paths sort after `prefix` +
        `start_after`, sorted by path: path (string), size (int64), modification_time (int64, ms), symlink
        (bool). A missing folder is empty."""
    def entries(self, prefix: str, start_after: str | None = None) -> list[tuple[str, int, int]]:
        """Returns (path, size, modification time in ms) of the objects in one folder, like `list_from`. It
        imports nothing, which makes it fast for folders with few objects."""
    def first_look(self, path: str, folder: str,
                   most: int) -> tuple[bytes | None, list[tuple[str, int, int]] | None] | None:
        """Lists the folder (`entries(folder)`); if it has more than 250 entries, they are None, and the
        first result is the bytes of the file, which is requested meanwhile if the listing is not answered
        within 10 ms. The file is None if it is missing, unreadable or larger than `most` bytes. The whole
        result is None if the store cannot make two requests at a time."""
    def expect_commit(self) -> None:
        """Begins to check in the background if the store supports put-if-absent, unless that is known
        already. A command calls it before it commits."""
    def head(self, path: str) -> tuple[int, int] | None:
        """Returns (size, modification time in ms); None if there is no such object."""
    def look_up(self, folder: str, names: Sequence[str]) -> list[tuple[int, int] | None] | None:
        """Looks up names in a folder. Returns (size, modification time in ms) of each, None for a missing
        file. The result is None for a store in which a listing takes fewer requests."""
    def get(self, path: str, *, most: int | None = None) -> bytes:
        """Returns the bytes of an object. Raises FileNotFoundError if there is none, and ProtocolError if it
        has more than `most` bytes."""
    def put_if_absent(
        self, path: str, data: bytes, *, durable: bool = True, after: Sequence[str] | None = None
    ) -> Literal["created", "exists", "unknown"]:
        """Creates an object unless it exists. `durable=False`: the object may be lost with the power, however
        the store was opened. `after`: files of this store that are made durable before the object becomes
        visible, on a local disk all in one wait; missing ones are ignored."""
    def stage(self, folder: str, data: bytes, *, after: Sequence[str]) -> StagedObject | None:
        """Makes `data` and the files `after` durable in `folder`, without a name. This is the slow part of a
        put-if-absent, and can be done before it is known which name is free. None if the store does not
        support it."""
    def put(self, path: str, data: bytes) -> None: ...
    def delete(self, paths: Any) -> int:
        """Deletes the paths of an Arrow array or sequence, and returns how many existed. A missing one is no
        error. Never follows a link."""
    def copy_from(self, source: Store, origins: Any, paths: Any) -> int:
        """Copies objects from another store on several threads, and returns the number of bytes. `origins`:
        paths in `source`, or absolute paths and URLs that it may read. `paths`: the new paths in this
        store. On a local disk the copies are not durable yet; the commit makes them durable."""
    def remove_empty_directories(self, prefix: str = "") -> int: ...

def check_cache_folder(path: str) -> None:
    """Raises InvalidArgumentError if other users may read or write the folder. A missing folder is allowed.
    """

# --- log/commit.rs ------------------------------------------------------------------------------------------

@final
class Commit:
    """One parsed commit file."""

    @property
    def version(self) -> int: ...
    @property
    def commit_info(self) -> str | None: ...      # each: the action's JSON, None where the commit has none
    @property
    def protocol(self) -> str | None: ...
    @property
    def metadata(self) -> str | None: ...
    @property
    def transactions(self) -> dict[str, tuple[int, int | None]]: ...      # appId -> (version, lastUpdated)
    @property
    def domains(self) -> dict[str, str]: ...      # domain -> JSON of the action
    @property
    def adds(self) -> pa.Table: ...
    @property
    def removes(self) -> pa.Table: ...
    @property
    def file_counts(self) -> tuple[int, int]: ...      # numbers of adds and of removes
    @property
    def has_cdc(self) -> bool: ...
    @property
    def change_files(self) -> list[str]:      # JSON of the `cdc` actions
        ...

def read_commit(store: Store, version: int, path: str) -> Commit: ...

def read_commit_info(store: Store, path: str) -> str | None:
    """Returns the JSON of the commitInfo of a commit, without parsing its other actions."""

def read_commit_infos(store: Store, paths: Sequence[str]) -> list[str | None]:
    """Like `read_commit_info`, for several commits, which are read on several threads."""

def commit_body(actions: Sequence[str], adds: Any | None = None, removes: Any | None = None,
                cdc: Any | None = None) -> bytes:
    """Returns a commit as lines of JSON: `actions` (each a JSON object on one line, commitInfo first), then
    the removes, then the adds. Raises ProtocolError if a path is added twice or removed twice."""

def compact_commits(store: Store, commits: Sequence[tuple[int, str]]) -> bytes:
    """Returns the lines of the compacted range of these commits: (version, path), ascending, without a gap.
    """

def read_changes(
    store: Store, commits: Sequence[tuple[int, str, int | None]], partition_columns: Sequence[str]
) -> tuple[list[str | None], pa.Table, pa.Table]:
    """Reads what commits changed. Returns the JSON of the `metaData` of each commit, and two tables of files
    as for `read`, in the order of the commits.

    `commits`: (version, path of its file, its time in ms or None for its own `inCommitTimestamp`).
    `partition_columns`: physical names. A value that a remove action lacks is null; an action without
        `partitionValues` is a ProtocolError.

    The first table has the files of which all rows, or those in their `selection`, were inserted or deleted.
    The second one has the files of `cdc` actions. If a commit has `cdc` actions, the first table has none of
    its files. All files have the partition values `_commit_version` and `_commit_timestamp`, those of the
    first table also `_change_type`."""

# --- log/actions.rs -----------------------------------------------------------------------------------------

def empty_adds() -> pa.Table: ...
def empty_removes() -> pa.Table: ...
def removes_of(adds: Any, deletion_timestamp: int, data_change: bool = True) -> pa.Table:
    """Returns the remove actions of these files, with their partitionValues, size, deletionVector and
    extendedFileMetadata."""

def adds_again(adds: Any, *, data_change: bool | None = None) -> pa.Table:
    """Returns these files as add actions for a new commit (statistics as JSON; tags and row ids are kept)."""

def absolute_adds(adds: Any, location: str) -> pa.Table:
    """Returns the files of the table at `location` with absolute paths, also of their vectors, and without
    row ids: the add actions of a shallow clone."""

def relocated_adds(adds: Any, location: str, live: Any, taken: Any) -> tuple[pa.Table, pa.Table]:
    """Returns the files of the table at `location` with the paths of their copies in another table, without
    row ids, and a table of the files to copy: from, to (strings, as for `Store.copy_from`), fresh (bool:
    no file has that path yet).

    `live`: adds of the other table. A file in it with the same path, size and time is the copy already.
    `taken`: paths of all objects of the other table."""

def physical_rows(adds: Any) -> pa.Array:
    """Returns numRecords of each file as int64: the number of its rows, deleted rows included; null if its
    statistics do not have it."""

def overlapping_paths(left: Any, right: Any) -> list[str]:
    """Returns the paths that both tables of actions contain (at most 10), compared decoded."""

def filter_adds(adds: Any, schema: TableSchema, predicate: Predicate | None, *,
                partitions_only: bool = False) -> pa.Table:
    """Returns those of `adds` that may contain a matching row."""

def files_that_may_match(files: Any, predicate: Predicate) -> pa.Table:
    """Returns those of the `files` of a scan that may contain a matching row, with all columns and in order.
    A path may occur several times."""

# --- log/snapshot.rs ----------------------------------------------------------------------------------------

@final
class Snapshot:
    """The live files of one version. Immutable; the results of `refresh` share segments of actions with it.
    """

    @staticmethod
    def load(store: Store, version: int, checkpoint: Sequence[str], commits: Sequence[tuple[int, str]], *,
             eager_limit: int | None = None,
             again: Callable[[int, bool], Snapshot] | None = None) -> Snapshot:
        """Loads a version.

        `checkpoint`: paths of its parts; empty: no checkpoint.
        `commits`: (version, path) of the commits after it, ascending and without a gap; a compacted range has
            its last version.
        `eager_limit`: bytes; the file actions of a larger checkpoint are decoded on demand. None: all are
            decoded at once.
        `again`: builds the version again if a file of the log that is still needed was deleted (the second
            argument is False), or if the checkpoint is damaged (True). Without it, or if it fails,
            FileNotFoundError or ProtocolError is raised."""
    @staticmethod
    def first(store: Store, actions: Sequence[str], adds: Any, *, eager_limit: int | None = None) -> Snapshot:
        """Returns version 0 without reading its commit. `actions`: its lines except those of files. `adds`:
        its add actions. `eager_limit`: bytes; the file actions of a larger later commit are not held in
        memory."""
    def refresh(self, store: Store, commits: Sequence[tuple[int, str]]) -> Snapshot:
        """Returns the version after these commits, which are read. Their file actions are compared with a
        large checkpoint when files are first needed."""
    @property
    def version(self) -> int: ...
    @property
    def protocol(self) -> str | None: ...
    @property
    def metadata(self) -> str | None: ...
    @property
    def protocol_place(self) -> str | None:
        """Where the protocol action is: file and line, or file and row. `metadata_place` is that of the
        metadata action."""
    @property
    def metadata_place(self) -> str | None: ...
    @property
    def transactions(self) -> dict[str, tuple[int, int | None]]: ...
    @property
    def domains(self) -> dict[str, str]: ...
    @property
    def file_count(self) -> int: ...
    @property
    def size_in_bytes(self) -> int: ...
    @property
    def num_records(self) -> int | None:
        """Number of logical rows (without deleted ones) of all live files; None if a file has no numRecords.
        """
    @property
    def with_vectors(self) -> tuple[int, int, int]:
        """Number of live files with a deletion vector, their bytes, and the bytes of their vectors."""
    def size_histogram(self, bounds: Sequence[int] | None = None) -> tuple[list[int], list[int], list[int]]:
        """Returns the lower bounds of the bins of file sizes, and the number of files and of bytes in each
        bin.
        `bounds`: ascending from 0; None: delta-spark's, which are counted once and then updated from version
        to version."""
    @property
    def deleted_records(self) -> tuple[int, int, list[int]]:
        """Number of deleted rows, number of files with a vector, and a histogram of all files by the number
        of their deleted rows: 0, 1-9, 10-99, ... (ten bins)."""
    def files(self, schema: TableSchema, predicate: Predicate | None = None, *,
              skipping: bool = True) -> FileSelection:
        """Returns the live files that may contain a matching row, ordered by path. `skipping=False`: only
        partition values leave files out, not statistics."""
    def listing(self, schema: TableSchema, predicate: Predicate | None = None, *,
                statistics_columns: Sequence[str] | None = None, store: Store | None = None,
                deleted_rows: bool = False) -> Batches:
        """Returns the rows of `DeltaTable.files()`, with typed columns."""
    def tombstones(self, min_deletion_timestamp: int | None = None) -> pa.Table: ...
    def write_checkpoint(self, store: Store, path: str, *, min_deletion_timestamp: int,
                         min_transaction_timestamp: int | None = None, stats_as_json: bool = True,
                         stats_as_struct: bool = True, schema: TableSchema | None = None,
                         overwrite: bool = True,
                         second_form: tuple[str, int] | None = None) -> dict[str, Any]:
        """Writes a checkpoint, atomically. Returns size (number of actions), size_in_bytes (of all its
        files), num_of_add_files, top_size_in_bytes (of `path` itself), sidecars (JSON of the actions),
        kept_sidecars (how many of them existed before), schema (JSON of the checkpoint's columns, or
        None).

        The checkpoint keeps tombstones that were deleted after `min_deletion_timestamp`, and transactions
        without a time or updated since `min_transaction_timestamp` (both in ms). `stats_as_struct` requires
        `schema`. `second_form`: for PROTOCOL.md's V2 spec with sidecars, a new id for their names and their
        time (ms); `path` then ends with .json or .parquet. Raises InvalidArgumentError if the file exists and
        `overwrite` is False."""

@final
class FileSelection:
    """The files that planning has selected, as `adds`, and counts of skipped files."""

    @property
    def adds(self) -> pa.Table: ...
    @property
    def live_twice(self) -> str | None:
        """The path of a file that is live with two vectors, or None. No log should have such a file, because
        its rows would be read twice."""
    @property
    def total_files(self) -> int: ...
    @property
    def total_bytes(self) -> int: ...
    @property
    def skipped_by_partition(self) -> int: ...
    @property
    def skipped_by_statistics(self) -> int: ...

@final
class Batches:
    """Rows in memory, which any Arrow library can read."""

    @property
    def num_rows(self) -> int: ...
    def to_table(self) -> pa.Table:
        """Returns the rows as a pyarrow.Table. Only this call imports pyarrow."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def read_definition(store: Store, checkpoint: Sequence[str],
                    commits: Sequence[tuple[int, str]]) -> tuple[str | None, str | None]:
    """Returns the JSON of the newest protocol and metaData of a version, without reading file actions. The
    arguments are those of `Snapshot.load`."""

# --- log/checkpoint.rs --------------------------------------------------------------------------------------

def checkpoint_sidecars(store: Store, parts: Sequence[str]) -> list[str]:
    """Returns the names of the sidecars that a checkpoint refers to. File actions of a Parquet file are not
    read.
    `parts`: all files of the checkpoint."""

def canonical_json(document: str) -> str:
    """Returns a JSON document in the form whose MD5 is its checksum (PROTOCOL.md: JSON checksum), without its
    field `checksum`: each leaf is written as path=value, with the parts of the path joined by +, in the
    order of the bytes of the paths. Raises ProtocolError if the text is not JSON."""

# --- predicate.rs -------------------------------------------------------------------------------------------

@final
class Predicate:
    """The typed predicate tree over logical columns: comparisons, IN, prefixes, IS NULL, AND, OR, NOT.

    Its JSON has these nodes; a literal is text as in PROTOCOL.md, "Partition Value Serialization", and so
    exact in the type of its column:

    - {"op": "=" | "!=" | "<" | "<=" | ">" | ">=", "column": [names], "literal": text}
    - {"op": "in", "column": [...], "literals": [...]}
    - {"op": "starts_with", "column": [...], "literal": text}
    - {"op": "is_null", "column": [...]}
    - {"op": "and" | "or", "args": [...]}, {"op": "not", "arg": ...}
    - {"op": "true" | "false" | "null"}
    """

    @staticmethod
    def from_json(text: str, schema: TableSchema) -> Predicate: ...
    @staticmethod
    def from_pyarrow(expression: Any, schema: TableSchema) -> tuple[Predicate | None, bool]:
        """Translates a `pyarrow.dataset.Expression` as far as the tree can express it. The second result is
        True if nothing of the expression is left."""
    @staticmethod
    def among(column: Sequence[str], values: Any, schema: TableSchema, *, most: int) -> Predicate | None:
        """Returns the predicate that `column` is one of the `values` (an Arrow array of its type) that are
        not null. None if there are more than `most` values, unless they are integers or dates that are
        close to each other: a look-up of these takes the same time for any number."""
    @property
    def json(self) -> str: ...
    @property
    def columns(self) -> list[str]: ...           # top-level logical names
    def is_partition_only(self) -> bool: ...
    def __and__(self, other: Predicate) -> Predicate: ...

# --- data_file.rs -------------------------------------------------------------------------------------------

def read(store: Store, schema: TableSchema, files: Any, columns: Sequence[str],
         predicate: Predicate | None = None, *,
         row_ids: bool = False, constants: Sequence[str] = (), row_tracking: tuple[str, str] | None = None,
         threads: int | None = None, batch_size: int = 65536, limit: int | None = None,
         memory_limit: int | None = None, pruning: bool = True,
         encoded: Sequence[str] = (), views: Sequence[str] = ()) -> ReadStream:
    """Reads the logical rows of `files`, without deleted rows, in the order of the files and of the rows in
    them.

    `files`: the columns of `add` (path, size, partitionValues and deletionVector are read), the columns named
        by `constants`, and optionally `selection` (binary, a portable bitmap) with `keep_selected` (bool):
        True reads only these rows, False all others. Rows in the deletion vector are left out in both cases.
    `columns`: top-level logical names in output order; a name "a.b.c" reads only that field, as a struct of
        one branch.
    `predicate`: rows for which it is not true are left out.
    `row_ids`: True to append `__deltaic_file` (int32, the file's ordinal: its position in `files`, or its
        value of `__deltaic_file` if `files` has that column) and `__deltaic_row` (int64, the row's index in
        its file).
    `constants`: columns of `files` whose value is added to each row of the file.
    `row_tracking`: names of the hidden columns with row ids and row commit versions. Both are returned after
        the data columns; nulls are replaced by `baseRowId` plus the row's index and by
        `defaultRowCommitVersion` of `files`. A file without these is a ProtocolError.
    `memory_limit`: maximum bytes, fetched and decoded, of all scans of the process together (None: 1 GiB).
    `encoded`: names of top-level columns. Their texts are returned as dictionary(int32, string), and decimals
        of at most 9 and 18 digits as decimal32 and decimal64: mostly the form in the file, so that an engine
        that accepts these types needs no copy.
    `views`: names of top-level columns whose texts are returned as string_view.
    """

def dictionary_columns(store: Store, schema: TableSchema, files: Any, columns: Sequence[str]) -> list[str]:
    """Returns those of the string `columns` whose values are all dictionary-encoded in the largest of
    `files`. Reads the footer of that file."""

def plain_files(store: Store, schema: TableSchema, files: Any,
                columns: Sequence[str]) -> tuple[list[str], list[str], int, bool] | None:
    """Tells if other Parquet readers read local data files like `read`: all rows are live, and each file has
    each column, in the table's own type, under one name. Returns None if not. Otherwise returns the
    absolute path of each file, the name of each column in the files, the number of bytes that
    `verify_pages` would read, and True if this was called before for all of these files in this process.
    Reads the footers of the files. The arguments are those of `read`."""

def verify_pages(store: Store, schema: TableSchema, files: Any, columns: Sequence[str]) -> None:
    """Compares the checksums of all pages of plain files, once in a process for each column, because other
    Parquet readers may not do so. Raises ProtocolError for a page with another checksum. The arguments are
    those of `read`."""

@final
class ReadStream:
    """An Arrow stream of rows, which can be read once (`__arrow_c_stream__`). It keeps its first error, which
    `check()` raises again."""

    @property
    def schema(self) -> pa.Schema: ...
    def to_reader(self) -> pa.RecordBatchReader: ...
    def to_table(self) -> pa.Table: ...
    def check(self) -> None: ...
    def cancel(self) -> None:
        """Ends the stream: its reader gets an error with the next batch."""
    @property
    def metrics(self) -> dict[str, int]:
        """Counts so far: files, row_groups, row_groups_read, bytes_read, rows."""
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def conform(data: Any, schema: TableSchema, *, casting: Literal["strict", "try"] = "strict",
            unique_keys: bool = False) -> ReadStream:
    """Returns a stream of data with the table's logical columns: matched by name without case, in the table's
    order, cast if no value changes; a missing column is null. Raises SchemaMismatchError with column,
    value and types; with `unique_keys` also for the first map with a repeated key."""

def write(store: Store, schema: TableSchema, data: Any, options: str = "{}") -> pa.Table:
    """Writes data files from rows with the table's logical columns, partition columns included. Returns `add`
    actions with statistics.

    NOT NULL columns are checked (ConstraintViolationError). After an error or an interrupt all files of the
    call are deleted.

    `options`: a JSON object; every key is optional: target_file_size (bytes, 268435456), max_row_group_rows,
        max_row_group_bytes, compression ("zstd(3)"), data_page_size, data_page_rows, dictionary_page_size,
        write_batch_size, statistics_truncate_length (32), default and columns ({dictionary, encoding,
        statistics, bloom_filter, bloom_filter_fpp, bloom_filter_ndv}), statistics_columns (list of logical
        dotted names; null: the first `indexed_columns`), indexed_columns (32; -1: all), string_prefix_length
        (32; maximum characters of text in Delta's minima and maxima), tight_bounds (bool;
        null: absent), random_prefix_length (0: none), data_change (true), tags ({}), threads, memory_limit
        (bytes), max_records_per_file, modification_time (ms; null: now), second_version (false; true: pages
        and encodings of Parquet's version 2), partition_columns (false; true: data files have the partition
        columns, too), change_files (false; true: the files are written below `_change_data`),
        file_per_partition_order (bool: the input is grouped by partition), synced_by_commit (false: the files
        are durable when the call returns; true: the commit makes them durable,
        `Store.put_if_absent(after=)`), pooled_small_files (false; true: files of few rows are encoded on the
        thread pool, for tests)
    """

def file_statistics(store: Store, schema: TableSchema, files: Any, options: str = "{}", *,
                    tight: bool = False) -> pa.Table:
    """Returns these `add` rows with statistics from the footers; with `tight` from the live rows, which are
    read. Rows without `size` get it. Raises SchemaMismatchError if the columns of a file do not fit."""

def has_dropped_columns(store: Store, schema: TableSchema, files: Any) -> pa.Array:
    """Returns a mask of the `add` rows whose files have columns, or fields in structs, that the table does
    not have. Reads the footers."""

def hand_over(store: Store, schema: TableSchema, files: Any, *, bits: bool = False) -> pa.Table:
    """Returns what another engine's Parquet reader must know about each of `files` (as for `read`), in order.

    Columns: __deltaic_place (string: a URI without escapes), __deltaic_shown (string: as Hadoop escapes it),
    __deltaic_size (int64), __deltaic_status (binary: Hadoop's FileStatus after its length in 4 bytes),
    __deltaic_rows (int8; 0: all rows, 1: all rows except a set, 2: only the set), the set as __deltaic_bits
    (binary: 64-bit words, little-endian) or, unless `bits` is True, as __deltaic_roaring (binary: one 32-bit
    bitmap) if that is much smaller, and the partition columns, typed, under their physical names."""

def adopt(store: Store, schema: TableSchema, folder: str, options: str = "{}", *,
          footers: bool = True) -> pa.Table:
    """Returns `add` actions for the files that Spark has just written below `folder`, with statistics from
    their footers unless `footers` is False. `folder` has a level `name=value` for each partition column,
    escaped as in Hive (a timestamp with a zone as microseconds since 1970). Names that begin with `_` or
    `.` are skipped. `options`: those of `write`."""

def partition_folders(files: Any, *, hive: bool = True) -> list[tuple[list[str], str]]:
    """Returns the names of the partition columns by level of folders, each list with the first file that lies
    in such folders: one entry if the folders of all files name the same columns. The names are empty if
    folders are named by values alone. `files`, `hive`: as for `Survey`."""

@final
class Survey:
    """Parquet files of any writer, with the information in their footers and folders. Each footer is read
    once.

    `files`: path, size and modification_time, as returned by `Store.list_from`. `hive`: True if folders are
        named `name=value`, False if they are named by values alone.
    `progress`: called regularly, on any thread, with the number of footers read."""

    def __new__(cls, store: Store, files: Any, *, hive: bool = True,
                progress: Callable[[int], object] | None = None) -> Survey: ...
    @property
    def schemas(self) -> list[tuple[str, str]]:
        """JSON of the Delta schemas of the files, each with the first file that has it."""
    @property
    def arrow_schemas(self) -> list[tuple[pa.Schema, str]]:
        """Arrow schemas of the files, with field ids as `PARQUET:field_id` in the metadata of fields, each
        with the first file that has it."""
    def values(self, level: int) -> pa.Array:
        """Returns the partition value of each file at this level (string)."""
    def adds(self, schema: TableSchema, options: str = "{}", *, statistics: bool = True) -> pa.Table:
        """Returns `add` actions, with statistics from the footers. The partition columns of `schema` are in
        the order of the levels. `options`: those of `write`. Raises SchemaMismatchError if the columns of
        a file do not fit."""

def footers(store: Store, schema: TableSchema, adds: Any, options: str = "{}") -> pa.Table:
    """Returns these `add` actions of files that Spark has written, with statistics from their footers."""

# --- deletion_vector.rs -------------------------------------------------------------------------------------

@final
class DeletionVector:
    """An immutable set of row indexes of one data file. `|`, `&` and `-` are union, intersection and
    difference.

    >>> vector = deltaic.DeletionVector.from_rows([3, 4, 7])
    >>> len(vector), 4 in vector, list(vector - deltaic.DeletionVector.from_rows([4]))
    (3, True, [3, 7])
    """

    @staticmethod
    def from_rows(rows: Any) -> DeletionVector:
        """Returns the set of these rows: an iterable of int, a NumPy array or an Arrow array, in any order.
        Raises InvalidArgumentError for a negative or too large index.

        >>> list(deltaic.DeletionVector.from_rows([3, 1]))
        [1, 3]
        """
    @staticmethod
    def from_bytes(data: bytes) -> DeletionVector:
        """Decodes PROTOCOL.md's portable format. Raises ProtocolError for malformed bytes.

        >>> vector = deltaic.DeletionVector.from_rows([1, 3])
        >>> deltaic.DeletionVector.from_bytes(vector.to_bytes()) == vector
        True
        """
    @staticmethod
    def from_inline(text: str) -> DeletionVector:
        """Decodes the Z85 text of an inline vector (`pathOrInlineDv`). Raises ProtocolError for malformed
        text.

        >>> vector = deltaic.DeletionVector.from_rows([1, 3])
        >>> deltaic.DeletionVector.from_inline(vector.to_inline()) == vector
        True
        """
    @property
    def cardinality(self) -> int:
        """The number of rows in the set."""
    def __len__(self) -> int: ...
    def __contains__(self, row: int) -> bool: ...
    def __iter__(self) -> Iterator[int]: ...
    def __or__(self, other: DeletionVector) -> DeletionVector: ...
    def __and__(self, other: DeletionVector) -> DeletionVector: ...
    def __sub__(self, other: DeletionVector) -> DeletionVector: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...
    def rows(self) -> pa.Array:
        """Returns the row indexes in ascending order, as an Arrow uint64 array.

        >>> deltaic.DeletionVector.from_rows([3, 1]).rows().to_pylist()
        [1, 3]
        """
    def to_bytes(self) -> bytes:
        """Returns PROTOCOL.md's portable format: magic number and bitmaps, without the frame of a file.

        >>> len(deltaic.DeletionVector.from_rows([1, 3]).to_bytes())
        36
        """
    def to_inline(self) -> str:
        """Returns the portable format as Z85 text, the `pathOrInlineDv` of an inline vector.

        >>> deltaic.DeletionVector.from_rows([1, 3]).to_inline()
        '^Bg9^0rr910000000000iXQKl0rr91000315c8Xg0rri4'
        """
    def filter(self, data: Any, first_row: int = 0) -> pa.RecordBatch | pa.Table:
        """Returns the rows of Arrow data of the file, in the order of the file, that are not in the set.
        `first_row`: the index of the data's first row in the file.

        >>> vector = deltaic.DeletionVector.from_rows([1, 3])
        >>> vector.filter(pa.table({"id": [10, 11, 12, 13]})).to_pydict()
        {'id': [10, 12]}
        """
    def mask(self, first_row: int, count: int) -> pa.Array:
        """Returns a boolean for each of `count` rows from `first_row` on: True for a row that is not in the
        set.

        >>> vector = deltaic.DeletionVector.from_rows([1, 3])
        >>> vector.mask(0, 4).to_pylist()
        [True, False, True, False]
        """

def z85_encode(data: bytes) -> str: ...        # padded with zeros to a multiple of 4 bytes
def z85_decode(text: str) -> bytes: ...
def z85_encode_values(values: Any) -> pa.Array: ...      # Arrow binary -> string, null stays null
def z85_decode_values(values: Any) -> pa.Array: ...      # Arrow string -> binary
def rows_deleted(vectors: Any, rows: Any) -> pa.Array:
    """Returns a boolean for each row index (Arrow integers): True if it is in the vector beside it (Arrow
    binary, portable format). Without a vector it is false, without an index null."""
def crc32(data: bytes) -> int: ...
def set_vector_limit(size: int) -> int: ...    # bytes that one vector may have (67108864), for the
                                               # process; returns the limit before
def read_deletion_vector(store: Store, storage_type: str, path_or_inline: str, offset: int | None,
                         size_in_bytes: int, cardinality: int,
                         num_records: int | None = None) -> DeletionVector:
    """Fetches only the bytes of this vector, and checks its size, CRC-32 and cardinality, and that no row is
    `num_records` or larger, if that is given."""

@final
class RowIds:
    """Rows by file, collected from pairs (file ordinal int32, row index int64) in one bitmap for each file.
    """

    @staticmethod
    def collect(row_ids: Any, *, unique: bool = False) -> RowIds:
        """Collects a stream with the columns `__deltaic_file` and `__deltaic_row`. `unique`: True to raise
        MergeCardinalityError for a repeated pair."""
    @staticmethod
    def of_bitmaps(bitmaps: Any, *, unique: bool = False) -> RowIds:
        """Joins the results of `bitmaps` of several collections."""
    def bitmaps(self) -> pa.Table:
        """Returns a row for each file: `__deltaic_file`, `__deltaic_bitmap` (binary, portable format),
        `__deltaic_count` (int64: number of collected pairs)."""
    @property
    def file_count(self) -> int: ...
    def __len__(self) -> int: ...
    def select(self, files: Any, *, keep_selected: bool = True) -> pa.Table:
        """Returns the rows of `files` whose ordinal (the position, or `__deltaic_file`) has rows here, with
        the columns `selection`, `keep_selected` and `__deltaic_file`."""

def mark_deleted(store: Store, files: Any, rows: RowIds, *, deletion_timestamp: int, inline: bool = False,
                 prefix_length: int = 0, target_size: int = 2097152) -> MarkedFiles:
    """Adds `rows` to the vectors of `files` (add rows), and writes the vectors, several to one file. Reads
    the footer of a file without numRecords. A row that is deleted already counts once. The files of
    vectors are not durable yet; the commit makes them durable (`Store.put_if_absent(after=)`)."""

@final
class MarkedFiles:
    @property
    def adds(self) -> pa.Table: ...               # with merged vectors, tightBounds=false; none for a file
                                                  # with no row left
    @property
    def removes(self) -> pa.Table: ...
    @property
    def metrics(self) -> dict[str, int]:
        """num_deleted_rows, num_deletion_vectors_added, _removed, _updated (as delta-spark counts them),
        num_removed_files (files without remaining rows), num_bytes_written."""
    @property
    def written(self) -> list[str]: ...           # vector files, to delete where the commit fails for good

@final
class RebasedRows:
    """The rows of a command after another commit."""

    @property
    def files(self) -> pa.Table: ...              # the files that still have some of them, as add rows with
                                                  # `__deltaic_file`
    @property
    def rows(self) -> RowIds: ...
    @property
    def deleted(self) -> list[tuple[str, int]]:
        """Files in which the commit deleted some of the rows, and how many."""
    @property
    def is_changed(self) -> bool: ...             # whether the commit touched one of the files

def rebase_rows(store: Store, files: Any, rows: RowIds, adds: Any, removes: Any) -> RebasedRows:
    """Returns `rows`, found in `files` (add rows as the command read them), after a commit with these
    actions."""

def adds_with_new_rows(store: Store, adds: Any, removes: Any) -> pa.Table:
    """Returns those of a commit's add rows whose files may have new rows: all except files in which the
    commit only deleted rows."""

# --- expressions.rs -----------------------------------------------------------------------------------------

def evaluate_kernel(arguments: Sequence[Any]) -> pa.Array:
    """Evaluates a kernel of Spark's SQL functions. `arguments`: its name as an array of text (the same in
    every row), then its arguments as arrays of that length.

    Raises InvalidArgumentError if Spark fails on a row; the message begins with Spark's error condition in
    brackets."""

# --- iceberg.rs ---------------------------------------------------------------------------------------------

def iceberg_manifest(adds: Any, schema: TableSchema, options: str, former: Sequence[bytes],
                     gone: Sequence[str]) -> tuple[bytes, str]:
    """Returns a manifest, and JSON of its contents: the numbers of files and rows that it adds, keeps and
    deletes, and `min_sequence_number`.

    `adds`: add actions with the addresses of the files (`location`) and of their vectors (`vectorLocation`).
    `options`: JSON of `version` (of the format), `deletes` (True if entries are vectors), `snapshot_id`,
        `sequence_number`, `partition` (pairs of a name and an id), `header` (metadata of the file).
    `former`: manifests whose entries are kept; entries of data files at the addresses `gone` become deleted
    ones."""
def iceberg_manifest_list(manifests: str, header: str, version: int) -> bytes:
    """Returns a manifest list of these manifests (JSON, with the specification's names). `header`: JSON of
    the file's metadata."""
def read_iceberg_manifest_list(data: bytes) -> str:
    """Returns the manifests in a manifest list, as JSON."""

# --- matching.rs --------------------------------------------------------------------------------------------

def join(left: Any, right: Any, keys: Sequence[tuple[str, str]], *, most: int,
         keep_right: bool = False) -> pa.Table | None:
    """Returns the pairs of rows with equal keys: the columns of `left`, then those of `right`. None if there
    are more than `most` pairs.

    `keys`: (column of `left`, column of `right`), each pair of one Arrow type. A null key equals nothing.
    `keep_right`: True to add rows of `right` without a match, with nulls for `left`.

    Raises InvalidArgumentError for an unknown column, and for keys of two types."""

# --- zorder.rs ----------------------------------------------------------------------------------------------

@final
class RangeBounds:
    """Sampled boundaries of columns, which divide the values of each column into ranges of about equal
    weight."""

    @staticmethod
    def sample(data: Any, columns: Sequence[str], *, ranges: int = 1000, sample_size: int = 100000,
               seed: int = 0) -> RangeBounds: ...
    @staticmethod
    def of(columns: Sequence[str], boundaries: Sequence[Any]) -> RangeBounds:
        """Returns given boundaries: an array for each column."""
    @property
    def boundaries(self) -> list[pa.Array]: ...

def curve_keys(data: Any, bounds: RangeBounds, curve: Literal["zorder", "hilbert"]) -> pa.RecordBatchReader:
    """Returns `data` with a column `__deltaic_key` at its end: int64 if the bits of all columns fit in 63,
    else binary, in the order of its bytes."""

def range_ids(values: Any, bounds: Any) -> pa.Array: ...          # null -> 0
def interleave_bits(columns: Sequence[Any]) -> pa.Array: ...      # int32 arrays -> binary, 4 bytes a column,
                                                                  # most significant first
def hilbert_index(columns: Sequence[Any], bits: int) -> pa.Array: ...  # int32 arrays -> binary
