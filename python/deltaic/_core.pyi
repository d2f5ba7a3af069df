"""The compiled module: bytes, files and rows. One section per file of `rust/src/python/`.

Arrow goes in as any object with `__arrow_c_stream__` / `__arrow_c_array__` / `__arrow_c_schema__` and comes
out as pyarrow. Columns of `add` and `remove` tables carry PROTOCOL.md's own names (camelCase), as in the log.
A path in such a table is the log's text, percent-encoded; it is decoded and resolved in one place, when a
file is opened. Errors are the classes of `deltaic.errors`. Every call that may take long releases the
interpreter lock and checks signals.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, final

import pyarrow as pa

__version__: str

# --- interrupt.rs -------------------------------------------------------------------------------------------

@final
class Interrupt:
    """A wish to stop that one thread hands to another: Python tells the main thread alone of Ctrl-C."""

    def __new__(cls) -> Interrupt: ...
    def watch(self) -> None:
        """From now on, calls of this module in the present thread end with KeyboardInterrupt once it is to
        stop."""
    def stop(self) -> None: ...

# --- schema.rs ----------------------------------------------------------------------------------------------

@final
class TableSchema:
    """A Delta schema as Rust sees it: logical names, physical names and field ids, partition columns.
    Immutable.

    `schema`: the metadata action's schemaString. `column_mapping`: "none" | "name" | "id"
        (delta.columnMapping.mode).
    """

    def __new__(cls, schema: str, partition_columns: Sequence[str] = (), column_mapping: str = "none") -> TableSchema: ...
    @property
    def json(self) -> str: ...
    @property
    def partition_columns(self) -> list[str]: ...
    @property
    def column_mapping(self) -> Literal["none", "name", "id"]: ...
    def to_arrow(self, columns: Sequence[str] | None = None, *, encoded: Sequence[str] = (), views: Sequence[str] = ()) -> pa.Schema:
        """Logical Arrow schema; Delta field metadata becomes Arrow field metadata (values as text).
        `encoded`, `views`: columns with the types that `read` gives those."""
    def with_hidden(self, names: Sequence[str], ids: Sequence[int] = ()) -> TableSchema:
        """This schema with columns of type long at its end that data files may have and the table does not
        show; found by name whatever the column mapping, without statistics. `ids`: of these columns in
        Parquet files that are written."""

def keep_freed_memory(milliseconds: int) -> None: ...  # before the system gets it back; MIMALLOC_PURGE_DELAY of the user wins
def schema_from_arrow(schema: Any) -> str:
    """Arrow schema -> Delta schema JSON (struct), with the table of conversions in API.md section 1."""

def type_from_arrow(data_type: Any) -> str:
    """Arrow type (anything with `__arrow_c_schema__`) -> JSON of the Delta type."""

# --- log_store.rs, store.rs ---------------------------------------------------------------------------------

class LogStore(Protocol):
    """What a user's store must do. Paths are relative to the table, decoded. Called from any thread.

    A missing object: FileNotFoundError. Whatever else is raised reaches the caller as it is.
    """

    def list_from(self, prefix: str, start_after: str | None, recursive: bool, /) -> Iterable[tuple[str, int, int]]:
        """(path, size, modification time in ms) of the objects in folder `prefix`, after the name
        `start_after` in it; any order."""
    def head(self, path: str, /) -> tuple[int, int] | None:
        """(size, modification time in ms), None where there is no such object."""
    def read(self, path: str, start: int = 0, end: int | None = None, /) -> bytes:
        """Bytes `start` to `end` (exclusive)."""
    def write_if_absent(self, path: str, data: bytes, /) -> bool | None:
        """True: created, whole and visible at once. False (or FileExistsError): there is one already. None
        (or TimeoutError, ConnectionError): nobody knows. Any other exception says that nothing was written.
        """
    def write(self, path: str, data: bytes, /) -> None:
        """Creates or replaces, atomically."""
    def delete(self, path: str, /) -> bool:
        """False where there was none."""

@final
class StagedObject:
    """A durable object that waits for its name; one that got none leaves nothing behind."""

    def publish(self, path: str) -> bool:
        """Gives it this name, unless there is such an object: then False. Others see it from now on; its name
        may be lost with the power."""
    def settle(self) -> None:
        """Makes its name durable."""

@final
class Store:
    """A table's place: all bytes go through it. Paths are relative to it, '/'-separated, decoded.

    `location`: an absolute local path, `file://`, `memory://name/...`, or a URL of S3, Google Cloud Storage
        or Azure.
    `durable`: fsync files and directories of local stores. Pickles by location and non-secret options.
    """

    def __new__(cls, location: str, options: Mapping[str, str] | None = None, *, durable: bool = True,
                allowed_roots: Sequence[str] = (),
                credentials: Callable[[str], tuple[dict[str, str], float | None]] | None = None,
                cache: tuple[str, int] | None = None) -> Store:
        """`credentials`: called with the bucket's URL, gives storage options and until when (seconds since
            1970) they are valid.
        `cache`: a folder for local copies of what is immutable in an object store, and the upper bound of
            their bytes."""
    @staticmethod
    def from_python(log_store: LogStore, location: str) -> Store:
        """A user's object as a store. It pickles if the object does."""
    @property
    def location(self) -> str: ...
    @property
    def is_remote(self) -> bool:
        """Each call is a request over a network."""
    def buffered(self, limit: int) -> Store:
        """The store of a command that reads the same files several times: at most `limit` bytes of small
        pieces that it has read stay in memory as long as it lives, and are not fetched again."""
    def list_from(self, prefix: str, start_after: str | None = None, *, recursive: bool = False) -> pa.Table:
        """Objects whose path begins with the folder `prefix` and (as text) lies after it + `start_after`,
        sorted by path: path (string), size (int64), modification_time (int64, ms), symlink (bool). A missing
        folder is empty."""
    def entries(self, prefix: str, start_after: str | None = None) -> list[tuple[str, int, int]]:
        """(path, size, modification time in ms) of the objects in one folder, as `list_from`: for folders of
        few, as nothing is imported."""
    def first_look(self, path: str, folder: str, most: int) -> tuple[bytes | None, list[tuple[str, int, int]] | None] | None:
        """A small file and all of `entries(folder)`, asked for at the same time. The file is None where it is
        missing, unreadable or larger than `most` bytes, the entries where they are more than 250; None in
        place of both where the store makes no two requests at a time."""
    def expect_commit(self) -> None:
        """A commit is likely to follow: begins to ask whether the store keeps put-if-absent, where that is
        not known. Waits for nothing."""
    def head(self, path: str) -> tuple[int, int] | None:
        """(size, modification time in ms), None where there is no such object."""
    def look_up(self, folder: str, names: Sequence[str]) -> list[tuple[int, int] | None] | None:
        """Looks up the names of a folder: (size, modification time in ms), None for a missing file. None
        instead of the list for a store of which a listing takes fewer requests."""
    def get(self, path: str, *, most: int | None = None) -> bytes:
        """FileNotFoundError where there is none, ProtocolError where it has more than `most` bytes."""
    def put_if_absent(
        self, path: str, data: bytes, *, durable: bool = True, after: Sequence[str] | None = None
    ) -> Literal["created", "exists", "unknown"]:
        """`durable=False`: it may be lost with the power, whatever the store was opened with. `after`:
        files of this store that are made durable before the object becomes visible, all in one wait on a
        local disk; those that are missing are passed over."""
    def stage(self, folder: str, data: bytes, *, after: Sequence[str]) -> StagedObject | None:
        """Makes `data` and the files `after` durable in `folder`, without a name yet: what takes long of a
        put-if-absent, done before it is known which name is free. None where the store has no such thing."""
    def put(self, path: str, data: bytes) -> None: ...
    def delete(self, paths: Any) -> int:
        """Arrow array of paths (or a sequence) -> how many were there. Missing ones are no error. Never
        follows a link."""
    def copy_from(self, source: Store, origins: Any, paths: Any) -> int:
        """Copies objects of another store, by several threads; -> bytes. `origins`: where they are in
        `source`, or absolute paths and URLs that it may read; `paths`: what they are called here. The copies
        are not durable yet on a local disk: the commit makes them so."""
    def remove_empty_directories(self, prefix: str = "") -> int: ...

def check_cache_folder(path: str) -> None:
    """InvalidArgumentError where others than this user may read or write the folder; a missing one is
    none."""

# --- log.rs -------------------------------------------------------------------------------------------------

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
    """commitInfo's JSON of a commit, found without parsing the other actions."""

def read_commit_infos(store: Store, paths: Sequence[str]) -> list[str | None]:
    """`read_commit_info` of several commits, read by several threads."""

def commit_body(actions: Sequence[str], adds: Any | None = None, removes: Any | None = None, cdc: Any | None = None) -> bytes:
    """JSON lines of a commit: `actions` (each a JSON object on one line, commitInfo first), then removes,
    then adds. ProtocolError where one path is added twice or removed twice."""

def empty_adds() -> pa.Table: ...
def empty_removes() -> pa.Table: ...
def removes_of(adds: Any, deletion_timestamp: int, data_change: bool = True) -> pa.Table:
    """The remove actions of these files: partitionValues, size, deletionVector, extendedFileMetadata carried
    over."""

def canonical_json(document: str) -> str:
    """A JSON document in the form whose MD5 is its checksum (PROTOCOL.md: JSON checksum), without its own
    field `checksum`: each leaf as path=value, the path's parts joined by +, ordered by the bytes of the path.
    ProtocolError: not JSON."""

def physical_rows(adds: Any) -> pa.Array:
    """numRecords of each file, as int64: rows in it, also those that its vector deletes; null where its
    statistics do not say."""

def adds_again(adds: Any, *, data_change: bool | None = None) -> pa.Table:
    """These files as add actions to be written again (stats as JSON, tags, row ids kept)."""

def absolute_adds(adds: Any, location: str) -> pa.Table:
    """The files of the table at `location` by absolute paths, their vectors too, without row ids: what a
    shallow clone adds."""

def relocated_adds(adds: Any, location: str, live: Any, taken: Any) -> tuple[pa.Table, pa.Table]:
    """The files of the table at `location` by the paths of their copies in another table, without row ids,
    and what is to be copied: from, to (strings, as for `Store.copy_from`), fresh (bool: nothing has that path
    yet).

    `live`: adds of the other table, of which a file of the same path, size and time is the copy; `taken`:
        paths of all its objects."""

@final
class Batches:
    """Rows in memory, for any Arrow library."""

    @property
    def num_rows(self) -> int: ...
    def to_table(self) -> pa.Table:
        """Imports pyarrow, which nothing here does before."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Snapshot:
    """The live files of one version. Immutable; segments of actions are shared by `refresh`."""

    @staticmethod
    def load(store: Store, version: int, checkpoint: Sequence[str], commits: Sequence[tuple[int, str]], *, eager_limit: int | None = None,
             again: Callable[[int, bool], Snapshot] | None = None) -> Snapshot:
        """`checkpoint`: its parts (empty: none); `commits`: (version, path) after it, ascending, no gap; a
        compacted range stands as its last version. `eager_limit`: bytes; the file actions of a larger
        checkpoint are decoded on demand (None: of none). `again`: builds a version anew, for when such a
        file of the log is gone by then, or (True) is a checkpoint that turns out to be damaged; without
        it, or where that fails, FileNotFoundError or ProtocolError."""
    @staticmethod
    def first(store: Store, actions: Sequence[str], adds: Any, *, eager_limit: int | None = None) -> Snapshot:
        """Version 0, of whose commit nothing is read: `actions` are its lines but those of files, `adds` its
        add actions.
        `eager_limit`: bytes; the file actions of a larger later commit are not held in memory."""
    def refresh(self, store: Store, commits: Sequence[tuple[int, str]]) -> Snapshot:
        """After these commits, which are read; what they say of files is held against a large checkpoint when
        files are asked for."""
    @property
    def version(self) -> int: ...
    @property
    def protocol(self) -> str | None: ...
    @property
    def metadata(self) -> str | None: ...
    @property
    def protocol_place(self) -> str | None:
        """Where the protocol stands: file and line, or file and row; so the next."""
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
        """Logical rows (physical less deleted) of all live files; None where a file has no numRecords."""
    @property
    def with_vectors(self) -> tuple[int, int, int]:
        """How many live files have a deletion vector, their bytes, and those of the vectors."""
    def size_histogram(self, bounds: Sequence[int] | None = None) -> tuple[list[int], list[int], list[int]]:
        """Where the bins of file sizes begin, and of each the files and their bytes. `bounds`: ascending from
        0; None: delta-spark's, which are counted once and kept up to date from version to version."""
    @property
    def deleted_records(self) -> tuple[int, int, list[int]]:
        """Rows that vectors delete, files with a vector, and all files by how many of their rows are deleted:
        0, 1-9, 10-99, ... (ten bins)."""
    def files(self, schema: TableSchema, predicate: Predicate | None = None, *, skipping: bool = True) -> FileSelection:
        """Live files that may hold a matching row, ordered by path. `skipping=False`: partition values
        decide, statistics do not."""
    def listing(self, schema: TableSchema, predicate: Predicate | None = None, *, statistics_columns: Sequence[str] | None = None,
                store: Store | None = None, deleted_rows: bool = False) -> Batches:
        """What `DeltaTable.files()` shows (API.md section 2), typed."""
    def tombstones(self, min_deletion_timestamp: int | None = None) -> pa.Table: ...
    def write_checkpoint(self, store: Store, path: str, *, min_deletion_timestamp: int, min_transaction_timestamp: int | None = None,
                         stats_as_json: bool = True, stats_as_struct: bool = True, schema: TableSchema | None = None,
                         overwrite: bool = True, second_form: tuple[str, int] | None = None) -> dict[str, Any]:
        """Writes a checkpoint, atomically. -> size (actions), size_in_bytes (of all files), num_of_add_files,
        top_size_in_bytes (of `path` itself), sidecars (JSON of the actions), kept_sidecars (how many of them
        were there before), schema (JSON of the checkpoint's columns, or None).

        Kept: tombstones deleted after `min_deletion_timestamp`, transactions without a time or updated since
        `min_transaction_timestamp` (both ms). `stats_as_struct` needs `schema`. `second_form`: PROTOCOL.md's
        V2 spec, with sidecars: a fresh id for their names, and their time (ms); `path` ends with .json or
        .parquet. InvalidArgumentError where there is one already and not `overwrite`."""

@final
class FileSelection:
    """Result of planning: `adds` with `skipped` counts."""

    @property
    def adds(self) -> pa.Table: ...
    @property
    def live_twice(self) -> str | None:
        """The path of one of them that is live with two vectors, as no log should have it: its rows would be
        read twice."""
    @property
    def total_files(self) -> int: ...
    @property
    def total_bytes(self) -> int: ...
    @property
    def skipped_by_partition(self) -> int: ...
    @property
    def skipped_by_statistics(self) -> int: ...

def read_definition(store: Store, checkpoint: Sequence[str], commits: Sequence[tuple[int, str]]) -> tuple[str | None, str | None]:
    """JSON of the newest protocol and metaData of a version, with no look at its files. Arguments as for
    `Snapshot.load`."""

def compact_commits(store: Store, commits: Sequence[tuple[int, str]]) -> bytes:
    """The lines of the compacted range of these commits: (version, path), ascending, without a gap."""

def checkpoint_sidecars(store: Store, parts: Sequence[str]) -> list[str]:
    """Names of the sidecars that a checkpoint names; of a Parquet file's actions on files nothing is read.
    `parts`: all files of it."""

def overlapping_paths(left: Any, right: Any) -> list[str]:
    """Paths that both tables of actions name (at most 10), compared decoded."""

def filter_adds(adds: Any, schema: TableSchema, predicate: Predicate | None, *, partitions_only: bool = False) -> pa.Table:
    """Those of `adds` that may hold a matching row."""

def files_that_may_match(files: Any, predicate: Predicate) -> pa.Table:
    """Those of the `files` of a scan that may hold a matching row, with all their columns and in their order.
    A path may come several times."""

def read_changes(
    store: Store, commits: Sequence[tuple[int, str, int | None]], partition_columns: Sequence[str]
) -> tuple[list[str | None], pa.Table, pa.Table]:
    """What commits changed: the JSON of each one's `metaData`, and two tables of files as for `read`, in the
    order of the commits.

    `commits`: (version, path of its file, its time in ms or None for its own `inCommitTimestamp`).
        `partition_columns`:
    physical names; a value that a remove action lacks is null, and one without `partitionValues` is a
    ProtocolError. The first table has files of which all rows, or those of their `selection`, were inserted
    or deleted; the second one the files of `cdc` actions, and where a commit has some, the first one has none
    of it. Partition values of all files: `_commit_version`, `_commit_timestamp`, those of the first table
    `_change_type`, too."""

# --- predicate.rs -------------------------------------------------------------------------------------------

@final
class Predicate:
    """The typed predicate tree (compare, in, prefix, is null, and, or, not), over logical columns.

    JSON: {"op": "=" | "!=" | "<" | "<=" | ">" | ">=", "column": [names], "literal": text}   text as
    PROTOCOL.md's partition values: "Partition Value Serialization", so exact in the column's own type {"op":
    "in", "column": [...], "literals": [...]}, {"op": "starts_with", "column": [...], "literal": text}, {"op":
    "is_null", "column": [...]}, {"op": "and" | "or", "args": [...]}, {"op": "not", "arg": ...}, {"op": "true"
    | "false" | "null"}
    """

    @staticmethod
    def from_json(text: str, schema: TableSchema) -> Predicate: ...
    @staticmethod
    def from_pyarrow(expression: Any, schema: TableSchema) -> tuple[Predicate | None, bool]:
        """What of a `pyarrow.dataset.Expression` the tree can say, and whether that is all of it (then
        nothing is left to filter)."""
    @staticmethod
    def among(column: Sequence[str], values: Any, schema: TableSchema, *, most: int) -> Predicate | None:
        """`column` is one of the `values` (an Arrow array of its own type) that are not null. None for more
        than `most` of them, unless they are integers or dates that lie near each other: in these a look-up
        takes no longer where there are more."""
    @property
    def json(self) -> str: ...
    @property
    def columns(self) -> list[str]: ...           # top-level logical names
    def is_partition_only(self) -> bool: ...
    def __and__(self, other: Predicate) -> Predicate: ...

# --- data_file.rs -------------------------------------------------------------------------------------------

def read(store: Store, schema: TableSchema, files: Any, columns: Sequence[str], predicate: Predicate | None = None, *,
         row_ids: bool = False, constants: Sequence[str] = (), row_tracking: tuple[str, str] | None = None,
         threads: int | None = None, batch_size: int = 65536, limit: int | None = None, memory_limit: int | None = None, pruning: bool = True,
         encoded: Sequence[str] = (), views: Sequence[str] = ()) -> ReadStream:
    """Logical rows of `files`, deleted ones skipped, in the order of the files, then of the file.

    `files`: columns of `add` (path, size, partitionValues, deletionVector are read), and optionally
    `selection` (binary, a portable bitmap) with `keep_selected` (bool): true reads only these rows, false
    all but them (the vector's rows are left out besides); and the columns named by `constants`, which come
    back as columns of each row. `columns`: top-level logical names, in output order; a name "a.b.c" reads
    just that field as a struct of one branch. `row_ids`: appends `__deltaic_file` (int32, the file's
    ordinal: its position in `files`, or its `__deltaic_file` value where that column is given) and
    `__deltaic_row` (int64, absolute row index). `predicate`: rows for which it is not true are left out,
    exactly. `memory_limit`: bytes that all scans of the process may hold together, fetched and decoded
    (None: 1 GiB). `row_tracking`: names of the hidden columns that keep row ids and row commit versions.
    Both come after the data columns, completed from `baseRowId` and `defaultRowCommitVersion` of `files`;
    a file without these is a ProtocolError. `encoded`: names of top-level columns. Of these, texts come as
    dictionary(int32, string), decimals of at most 9 and 18 digits as decimal32 and decimal64: as files
    mostly have them, so that an engine that takes these types gets them without a copy. `views`: the same
    for others, whose texts come as string_view.
    """

def dictionary_columns(store: Store, schema: TableSchema, files: Any, columns: Sequence[str]) -> list[str]:
    """Those of the `columns` of type string whose values the largest of `files` has only as keys of
    dictionaries. Reads its footer."""

def plain_files(store: Store, schema: TableSchema, files: Any, columns: Sequence[str]) -> tuple[list[str], list[str], int, bool] | None:
    """Whether other Parquet readers read local data files as `read` does: all rows are live, and each column
    is in each file, in the table's own type, under one name. Returns None if not, else the absolute path of
    each file, the name of each column in the files, the number of bytes that `verify_pages` would read, and
    True if this was called before for all of these files in this process. Reads the files' footers. The
    arguments are those of `read`."""

def verify_pages(store: Store, schema: TableSchema, files: Any, columns: Sequence[str]) -> None:
    """Compares the checksums of all pages of plain files, which other Parquet readers may not do, once in a
    process for each column. Raises ProtocolError for a page that has another one. The arguments are those of
    `read`."""

@final
class ReadStream:
    """`__arrow_c_stream__`, once. Keeps its first error; `check()` raises that one again."""

    @property
    def schema(self) -> pa.Schema: ...
    def to_reader(self) -> pa.RecordBatchReader: ...
    def to_table(self) -> pa.Table: ...
    def check(self) -> None: ...
    def cancel(self) -> None:
        """Nobody wants more: whoever reads it gets an error with the next batch."""
    @property
    def metrics(self) -> dict[str, int]:
        """files, row_groups, row_groups_read, bytes_read, rows (so far)."""
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def conform(data: Any, schema: TableSchema, *, casting: Literal["strict", "try"] = "strict", unique_keys: bool = False) -> ReadStream:
    """A stream of data as the table's logical columns: matched by name without case, in the table's order,
    cast where no value changes; a missing column is null. SchemaMismatchError names column, value and types;
    with `unique_keys` also the first map with a key twice."""

def write(store: Store, schema: TableSchema, data: Any, options: str = "{}") -> pa.Table:
    """Writes data files (logical columns of the table in, partition columns included) -> `add` actions, with
    statistics.

    NOT NULL columns are checked (ConstraintViolationError). On any error or interrupt all files of the call
    are deleted.
    `options`: JSON object, every key optional:
    target_file_size (bytes, 268435456), max_row_group_rows, max_row_group_bytes, compression ("zstd(3)"),
    data_page_size, data_page_rows, dictionary_page_size, write_batch_size, statistics_truncate_length (32),
    default / columns ({dictionary, encoding, statistics, bloom_filter, bloom_filter_fpp, bloom_filter_ndv}),
    statistics_columns (list of logical dotted names; null: the first `indexed_columns`), indexed_columns (32,
    -1: all), tight_bounds (bool or null = absent), random_prefix_length (0: none), data_change (true), tags
    ({}), threads, memory_limit (bytes), max_records_per_file, modification_time (ms; null: now),
    second_version (false; true: pages and encodings of Parquet's second version), partition_columns (false:
    partition values are in the log alone), change_files (false; true: the files lie below `_change_data`),
    file_per_partition_order (bool: input is already grouped), synced_by_commit (false: the files are durable
    when this returns; true: the commit makes them so, `Store.put_if_absent(after=)`), pooled_small_files
    (false; true: files of few rows are encoded by the pool as large ones are, for tests that compare)
    """

def file_statistics(store: Store, schema: TableSchema, files: Any, options: str = "{}", *, tight: bool = False) -> pa.Table:
    """These `add` rows with statistics from the footers (of the live rows by reading, with `tight`). Rows
    without `size` get it. SchemaMismatchError where a file's columns do not fit."""

def has_dropped_columns(store: Store, schema: TableSchema, files: Any) -> pa.Array:
    """Which `add` rows name a file with columns, or fields in structs, that the table has not (bool). Reads
    footers."""

def hand_over(store: Store, schema: TableSchema, files: Any, *, bits: bool = False) -> pa.Table:
    """What another engine's Parquet reader must know of each of `files` (as for `read`), in order. Columns:
    __deltaic_place (string: a URI without escapes), __deltaic_shown (string: as Hadoop escapes it),
    __deltaic_size (int64), __deltaic_status (binary: Hadoop's FileStatus, its length in 4 bytes before it),
    __deltaic_rows (int8: 0 all rows count, 1 all but a set, 2 only the set), the set as __deltaic_bits
    (binary: 64-bit words, little-endian) or, unless `bits`, as __deltaic_roaring (binary: one 32-bit bitmap)
    where that is much smaller, and the partition columns, typed, under their physical names."""

def adopt(store: Store, schema: TableSchema, folder: str, options: str = "{}", *, footers: bool = True) -> pa.Table:
    """What Spark has just written below `folder` -> `add` actions, with statistics from the footers unless
    not `footers`. A level of folders for each partition column, `name=value` as Hive escapes it (a timestamp
    with a zone as microseconds since 1970). Names that begin with `_` or `.` are left out. `options`: those
    of `write`."""

@final
class Survey:
    """Parquet files of anybody, with what their footers and folders say. Each footer is read once.

    `files`: path, size and modification_time as `Store.list_from` gives them. `hive`: folders are
        `name=value`; else values alone.
    `progress`: called now and then, on any thread, with the number of footers read."""

    def __new__(cls, store: Store, files: Any, *, hive: bool = True, progress: Callable[[int], object] | None = None) -> Survey: ...
    @property
    def schemas(self) -> list[tuple[str, str]]:
        """JSON of the Delta schemas that the files have, each with the first file that has it."""
    @property
    def arrow_schemas(self) -> list[tuple[pa.Schema, str]]:
        """Arrow schemas of the files, with field ids as `PARQUET:field_id` in the metadata of fields, each
        with the first file that has it."""
    @property
    def names(self) -> list[str]:
        """Partition columns, by level of folders; where these are values alone, an empty name for each."""
    def values(self, level: int) -> pa.Array:
        """Of each file the partition value at this level (string)."""
    def adds(self, schema: TableSchema, options: str = "{}", *, statistics: bool = True) -> pa.Table:
        """`add` actions, with statistics from the footers. Partition columns of `schema` are in the order of
        the levels. `options`: those of `write`. SchemaMismatchError where a file's columns do not fit."""

def footers(store: Store, schema: TableSchema, adds: Any, options: str = "{}") -> pa.Table:
    """These `add` actions of files that Spark has written, with statistics from their footers."""

# --- deletion_vector.rs -------------------------------------------------------------------------------------

@final
class DeletionVector:
    """Immutable set of absolute row indexes of one data file (API.md section 8)."""

    @staticmethod
    def from_rows(rows: Any) -> DeletionVector: ...
    @staticmethod
    def from_bytes(data: bytes) -> DeletionVector: ...
    @staticmethod
    def from_inline(text: str) -> DeletionVector: ...
    @property
    def cardinality(self) -> int: ...
    def __len__(self) -> int: ...
    def __contains__(self, row: int) -> bool: ...
    def __iter__(self) -> Iterator[int]: ...
    def __or__(self, other: DeletionVector) -> DeletionVector: ...
    def __and__(self, other: DeletionVector) -> DeletionVector: ...
    def __sub__(self, other: DeletionVector) -> DeletionVector: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...
    def rows(self) -> pa.Array: ...
    def to_bytes(self) -> bytes: ...
    def to_inline(self) -> str: ...
    def filter(self, data: Any, first_row: int = 0) -> pa.RecordBatch | pa.Table: ...
    def mask(self, first_row: int, count: int) -> pa.Array: ...

def z85_encode(data: bytes) -> str: ...        # padded with zeros to a multiple of 4 bytes
def z85_decode(text: str) -> bytes: ...
def z85_encode_values(values: Any) -> pa.Array: ...      # Arrow binary -> string, null stays null
def z85_decode_values(values: Any) -> pa.Array: ...      # Arrow string -> binary
def rows_deleted(vectors: Any, rows: Any) -> pa.Array:
    """Whether each row index (Arrow integers) is in the vector beside it (Arrow binary, portable format) ->
    bool. No vector: false; no index: null."""
def crc32(data: bytes) -> int: ...
def set_vector_limit(size: int) -> int: ...    # bytes that one vector may have (67108864), for the process; returns the limit before
def read_deletion_vector(store: Store, storage_type: str, path_or_inline: str, offset: int | None, size_in_bytes: int,
                         cardinality: int, num_records: int | None = None) -> DeletionVector:
    """Fetches just its bytes; checks size, CRC-32, cardinality and (where known) that no row is `num_records`
    or more."""

@final
class RowIds:
    """Rows per file, gathered from (file ordinal int32, row index int64) pairs: one bitmap per file."""

    @staticmethod
    def collect(row_ids: Any, *, unique: bool = False) -> RowIds:
        """A stream with `__deltaic_file` and `__deltaic_row`. `unique`: MergeCardinalityError where a pair
        comes twice."""
    @staticmethod
    def of_bitmaps(bitmaps: Any, *, unique: bool = False) -> RowIds:
        """Lines of `bitmaps` of several parts of the pairs, together."""
    def bitmaps(self) -> pa.Table:
        """A line for each file: `__deltaic_file`, `__deltaic_bitmap` (binary, portable format),
        `__deltaic_count` (int64: pairs that came)."""
    @property
    def file_count(self) -> int: ...
    def __len__(self) -> int: ...
    def select(self, files: Any, *, keep_selected: bool = True) -> pa.Table:
        """The rows of `files` whose ordinal (position, or `__deltaic_file`) has rows, with `selection`,
        `keep_selected` and `__deltaic_file`."""

def mark_deleted(store: Store, files: Any, rows: RowIds, *, deletion_timestamp: int, inline: bool = False, prefix_length: int = 0,
                 target_size: int = 2097152) -> MarkedFiles:
    """Merges `rows` into the vectors of `files` (add rows), packs and writes them.
    Reads the footer of a file without numRecords. A row deleted already counts once. The files of vectors are
    not durable yet: the commit makes them so (`Store.put_if_absent(after=)`)."""

@final
class MarkedFiles:
    @property
    def adds(self) -> pa.Table: ...               # with merged vectors, tightBounds=false; none for a file with no row left
    @property
    def removes(self) -> pa.Table: ...
    @property
    def metrics(self) -> dict[str, int]:
        """num_deleted_rows, num_deletion_vectors_added, _removed, _updated (delta-spark's counting),
        num_removed_files (fully deleted), num_bytes_written."""
    @property
    def written(self) -> list[str]: ...           # vector files, to delete where the commit fails for good

@final
class RebasedRows:
    """The rows of a command after another commit."""

    @property
    def files(self) -> pa.Table: ...              # the files that still have some of them, as add rows with `__deltaic_file`
    @property
    def rows(self) -> RowIds: ...
    @property
    def deleted(self) -> list[tuple[str, int]]:
        """Files of which the commit deleted some of the rows, and how many."""
    @property
    def is_changed(self) -> bool: ...             # whether the commit touched one of the files

def rebase_rows(store: Store, files: Any, rows: RowIds, adds: Any, removes: Any) -> RebasedRows:
    """`rows`, found in `files` (add rows as the command saw them), after a commit with these actions."""

def adds_with_new_rows(store: Store, adds: Any, removes: Any) -> pa.Table:
    """Those of a commit's add rows whose files may have rows that were not there before it: all but files of
    which it only deleted rows."""

# --- expressions.rs -----------------------------------------------------------------------------------------

def evaluate_kernel(arguments: Sequence[Any]) -> pa.Array:
    """A kernel of Spark's SQL functions: its name as an array of text (the same in every row), then its
    arguments as arrays of that length.

    InvalidArgumentError: a row fails in Spark; the message begins with Spark's error condition in
    brackets."""

# --- iceberg.rs ---------------------------------------------------------------------------------------------

def iceberg_manifest(adds: Any, schema: TableSchema, options: str, former: Sequence[bytes], gone: Sequence[str]) -> tuple[bytes, str]:
    """A manifest, and as JSON what it holds: counts of files and rows that it adds, has from before and
    deletes, `min_sequence_number`.

    `adds`: add actions with the addresses of the files (`location`) and of their vectors (`vectorLocation`).
        `options`: JSON of `version`
    (of the format), `deletes` (entries are vectors), `snapshot_id`, `sequence_number`, `partition` (pairs of
    a name and an id), `header` (metadata of the file). `former`: manifests whose entries are carried over;
    those whose data file is among the addresses `gone` as deleted."""
def iceberg_manifest_list(manifests: str, header: str, version: int) -> bytes:
    """A manifest list of these manifests (JSON, under the specification's names). `header`: JSON of the
    file's metadata."""
def read_iceberg_manifest_list(data: bytes) -> str:
    """The manifests that a manifest list names, as JSON."""

# --- matching.rs --------------------------------------------------------------------------------------------

def join(left: Any, right: Any, keys: Sequence[tuple[str, str]], *, most: int, keep_right: bool = False) -> pa.Table | None:
    """The pairs of rows whose keys are equal: the columns of `left`, then those of `right`; None where there
    are more than `most`.
    `keys`: (column of `left`, column of `right`), each pair of one Arrow type. A null key equals nothing.
        `keep_right`: rows of `right`
    without a match come too, with nulls for `left`.

    InvalidArgumentError: no such column, or keys of two types."""

# --- zorder.rs ----------------------------------------------------------------------------------------------

@final
class RangeBounds:
    """Per column, sampled boundaries that cut its values into ranges of about equal weight."""

    @staticmethod
    def sample(data: Any, columns: Sequence[str], *, ranges: int = 1000, sample_size: int = 100000, seed: int = 0) -> RangeBounds: ...
    @staticmethod
    def of(columns: Sequence[str], boundaries: Sequence[Any]) -> RangeBounds:
        """Made elsewhere: the arrays of `boundaries`, one for each column."""
    @property
    def boundaries(self) -> list[pa.Array]: ...

def curve_keys(data: Any, bounds: RangeBounds, curve: Literal["zorder", "hilbert"]) -> pa.RecordBatchReader:
    """`data` with a column `__deltaic_key` appended: int64 where columns x bits fit in 63, else binary that
    sorts as bytes."""

def range_ids(values: Any, bounds: Any) -> pa.Array: ...          # null -> 0
def interleave_bits(columns: Sequence[Any]) -> pa.Array: ...      # int32 arrays -> binary, 4 bytes a column, most significant first
def hilbert_index(columns: Sequence[Any], bits: int) -> pa.Array: ...  # int32 arrays -> binary
