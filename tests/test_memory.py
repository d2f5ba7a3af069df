"""The memory budget: the limits of the machine and the container, how the budget is divided, and that whole
processes stay within it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import deltaic
from deltaic import configuration, memory

MIB = 1 << 20


def container(root: Path, cgroup: str, mounts: str, limits: dict[str, str]) -> int | None:
    """Returns the limit that the code finds below a folder with these files."""
    files = {"proc/self/cgroup": cgroup, "proc/self/mountinfo": mounts, **limits}
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return memory.container_limit(str(root))


SECOND = "35 31 0:32 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup rw,nsdelegate\n"
FIRST = (
    "36 31 0:33 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n37 31 0:34 / /sys/fs/cgroup/cpu rw -"
    " cgroup cgroup rw,cpu\n"
)


def test_the_smallest_limit_on_the_way_up_counts(tmp_path: Path) -> None:
    limits = {
        "sys/fs/cgroup/memory.max": "9000000000\n",
        "sys/fs/cgroup/pod/memory.max": "1500000000\n",
        "sys/fs/cgroup/pod/job/memory.max": "max\n",
        "sys/fs/cgroup/pod/job/memory.high": "2000000000\n",
    }
    assert container(tmp_path, "0::/pod/job\n", SECOND, limits) == 1_500_000_000
    (tmp_path / "sys/fs/cgroup/pod/job/memory.high").write_text("700000000\n")
    assert memory.container_limit(str(tmp_path)) == 700_000_000


def test_version_1_names_its_group_by_controller(tmp_path: Path) -> None:
    cgroup = "5:cpu,cpuacct:/elsewhere\n4:memory:/box/job\n0::/\n"
    limits = {
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        "sys/fs/cgroup/memory/box/memory.limit_in_bytes": "1600000000\n",
        "sys/fs/cgroup/memory/box/job/memory.limit_in_bytes": "1700000000\n",
        "sys/fs/cgroup/cpu/memory.limit_in_bytes": "5\n",
    }
    assert container(tmp_path, cgroup, FIRST, limits) == 1_600_000_000


def test_a_container_mounts_its_own_group(tmp_path: Path) -> None:
    """Without a namespace the path is that of the machine, and the mount begins at the container's group."""
    mounts = "36 31 0:33 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
    limits = {"sys/fs/cgroup/memory/memory.limit_in_bytes": "1500000000\n"}
    assert container(tmp_path, "4:memory:/docker/abc\n", mounts, limits) == 1_500_000_000


@pytest.mark.parametrize("text", ["max\n", "9223372036854771712\n", "0\n", "", "many\n"])
def test_no_limit(tmp_path: Path, text: str) -> None:
    assert container(tmp_path, "0::/job\n", SECOND, {"sys/fs/cgroup/job/memory.max": text}) is None
    assert memory.container_limit(str(tmp_path / "nothing here")) is None


def test_the_machines_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal:        2000000 kB\nMemFree:          100 kB\n")
    assert memory.machine_memory(str(tmp_path)) == 2_048_000_000
    assert memory.machine_memory(str(tmp_path / "elsewhere")) > 100_000_000  # the system's own answer

    def unknown(name: str) -> int:
        raise ValueError(name)

    monkeypatch.setattr("os.sysconf", unknown, raising=False)
    monkeypatch.setattr("sys.platform", "unknown")
    assert memory.machine_memory(str(tmp_path / "elsewhere")) == memory.ASSUMED
    assert "4 GiB are assumed" in caplog.text


def test_the_default_is_half_of_what_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert configuration.budget().limit == memory.available() // 2
    with deltaic.configure(memory_limit="600MB"):
        assert configuration.budget().limit == 600_000_000
    assert memory.available() <= memory.machine_memory()
    for name, value in (("machine_memory", 8 << 30), ("container_limit", 3 << 30)):
        monkeypatch.setattr(memory, name, lambda value=value: value)
    assert memory.available.__wrapped__() == 3 << 30


@pytest.mark.parametrize("threads", [1, 2, 64])
def test_the_parts_make_up_the_limit(threads: int) -> None:
    for limit in (300_000_000, 750_000_000, 2 << 30, 12 << 30, 500 << 30):
        budget = memory.budget(limit, threads)
        engine = budget.engine + budget.engine_threads * 40 * MIB
        assert engine + budget.readers + budget.writers + min(memory.LIBRARIES, limit // 4) <= limit * 1.2
        assert 1 <= budget.engine_threads <= threads
        assert budget.engine >= limit // 8
    assert memory.budget(64 << 30, 64).engine_threads == 64
    assert memory.budget(750_000_000, 64).engine_threads < 4  # each needs room of its own
    assert memory.budget(1, 4).engine > 0


BENCH = Path(__file__).resolve().parent.parent / "benches" / "memory.py"
ROWS = 4_000_000
MADE_BY_THE_READER = 2 * 100_000 * 190
"""Bytes that the source of the MERGE holds: a batch that is being made, and the one before it."""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`plain` and `deleted` of the bench, 760 MB of rows."""
    root = tmp_path_factory.mktemp("memory")
    code = "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1])\n"
    code += "import memory; memory.prepare(Path(sys.argv[2]), int(sys.argv[3]))"
    subprocess.run([sys.executable, "-c", code, BENCH.parent, root, str(ROWS)], check=True)
    return root


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from /proc")
@pytest.mark.parametrize("job", ["sort", "z_order", "purge", "merge"])
def test_a_process_stays_within_its_limit(tables: Path, job: str) -> None:
    """Readers, writers, the engine and the libraries together, with more rows than the limit has bytes
    for."""
    table = tables / job
    shutil.copytree(tables / ("deleted" if job == "purge" else "plain"), table)
    done = subprocess.run(
        [sys.executable, BENCH, "--child", job, table, "600MB"], capture_output=True, text=True
    )
    shutil.rmtree(table)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.strip().splitlines()[-1])
    assert found["limit"] == 600_000_000
    # The limit is not for the caller's own objects.
    of_the_caller = MADE_BY_THE_READER if job == "merge" else 0
    assert found["peak"] - of_the_caller <= 720_000_000, found
