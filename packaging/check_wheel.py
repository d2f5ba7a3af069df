"""Checks the wheel as a user gets it: its size, its licence, its list of components and the processor and C
library of its extension; then runs the examples of README.md and of docs/get-started.md in a clean
environment without Rust.

`python packaging/check_wheel.py dist --contents` stops before the examples: for a wheel of another machine.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

LIMIT = 25 * 10**6  # bytes; a download that a notebook can afford
ROOT = Path(__file__).resolve().parent.parent


PLATFORM = re.compile(
    r"(?P<system>manylinux_2_\d+|musllinux_1_\d+|macosx_\d+_\d+|win)"
    r"_(?P<processor>x86_64|aarch64|arm64|amd64)"
)
"""Tag of a platform in the name of a wheel. An alias such as `manylinux2014_aarch64` stands beside it."""
ELF_MACHINES = {"x86_64": 62, "aarch64": 183}
PE_MACHINES = {"amd64": 0x8664}
C_LIBRARIES = {"manylinux": rb"\0libc\.so\.6\0", "musllinux": rb"\0libc\.(so\0|musl-)"}
"""Name of the C library among those that an extension for Linux needs: `libc.so.6` is glibc; musl is
`libc.so`, or `libc.musl-x86_64.so.1` as on Alpine."""


def extension_problem(wheel: str, name: str, data: bytes) -> str | None:
    """Returns why the extension `name` with these bytes does not fit the tag of the wheel's platform."""
    tag = PLATFORM.search(wheel)
    if tag is None:
        return f"its name has no known platform, such as {', '.join(C_LIBRARIES)}, macosx or win"
    system, processor = tag["system"].split("_")[0], tag["processor"]
    if name != ("deltaic/_core.pyd" if system == "win" else "deltaic/_core.abi3.so"):
        return f"{name} is not what Python imports there"
    if system == "win":
        [header] = struct.unpack_from("<I", data, 0x3C)
        is_right = data[header : header + 4] == b"PE\0\0" and struct.unpack_from("<H", data, header + 4) == (
            PE_MACHINES[processor],
        )
        return None if is_right else f"{name} is not a library of Windows for {processor}"
    if system == "macosx":
        return None
    if data[:4] != b"\x7fELF" or struct.unpack_from("<H", data, 18) != (ELF_MACHINES[processor],):
        return f"{name} is not a library of Linux for {processor}"
    if [kind for kind, library in C_LIBRARIES.items() if re.search(library, data)] != [system]:
        return f"{name} is not linked with the C library of {system}"
    return None


def main(folder: Path, *, contents_only: bool = False) -> None:
    wheels = list(folder.glob("deltaic-*-abi3-*.whl"))
    if len(wheels) != 1:
        sys.exit(f"{folder}: one abi3 wheel expected, found {[wheel.name for wheel in wheels]}")
    size = wheels[0].stat().st_size
    if size >= LIMIT:
        sys.exit(f"{wheels[0].name}: {size:,} bytes; the limit is {LIMIT:,}")
    with zipfile.ZipFile(wheels[0]) as wheel:
        names = wheel.namelist()
        extensions = {
            name: wheel.read(name)
            for name in names
            if name.startswith("deltaic/_core.") and not name.endswith(".pyi")
        }
    if len(extensions) != 1:
        sys.exit(f"{wheels[0].name}: one extension expected, found {sorted(extensions)}")
    [(name, data)] = extensions.items()
    if problem := extension_problem(wheels[0].name, name, data):
        sys.exit(f"{wheels[0].name}: {problem}")
    packages = {name.partition("/")[0] for name in names}
    if missing := {"deltaic", "pyspark_deltaic", "pyspark_delta"} - packages:
        sys.exit(f"{wheels[0].name}: without {sorted(missing)}")
    for what, end in (
        ("licence", ".dist-info/licenses/LICENSE"),
        ("SBOM", ".dist-info/sboms/deltaic.cyclonedx.json"),
    ):
        if not any(name.endswith(end) for name in names):
            sys.exit(f"{wheels[0].name}: without a {what}: {end}")
    if contents_only:
        print(f"{wheels[0].name}: {size:,} bytes, contents as expected")
        return
    with tempfile.TemporaryDirectory() as scratch:
        environment = Path(scratch) / "venv"
        venv.create(environment, with_pip=True)
        python = environment / ("Scripts" if os.name == "nt" else "bin") / "python"
        # No cargo, no compiler: only the environment's own programs.
        clean = {
            key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "CARGO", "RUST"))
        }
        clean["PATH"] = str(python.parent)
        subprocess.run(
            [
                python,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--only-binary",
                ":all:",
                f"{wheels[0]}[cli]",
                "pandas",
            ],
            check=True,
            env=clean,
        )
        pages = [ROOT / "README.md", ROOT / "docs" / "get-started.md"]
        subprocess.run(
            [python, "-I", ROOT / "tests" / "test_readme.py", *pages], check=True, env=clean, cwd=scratch
        )
        subprocess.run(
            [python.parent / "deltaic", "--help"],
            check=True,
            env=clean,
            cwd=scratch,
            stdout=subprocess.DEVNULL,
        )
    print(f"{wheels[0].name}: {size:,} bytes, installs without Rust, runs README.md and get-started.md")


if __name__ == "__main__":
    main(Path(sys.argv[1]), contents_only="--contents" in sys.argv[2:])
