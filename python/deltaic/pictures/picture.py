"""`table.optimize.picture()`: gathers what a picture shows, and the drawing itself as an object for notebooks
and files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

from deltaic.errors import InvalidArgumentError
from deltaic.log import history
from deltaic.pictures.files import Files, axes_columns
from deltaic.pictures.layout import Layout
from deltaic.pictures.sizes import Sizes
from deltaic.pictures.timeline import MOST, Timeline

if TYPE_CHECKING:
    from deltaic.engine.engine import Engine
    from deltaic.log.snapshot import Snapshot

Kind = Literal["layout", "sizes", "history"]


class Picture:
    """A drawing as SVG, which `table.optimize.picture` returns; a notebook shows it."""

    def __init__(self, svg: str, notes: Sequence[str] = ()) -> None:
        self._svg, self._notes = svg, tuple(notes)

    @property
    def svg(self) -> str:
        """The text of the drawing: one `<svg>` element."""
        return self._svg

    @property
    def notes(self) -> tuple[str, ...]:
        """One sentence for each thing that the drawing omits, such as files without statistics. They stand
        below the drawing, too."""
        return self._notes

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the drawing to a file, in UTF-8; an existing file is replaced. Raises OSError.

        >>> table.optimize.picture(["origin", "delay"]).save("layout.svg")
        """
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"Picture({len(self.svg):,} characters of SVG{''.join('; ' + note for note in self.notes)})"


def picture(
    snapshot: Snapshot,
    engine: Engine,
    columns: str | Sequence[str] | None = None,
    where: str | None = None,
    *,
    kind: Kind = "layout",
    before: int | None = None,
) -> Picture:
    """Draws one version, or two with `before`. InvalidArgumentError for arguments that the kind has no use
    for."""
    if kind not in get_args(Kind):
        raise InvalidArgumentError(
            "unknown kind of picture", found=repr(kind), expected=", ".join(map(repr, get_args(Kind)))
        )
    unused = {"columns": columns if kind != "layout" else None, "where": where if kind == "history" else None}
    unused["before"] = None if before is None or kind != "history" else str(before)
    for name, value in unused.items():
        if value is not None:
            raise InvalidArgumentError(f"a picture of kind {kind!r} does not take {name}=", found=repr(value))
    name = snapshot.location.rstrip("/").rpartition("/")[2]
    if kind == "history":
        return _drawn(_timeline(snapshot, name))
    versions = [snapshot] if before is None else [snapshot.at(before), snapshot]
    if kind == "sizes":
        panels = [Files(version, engine, where) for version in versions]
        return _drawn(Sizes(f"{name}: sizes of files", panels, where, snapshot.properties.target_file_size))
    names = axes_columns(snapshot, columns)
    for version in versions[:-1]:
        axes_columns(version, names)
    panels = [Files(version, engine, where, names) for version in versions]
    return _drawn(Layout(f"{name}: files over {' and '.join(names)}", names, panels, where))


def _timeline(snapshot: Snapshot, name: str) -> Timeline:
    era = history.Era.of(snapshot.metadata.configuration)
    entries = list(history.entries(snapshot.store, snapshot.version, MOST + 1, era=era))
    return Timeline(f"{name}: history", entries[:MOST], more=len(entries) > MOST)


def _drawn(drawing: Layout | Sizes | Timeline) -> Picture:
    svg = drawing.svg()
    return Picture(svg, drawing.notes)
