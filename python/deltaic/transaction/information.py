"""Makes the commitInfo of a commit, with delta-spark's names and encodings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from deltaic import _core
from deltaic.errors import InvalidArgumentError
from deltaic.options import CommitOptions


def commit_info(
    *,
    timestamp: int,
    in_commit_timestamp: int | None,
    operation: str,
    parameters: Mapping[str, Any],
    read_version: int | None,
    isolation: str,
    is_blind_append: bool,
    metrics: Mapping[str, int],
    options: CommitOptions,
    txn_id: str,
    tags: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Returns the fields of a commitInfo action. `read_version`: None for the first version of a table. Times
    are in ms."""
    info: dict[str, Any] = {} if in_commit_timestamp is None else {"inCommitTimestamp": in_commit_timestamp}
    info |= {
        "timestamp": timestamp,
        **options.info,
        "operation": operation,
        "operationParameters": {name: parameter(value) for name, value in parameters.items()},
    }
    if read_version is not None:
        info["readVersion"] = read_version
    info["isolationLevel"] = isolation
    info["isBlindAppend"] = is_blind_append
    info["operationMetrics"] = {camel_case(name): str(value) for name, value in metrics.items()}
    if options.user_metadata is not None:
        info["userMetadata"] = options.user_metadata
    info["engineInfo"] = f"deltaic/{_core.__version__}"
    info["txnId"] = txn_id
    if tags:
        info["tags"] = {**options.info.get("tags", {}), **tags}
    return info


def parameter(value: Any) -> Any:
    """Encodes an operation's parameter like delta-spark: text, numbers, booleans and null stay as they are, a
    list or mapping becomes JSON text: `["id"]` becomes `'["id"]'`."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, Mapping):
        return _json(dict(value))
    if isinstance(value, (list, tuple, set, frozenset)):
        return _json(sorted(value) if isinstance(value, (set, frozenset)) else list(value))
    raise InvalidArgumentError(
        "an operation's parameter is text, a number, a list or a mapping", found=repr(value)
    )


def camel_case(name: str) -> str:
    """Converts a name to camel case: `num_output_rows` -> `numOutputRows`."""
    return re.sub(r"_([a-z0-9])", lambda match: match[1].upper(), name)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
