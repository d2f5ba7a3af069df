"""Checks the wheel as a user gets it: its size, its licence and its list of components, and the examples of
README.md and of docs/get-started.md in a clean environment without Rust."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

LIMIT = 25 * 10**6  # bytes; a download that a notebook can afford
ROOT = Path(__file__).resolve().parent.parent


def main(folder: Path) -> None:
    wheels = list(folder.glob("deltaic-*-abi3-*.whl"))
    if len(wheels) != 1:
        sys.exit(f"{folder}: one abi3 wheel expected, found {[wheel.name for wheel in wheels]}")
    size = wheels[0].stat().st_size
    if size >= LIMIT:
        sys.exit(f"{wheels[0].name}: {size:,} bytes; the limit is {LIMIT:,}")
    with zipfile.ZipFile(wheels[0]) as wheel:
        names = wheel.namelist()
    packages = {name.partition("/")[0] for name in names}
    if missing := {"deltaic", "pyspark_deltaic", "pyspark_delta"} - packages:
        sys.exit(f"{wheels[0].name}: without {sorted(missing)}")
    for what, end in (("licence", ".dist-info/licenses/LICENSE"), ("SBOM", ".dist-info/sboms/deltaic.cyclonedx.json")):
        if not any(name.endswith(end) for name in names):
            sys.exit(f"{wheels[0].name}: without a {what}: {end}")
    with tempfile.TemporaryDirectory() as scratch:
        environment = Path(scratch) / "venv"
        venv.create(environment, with_pip=True)
        python = environment / ("Scripts" if os.name == "nt" else "bin") / "python"
        # No cargo, no compiler: only the environment's own programs.
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "CARGO", "RUST"))}
        clean["PATH"] = str(python.parent)
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", f"{wheels[0]}[cli]", "pandas"], check=True, env=clean
        )
        pages = [ROOT / "README.md", ROOT / "docs" / "get-started.md"]
        subprocess.run([python, "-I", ROOT / "tests" / "test_readme.py", *pages], check=True, env=clean, cwd=scratch)
        subprocess.run([python.parent / "deltaic", "--help"], check=True, env=clean, cwd=scratch, stdout=subprocess.DEVNULL)
    print(f"{wheels[0].name}: {size:,} bytes, installs without Rust, runs README.md and get-started.md")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
