"""Runs every side-by-side benchmark of `benches/peers`, one after another (`make bench`); each writes its
record to `benches/records`.

    python -m benches [NAME ...]

NAME: a file of benches/peers without `.py`; without names, all run. The exit code is the number of benchmarks
that failed or missed a target.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main(names: list[str]) -> int:
    scripts = {
        path.stem: path for path in sorted((HERE / "peers").glob("*.py")) if not path.stem.startswith("_")
    }
    if unknown := [name for name in names if name not in scripts]:
        sys.exit(f"no such benchmark: {', '.join(unknown)}; there are: {', '.join(scripts)}")
    (HERE / "records").mkdir(exist_ok=True)
    failed = 0
    for name in names or scripts:
        print(f"== {name}", flush=True)
        record = HERE / "records" / f"{name}.json"
        failed += (
            subprocess.run([sys.executable, scripts[name], "--record", record], check=False).returncode != 0
        )
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
