"""Resolves the files that file actions name: data files, and files of deletion vectors (PROTOCOL.md: Deletion
Vectors)."""

from __future__ import annotations

import sys
import uuid

import pyarrow as pa
import pyarrow.compute as pc

from deltaic import _core
from deltaic.protocol.paths import decoded_path, encoded_path, local_path

_ABSOLUTE = r"^(?:[A-Za-z][A-Za-z0-9+.-]*:|/)"
_IGNORES_CASE = sys.platform in ("win32", "darwin")


def data_files(actions: pa.Table, location: str) -> pa.Array:
    """Returns the paths of the data files of `add` or `remove` actions: decoded, and relative if they are in
    the table."""
    return _relative(_decoded(_flat(actions.column("path"))), location)


def vector_files(actions: pa.Table, location: str) -> pa.Array:
    """Returns the paths of the files with the actions' deletion vectors, each once. Inline vectors are in no
    file."""
    vectors = _vectors(actions)
    if not len(vectors):
        return pa.array([], pa.string())
    kinds = pc.struct_field(vectors, "storageType")
    texts = pc.struct_field(vectors, "pathOrInlineDv")
    # few texts are distinct, as a file has many vectors
    stored = pc.unique(texts.filter(pc.equal(kinds, "u"))).to_pylist()
    absolute = pc.unique(texts.filter(pc.equal(kinds, "p")))
    own = pa.array([_vector_path(text) for text in stored], pa.string())
    return pa.concat_arrays([own, _relative(_decoded(absolute), location)])


def vector_of_each(actions: pa.Table, location: str) -> pa.Array:
    """Returns, for each action, the path of the file with its deletion vector, as in `vector_files`; null
    without a vector and for an inline vector."""
    if "deletionVector" not in actions.column_names:
        return pa.nulls(actions.num_rows, pa.string())
    vectors = _flat(actions.column("deletionVector"))
    kinds = pc.if_else(pc.is_valid(vectors), pc.struct_field(vectors, "storageType"), None)
    texts = pc.dictionary_encode(pc.struct_field(vectors, "pathOrInlineDv"))
    spelled = texts.dictionary.to_pylist()  # few texts are distinct, as a file has many vectors
    is_own = set(pc.unique(texts.filter(pc.equal(kinds, "u"))).to_pylist())
    own = pa.array([_vector_path(text) if text in is_own else None for text in spelled], pa.string())
    absolute = _relative(_decoded(texts.dictionary), location)
    indices = texts.indices
    return pc.case_when(
        pc.make_struct(pc.equal(kinds, "u"), pc.equal(kinds, "p")), own.take(indices), absolute.take(indices)
    )


def referenced(actions: pa.Table, location: str) -> pa.Array:
    """Returns the paths of the data files and of the vector files of the actions."""
    return pa.concat_arrays([data_files(actions, location), vector_files(actions, location)])


def encoded(paths: pa.Array) -> pa.Array:
    """Percent-encodes paths, as they are in the log."""
    return pa.array(list(map(encoded_path, paths.to_pylist())), pa.string())


def keys(actions: pa.Table) -> pa.Array:
    """Returns the keys of logical files: the path, with the vector's id if there is one (PROTOCOL.md: Action
    Reconciliation)."""
    vectors = _flat(actions.column("deletionVector"))
    offsets = pc.struct_field(vectors, "offset").cast(pa.string())
    kind, text = pc.struct_field(vectors, "storageType"), pc.struct_field(vectors, "pathOrInlineDv")
    base = pc.binary_join_element_wise(kind, text, "")
    with_offset = pc.coalesce(pc.binary_join_element_wise(base, offsets, "@"), base)
    identity = pc.fill_null(pc.if_else(pc.is_valid(vectors), with_offset, pa.scalar(None, pa.string())), "")
    return pc.binary_join_element_wise(_decoded(_flat(actions.column("path"))), identity, "\n")


def without(actions: pa.Table, others: pa.Table) -> pa.Table:
    """Returns the `actions` whose logical file is not among `others`."""
    return actions.filter(pc.invert(pc.is_in(keys(actions), value_set=keys(others))))


def addresses(paths: pa.Array, location: str) -> pa.Array:
    """Makes decoded paths absolute: relative paths follow the table's location, others stay as they are."""
    absolute = pc.match_substring_regex(paths, _ABSOLUTE)
    return pc.if_else(absolute, paths, pc.binary_join_element_wise(location.rstrip("/"), paths, "/")).cast(
        pa.string()
    )


def inside(paths: pa.Array) -> pa.Array:
    """Returns the relative paths, which are those of files in the table's folder."""
    return paths.filter(pc.invert(pc.match_substring_regex(paths, _ABSOLUTE)))


def _vectors(actions: pa.Table) -> pa.Array:
    if "deletionVector" not in actions.column_names:
        return pa.array([], pa.struct([]))
    vectors = _flat(actions.column("deletionVector"))
    return vectors.filter(pc.is_valid(vectors))


def _vector_path(text: str) -> str:
    """Returns the path of the file that a deletion vector of storage type `u` names. `text`: a random
    prefix, which may be empty, and the file's UUID in Z85 (20 characters)."""
    prefix, encoded = text[:-20], text[-20:]
    name = f"deletion_vector_{uuid.UUID(bytes=_core.z85_decode(encoded))}.bin"
    return f"{prefix}/{name}" if prefix else name


def _decoded(paths: pa.Array) -> pa.Array:
    """Percent-decodes paths once. Only paths with a `%` are converted to Python."""
    coded = pc.match_substring(paths, "%")
    if not pc.any(coded).as_py():
        return paths
    replacements = pa.array(list(map(decoded_path, paths.filter(coded).to_pylist())), pa.string())
    return pc.replace_with_mask(paths, coded, replacements)


def _relative(paths: pa.Array, location: str) -> pa.Array:
    """Makes absolute paths relative if they are in the table."""
    absolute = pc.match_substring_regex(paths, _ABSOLUTE)
    if not pc.any(absolute).as_py():
        return paths
    root = location.rstrip("/") + "/"
    found = [_below(path, root) for path in paths.filter(absolute).to_pylist()]
    return pc.replace_with_mask(paths, absolute, pa.array(found, pa.string()))


def _below(path: str, root: str) -> str:
    plain = local_path(path) if path.startswith("file:") else path
    return plain[len(root) :] if plain.startswith(root) else path


def folded(paths: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Returns paths for a comparison with the paths of a listing: in lower case on systems whose file systems
    ignore case. If the folder `p=A` exists there, a file that the log names `p=a/1.parquet` is listed as
    `p=A/1.parquet`."""
    return pc.utf8_lower(paths) if _IGNORES_CASE else paths


def _flat(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return pa.concat_arrays(combined.chunks) if isinstance(combined, pa.ChunkedArray) else combined
