"""Structured streaming of Delta tables is not there yet: in an enabled session it is refused by name, before a query starts."""

from __future__ import annotations

import functools
from typing import Any

from deltaic.engine.spark.engine import SETTING
from deltaic.errors import UnsupportedFeatureError

_WRAPPED = "_deltaic_wrapped"


def refuse(formats: frozenset[str]) -> None:
    """Wraps what starts streams of these formats; once or several times is the same."""
    from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

    for kind, names in ((DataStreamReader, ("load", "table")), (DataStreamWriter, ("start", "toTable"))):
        _note_format(kind)
        for name in names:
            _refuse_in(kind, name, formats)


def _note_format(kind: Any) -> None:
    method = kind.format
    if _WRAPPED in method.__dict__:
        return

    @functools.wraps(method)
    def noted(self: Any, source: str) -> Any:
        self.__dict__[_WRAPPED] = source
        return method(self, source)

    noted.__dict__[_WRAPPED] = True
    kind.format = noted


def _refuse_in(kind: Any, name: str, formats: frozenset[str]) -> None:
    method = getattr(kind, name)
    if _WRAPPED in method.__dict__:
        return

    @functools.wraps(method)
    def checked(self: Any, *args: Any, **named: Any) -> Any:
        source = named.get("format") or self.__dict__.get(_WRAPPED) or (args[1] if name != "table" and len(args) > 1 else None)
        by_path = name == "table" and str((args or [named.get("tableName")])[0]).lower().startswith(tuple(f"{each}.`" for each in formats))
        if _is_enabled(self) and (by_path or str(source).lower() in formats):
            raise UnsupportedFeatureError("structured streaming", found=f"{kind.__name__}.{name} of the format {source or 'delta'}")
        return method(self, *args, **named)

    checked.__dict__[_WRAPPED] = True
    setattr(kind, name, checked)


def _is_enabled(of: Any) -> bool:
    spark = of._spark if hasattr(of, "_spark") else of._df.sparkSession
    return getattr(spark, SETTING, None) is not None
