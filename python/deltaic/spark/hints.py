"""Rewrites the advice in errors for programs on Spark: arguments of deltaic's own calls become the options,
settings and statements of delta-spark that do the same."""

from __future__ import annotations

import re

from deltaic.engine.spark.settings import RETENTION_CHECK
from deltaic.errors import DeltaError

_HINTS = (
    (
        r"schema_mode='merge' to add it, or 'overwrite' to replace the columns",
        "the option mergeSchema to add it, or overwriteSchema to replace the columns",
    ),
    (r"schema_mode='merge'", "the option mergeSchema"),
    (r"mode='append' or another", 'mode("append") or another'),
    (
        r"enforce_retention=False deletes them anyway",
        f"the setting {RETENTION_CHECK} = false lets VACUUM delete them",
    ),
    (
        r"alter\.set_properties\(\{'([^']+)': '([^']+)'\}\)",
        r"ALTER TABLE ... SET TBLPROPERTIES ('\1' = '\2')",
    ),
    (r"alter\.drop_constraint first", "ALTER TABLE ... DROP CONSTRAINT first"),
    (r"truncate_history=True", "TRUNCATE HISTORY"),
    (r"truncate_history=False", "no TRUNCATE HISTORY"),
)
"""Advice for Python (regular expressions) -> the same advice for Spark."""


def advise_on_spark(error: DeltaError) -> None:
    """Rewrites the text of an error, its `message` and its `expected`."""
    texts = (error.args[0], error.message, error.expected)
    rewritten = [_rewritten(text) if isinstance(text, str) else text for text in texts]
    error.args = (rewritten[0], *error.args[1:])
    error.message, error.expected = str(rewritten[1]), rewritten[2]


def _rewritten(text: str) -> str:
    for advice, on_spark in _HINTS:
        text = re.sub(advice, on_spark, text)
    return text
