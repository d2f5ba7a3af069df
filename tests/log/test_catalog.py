"""Tables that a catalog manages: staged commits, ratified by a coordinator, and published (PROTOCOL.md:
Catalog-managed tables)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltaic
from deltaic import DeltaTable, RatifiedCommits
from deltaic.errors import (
    CommitUnknownError,
    ConcurrentDeleteReadException,
    DeltaError,
    InvalidTypeError,
    ProtocolError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from deltaic.log import catalog


class FileCoordinator:
    """A catalog that is a folder: a file for each ratified version, made with O_EXCL, holds the name of its
    staged commit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.asked = 0

    def _versions(self) -> list[int]:
        return sorted(int(each.name) for each in self.folder.iterdir() if each.name.isdecimal())

    def commits(self, start: int, /) -> RatifiedCommits:
        self.asked += 1
        versions = self._versions()
        names = {each: (self.folder / str(each)).read_text() for each in versions}
        return RatifiedCommits(
            max(versions, default=0), {each: name for each, name in names.items() if each >= start and name}
        )

    def ratify(self, version: int, name: str, /) -> bool | None:
        if version != max(self._versions(), default=0) + 1:
            return False
        try:
            with (self.folder / f"{name}.new").open("x") as file:
                file.write(name)
            (self.folder / str(version)).hardlink_to(self.folder / f"{name}.new")
        except FileExistsError:
            return False
        return True

    def published(self, version: int, /) -> None:
        for each in self._versions():
            if each <= version:
                (self.folder / str(each)).write_text("")  # forgets the name, but not the version


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A table of a catalog with rows 0, 1, 2 in version 0."""
    path = tmp_path / "table"
    properties = {"delta.enableInCommitTimestamps": True, "delta.enableChangeDataFeed": True}
    deltaic.write(path, pa.table({"id": [0, 1, 2]}), properties=properties)
    commit = path / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for line in lines:
        if "protocol" in line:
            line["protocol"]["readerFeatures"].append("catalogManaged")
            line["protocol"]["writerFeatures"].append("catalogManaged")
    commit.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for checksum in (path / "_delta_log").glob("*.crc"):
        checksum.unlink()
    return path


@pytest.fixture
def coordinator(place: Path) -> Iterator[FileCoordinator]:
    found = FileCoordinator(place.parent / "catalog")
    with deltaic.configure(
        commit_coordinator=lambda location: found if location == place.as_posix() else None
    ):
        yield found


def ids(table: DeltaTable) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def published(place: Path) -> list[int]:
    return sorted(int(each.name[:20]) for each in (place / "_delta_log").glob("*.json"))


def staged(place: Path) -> list[int]:
    return sorted(int(each.name[:20]) for each in (place / "_delta_log" / "_staged_commits").glob("*.json"))


def test_without_a_coordinator_the_table_is_refused(place: Path) -> None:
    with pytest.raises(
        UnsupportedFeatureError,
        match=r"managed by a catalog.*found catalogManaged; expected .*configure\(commit_coordinator=\)",
    ):
        DeltaTable(place)
    with pytest.raises(UnsupportedFeatureError, match="catalogManaged"):
        deltaic.write(place, pa.table({"id": [1]}), mode="append")
    with (
        deltaic.configure(commit_coordinator=lambda _: None),
        pytest.raises(UnsupportedFeatureError, match="catalogManaged"),
    ):
        DeltaTable(place)
    with (
        deltaic.configure(commit_coordinator=lambda _: object()),
        pytest.raises(InvalidTypeError, match=r"did not return a coordinator.*found object"),
    ):
        DeltaTable(place)
    assert published(place) == [0]


def test_commits_are_staged_ratified_and_published(place: Path, coordinator: FileCoordinator) -> None:
    table = DeltaTable(place)
    deltaic.write(table, pa.table({"id": [3, 4]}), mode="append")
    table.delete("id = 1")
    table.update({"id": "id + 100"}, "id = 2")
    table.merge(
        pa.table({"id": [3, 9]}), "t.id = s.id"
    ).when_matched_delete().when_not_matched_insert_all().execute()
    assert (table.version, ids(table)) == (4, [0, 4, 9, 102])
    assert published(place) == [0, 1, 2, 3, 4]
    assert staged(place) == [1, 2, 3, 4]
    assert coordinator.commits(0) == RatifiedCommits(4)
    for version in range(1, 5):
        (of,) = (place / "_delta_log" / "_staged_commits").glob(f"{version:020}.*.json")
        commit = of.read_bytes()
        assert commit == (place / "_delta_log" / f"{version:020}.json").read_bytes()
        information = json.loads(commit.splitlines()[0])["commitInfo"]
        assert "txnId" in information
        assert "inCommitTimestamp" in information
    again = DeltaTable(place)
    assert (again.version, ids(again), ids(again.at(1))) == (4, [0, 4, 9, 102], [0, 1, 2, 3, 4])
    table.alter.set_properties({"owner": "me"})
    assert DeltaTable(place).metadata.configuration["owner"] == "me"


def test_what_is_not_published_is_read(
    place: Path, coordinator: FileCoordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = DeltaTable(place)
    tail = reader.tail(start=0, poll=0.01)
    with monkeypatch.context() as context:
        context.setattr(catalog, "publish", lambda store, version: False)
        writer = DeltaTable(place)
        deltaic.write(writer, pa.table({"id": [3]}), mode="append")
        deltaic.write(writer, pa.table({"id": [4]}), mode="append")
        assert writer.version == 2
    assert (published(place), staged(place)) == ([0], [1, 2])
    fresh = DeltaTable(place)
    assert (fresh.version, ids(fresh), ids(fresh.at(1))) == (2, [0, 1, 2, 3, 4], [0, 1, 2, 3])
    reader.refresh()
    assert (reader.version, ids(reader)) == (2, [0, 1, 2, 3, 4])
    history = fresh.history()
    assert [each["version"] for each in history] == [2, 1, 0]
    assert ids(fresh.at(timestamp=history[1]["timestamp"])) == [0, 1, 2, 3]
    changes = fresh.changes(1, 2).to_arrow()
    assert sorted(zip(changes["id"].to_pylist(), changes["_commit_version"].to_pylist(), strict=True)) == [
        (3, 1),
        (4, 2),
    ]
    rows: list[int] = []
    for batch in tail:
        rows += batch.rows.to_arrow()["id"].to_pylist()
        if len(rows) >= 5:
            break
    assert sorted(rows) == [0, 1, 2, 3, 4]
    assert fresh.detail().last_modified is not None
    with pytest.raises(VersionNotFoundError):
        DeltaTable(place, version=3)
    deltaic.write(fresh, pa.table({"id": [5]}), mode="append")  # publishes what others left
    assert (published(place), coordinator.commits(0)) == ([0, 1, 2, 3], RatifiedCommits(3))


def test_what_the_catalog_says_goes_before_the_log(
    place: Path, coordinator: FileCoordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as context:
        context.setattr(catalog, "publish", lambda store, version: False)
        deltaic.write(place, pa.table({"id": [3]}), mode="append")
    log = place / "_delta_log"
    for version in (1, 2):  # one that the catalog has staged, one that it has not ratified
        (log / f"{version:020}.json").write_text("this is no commit")
    (log / f"{2:020}.checkpoint.parquet").write_bytes(b"PAR1 no checkpoint PAR1")
    table = DeltaTable(place)
    assert (table.version, ids(table)) == (1, [0, 1, 2, 3])
    table.refresh()
    assert table.version == 1
    assert [each["version"] for each in table.history()] == [1, 0]


def test_another_commit_came_first(place: Path, coordinator: FileCoordinator) -> None:
    one, two, three = (DeltaTable(place) for _ in range(3))
    deltaic.write(one, pa.table({"id": [3]}), mode="append")
    deltaic.write(two, pa.table({"id": [4]}), mode="append")  # goes on top
    assert (two.version, ids(two)) == (2, [0, 1, 2, 3, 4])
    assert staged(place) == [1, 2]  # the commit that lost version 1 is gone
    two.delete("id < 3")
    with pytest.raises(ConcurrentDeleteReadException):
        three.update({"id": "7"}, "id = 1")
    assert (DeltaTable(place).version, staged(place)) == (3, [1, 2, 3])


def test_many_writers(place: Path, coordinator: FileCoordinator) -> None:
    import contextvars

    def work(first: int) -> None:
        table = DeltaTable(place)
        for at in range(5):
            deltaic.write(table, pa.table({"id": [first + at]}), mode="append")

    threads = [
        threading.Thread(target=contextvars.copy_context().run, args=(work, 100 * each))
        for each in range(1, 5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    table = DeltaTable(place)
    assert (table.version, len(ids(table))) == (20, 23)
    assert published(place) == list(range(21))
    times = [each["timestamp"] for each in table.history()]
    assert sorted(times, reverse=True) == times
    assert len(set(times)) == 21
    assert list((place / "_delta_log").glob("*.checkpoint.parquet"))


class Answers:
    """A coordinator whose next `ratify` behaves as `behave` says."""

    def __init__(self, inner: FileCoordinator, behave: Any) -> None:
        self.inner, self.behave = inner, behave
        self.commits, self.published = inner.commits, inner.published

    def ratify(self, version: int, name: str, /) -> bool | None:
        answer: bool | None = self.behave(self.inner, version, name)
        return answer


def behaving(place: Path, inner: FileCoordinator, behave: Any) -> Any:
    found = Answers(inner, behave)
    return deltaic.configure(
        commit_coordinator=lambda location: found if location == place.as_posix() else None
    )


def test_an_answer_that_is_lost(place: Path, coordinator: FileCoordinator) -> None:
    def lost(inner: FileCoordinator, version: int, name: str) -> None:
        inner.ratify(version, name)
        raise TimeoutError("no answer")

    with behaving(place, coordinator, lost):
        table = deltaic.write(place, pa.table({"id": [3]}), mode="append")
    assert (table.version, ids(DeltaTable(place))) == (1, [0, 1, 2, 3])


def test_nobody_knows_whether_it_was_ratified(place: Path, coordinator: FileCoordinator) -> None:
    with (
        behaving(place, coordinator, lambda inner, version, name: None),
        pytest.raises(CommitUnknownError, match="txnId"),
    ):
        deltaic.write(place, pa.table({"id": [3]}), mode="append")
    assert DeltaTable(place).version == 0


def test_a_catalog_that_refuses(place: Path, coordinator: FileCoordinator) -> None:
    def refuse(inner: FileCoordinator, version: int, name: str) -> bool:
        raise ValueError("the catalog says no")

    before = sorted(place.glob("*.parquet"))
    with behaving(place, coordinator, refuse), pytest.raises(ValueError, match="the catalog says no"):
        deltaic.write(place, pa.table({"id": [3]}), mode="append")
    assert (DeltaTable(place).version, published(place), sorted(place.glob("*.parquet"))) == (0, [0], before)


@pytest.mark.parametrize(
    ("latest", "names"),
    [
        (1, {1: "../../elsewhere.json"}),
        (1, {1: f"{2:020}.abc.json"}),
        (0, {1: f"{1:020}.abc.json"}),
        (1, {1: f"{1:020}.a/b.json"}),
    ],
)
def test_names_that_are_none_of_staged_commits(
    place: Path, coordinator: FileCoordinator, latest: int, names: dict[int, str]
) -> None:
    class Wrong(FileCoordinator):
        def commits(self, start: int, /) -> RatifiedCommits:
            return RatifiedCommits(latest, names)

    wrong = Wrong(place.parent / "wrong")
    with (
        deltaic.configure(commit_coordinator=lambda _: wrong),
        pytest.raises(ProtocolError, match="an invalid name of a staged commit"),
    ):
        DeltaTable(place)


class InlineCoordinator(FileCoordinator):
    """A catalog that stores the contents of commits itself, until they are published."""

    def commits(self, start: int, /) -> RatifiedCommits:
        found = super().commits(start)
        return RatifiedCommits(
            found.latest,
            inline={
                each: (self.folder / f"{name}.content").read_bytes() for each, name in found.staged.items()
            },
        )

    def ratify(self, version: int, name: str, /) -> bool | None:
        path = self.folder.parent / "table" / catalog.STAGED_COMMITS / name
        (self.folder / f"{name}.content").write_bytes(path.read_bytes())
        path.unlink()
        return super().ratify(version, name)


def test_inline_commits(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inline = InlineCoordinator(place.parent / "catalog")
    with deltaic.configure(commit_coordinator=lambda _: inline):
        with monkeypatch.context() as unpublished:
            unpublished.setattr(catalog, "publish", lambda *_: False)
            for number in (3, 4):
                deltaic.write(place, pa.table({"id": [number]}), mode="append")
        assert published(place) == [0]
        table = DeltaTable(place)
        assert (table.version, ids(table)) == (2, [0, 1, 2, 3, 4])
        assert ids(table.at(1)) == [0, 1, 2, 3]
        assert staged(place) == [1, 2]  # each reader writes the same file
        table.delete("id = 0")
        assert published(place) == [0, 1, 2, 3]
        assert ids(DeltaTable(place)) == [1, 2, 3, 4]


@pytest.mark.parametrize(("version", "content"), [(5, b"{}"), (1, b"[]"), (1, b""), (1, b"{"), (1, b"\xff")])
def test_contents_that_are_no_inline_commit(
    place: Path, coordinator: FileCoordinator, version: int, content: bytes
) -> None:
    coordinator.commits = lambda start, /: RatifiedCommits(  # type: ignore[method-assign]
        1, inline={version: content}
    )
    with pytest.raises(ProtocolError, match="the catalog returned an invalid inline commit"):
        DeltaTable(place)
    assert staged(place) == []


def test_what_a_catalogs_table_refuses(place: Path, coordinator: FileCoordinator, tmp_path: Path) -> None:
    table = DeltaTable(place)
    for first in (10, 20):
        deltaic.write(table, pa.table({"id": [first]}), mode="append")
    with pytest.raises(UnsupportedFeatureError, match="VACUUM is refused on a table that a catalog manages"):
        table.vacuum(retention=timedelta(0), enforce_retention=False)
    with pytest.raises(UnsupportedFeatureError, match="catalogManaged"):
        table.optimize.compact()
    with pytest.raises(UnsupportedFeatureError, match="cleaning the log is refused"):
        table.clean_log()
    with pytest.raises(ProtocolError, match="needs in-commit timestamps"):
        table.alter.set_properties({"delta.enableInCommitTimestamps": False})
    with pytest.raises(DeltaError, match="catalogManaged"):
        table.alter.drop_feature("catalogManaged")
    with pytest.raises(UnsupportedFeatureError, match="catalogManaged"):
        DeltaTable.create(
            tmp_path / "new", "id int", properties={"delta.feature.catalogManaged": "supported"}
        )
    table.checkpoint()
    assert (DeltaTable(place).version, ids(DeltaTable(place))) == (2, [0, 1, 2, 10, 20])
    copy = table.clone(tmp_path / "copy")
    assert "catalogManaged" not in (copy.protocol.reader_features or ())
    assert ids(DeltaTable(tmp_path / "copy")) == [0, 1, 2, 10, 20]


def test_checkpoints_are_of_published_versions(
    place: Path, coordinator: FileCoordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as context:
        context.setattr(catalog, "publish", lambda store, version: False)
        table = deltaic.write(place, pa.table({"id": [3]}), mode="append")
        with pytest.raises(ProtocolError, match="only published versions"):
            table.checkpoint()
        deltaic.write(table, pa.table({"id": [4]}), mode="append")
        with pytest.raises(DeltaError, match="only published commits can be compacted"):
            table.compact_log(1, 2)
    table.checkpoint()
    assert published(place) == [0, 1, 2]
    assert ids(DeltaTable(place)) == [0, 1, 2, 3, 4]


def test_a_table_does_not_leave_its_catalog(tmp_path: Path) -> None:
    table = deltaic.write(
        tmp_path / "t", pa.table({"id": [1]}), properties={"delta.enableInCommitTimestamps": True}
    )
    protocol = json.loads((tmp_path / "t" / "_delta_log" / f"{0:020}.json").read_text().splitlines()[1])
    for names in ("readerFeatures", "writerFeatures"):
        protocol["protocol"][names].append("catalogManaged")
    time = int(table.history()[0]["timestamp"].timestamp() * 1000) + 1
    information = {
        "commitInfo": {
            "timestamp": time,
            "inCommitTimestamp": time,
            "operation": "UPGRADE PROTOCOL",
            "txnId": "x",
        }
    }
    (tmp_path / "t" / "_delta_log" / f"{1:020}.json").write_text(
        f"{json.dumps(information)}\n{json.dumps(protocol)}\n"
    )
    found = FileCoordinator(tmp_path / "catalog")
    (tmp_path / "catalog" / "1").write_text("")
    with deltaic.configure(commit_coordinator=lambda _: found):
        managed = DeltaTable(tmp_path / "t")
        with pytest.raises(UnsupportedFeatureError, match="leaves it by the catalog alone"):
            managed.restore(0, allow_protocol_downgrade=True)
        deltaic.write(managed, pa.table({"id": [2]}), mode="append")
        assert ids(DeltaTable(tmp_path / "t")) == [1, 2]


def test_a_transaction_over_this_table_alone_is_ratified(place: Path, coordinator: FileCoordinator) -> None:
    table = DeltaTable(place)
    table.alter.set_properties({"delta.enableChangeDataFeed": "false"})
    with deltaic.transaction(table) as t:
        t.write(table, pa.table({"id": [3, 4]}))
        t.delete(table, "id IN (1, 4)")
        t.update(table, {"id": "id + 100"}, "id = 3")
        assert staged(place) == [1]
    assert (table.version, ids(table), ids(DeltaTable(place))) == (2, [0, 2, 103], [0, 2, 103])
    assert (published(place), staged(place)) == ([0, 1, 2], [1, 2])
    assert table.transaction_state(t.id) == 2


def test_a_transaction_over_other_tables_too_is_refused(
    place: Path, coordinator: FileCoordinator, tmp_path: Path
) -> None:
    table, other = DeltaTable(place), deltaic.write(tmp_path / "other", {"id": [1]})
    for first, second in ((table, other), (other, table)):
        refused = pytest.raises(
            UnsupportedFeatureError, match="takes no part in a transaction over several tables"
        )
        with refused, deltaic.transaction(first, second) as t:
            t.write(first, {"id": [7]})
            t.write(second, {"id": [7]})
    assert (ids(DeltaTable(place)), ids(DeltaTable(other.location)), staged(place)) == ([0, 1, 2], [1], [])
