"""Writes tests/slow_tests.txt, the list of tests that `make test-quick` omits, from the times of a run:

python -m pytest -q -m "not spark" --ignore=tests/spark --junitxml=times.xml tests
python scripts/write_slow_tests.py times.xml
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "tests" / "slow_tests.txt"
MOST = 0.15
"""Seconds of a function with all its cases; more is slow, unless each case takes less than `FEW`."""
FEW = 0.015
# Processes, servers, random runs: left out whole, and not timed here.
WHOLE = (
    "broken_logs/",
    "simulation/",
    "stores/",
    "test_concurrency.py",
    "test_consistency_model.py",
    "test_delta_spark.py",
    "test_demo.py",
    "test_faults.py",
    "test_feature_combinations.py",
    "test_good_citizen.py",
    "test_hostile_tables.py",
    "test_interop.py",
    "test_interruptions.py",
    "test_memory.py",
    "test_oracle.py",
    "transaction/test_killed_transactions.py",
)


def slow(report: Path) -> list[str]:
    """Returns functions, such as `commands/test_merge.py::test_memory_is_bounded`."""
    times: dict[str, list[float]] = defaultdict(list)
    for case in ElementTree.parse(report).iter("testcase"):
        place = str(case.get("classname")).removeprefix("tests.").replace(".", "/")
        times[f"{place}.py::{str(case.get('name')).partition('[')[0]}"].append(float(str(case.get("time"))))
    return sorted(name for name, each in times.items() if sum(each) > MOST and sum(each) / len(each) > FEW)


if __name__ == "__main__":
    functions = [name for name in slow(Path(sys.argv[1])) if not name.startswith(WHOLE)]
    lines = [
        "# What `make test-quick` leaves out, by scripts/write_slow_tests.py: folders and files whole, then",
        "# functions that take long.",
        *(sorted(WHOLE)),
        *functions,
    ]
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{FILE.relative_to(ROOT)}: {len(functions)} functions")
