"""Measures how long work continues after Ctrl-C: `python benches/peers/interrupt.py [--rows N] [--record
FILE]`.

Each operation runs in a fresh process on its own copy of a table and gets SIGINT after 0.15 to 1.3 s; the
time from the signal to the KeyboardInterrupt counts, the longest of all runs. An interrupted operation must
leave the table unchanged: it has the rows of an existing version, and no commit without a returned call.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from _pairs import data, versions

LIMIT = 1.0
PATIENCE = 30.0
MOMENTS = (0.15, 0.4, 0.8, 1.3)
OPERATIONS = {
    "scan": "table.scan().to_arrow()",
    "stream": "[batch for batch in table.scan().to_reader()]",
    "sort": "deltaic.sql('SELECT * FROM t ORDER BY name, value, at', tables={'t': table}).to_arrow()",
    "join": (
        "deltaic.sql('SELECT count(*) FROM t AS a JOIN t AS b ON a.key = b.key', tables={'t':"
        " table}).to_arrow()"
    ),
    "write": "deltaic.write(table, rows, mode='overwrite')",
    "delete": "table.delete('value % 2 < 1 OR sin(value) > 0.3')",
    "update": "table.update({'name': \"concat(name, 'x')\"}, 'value > 10')",
    "merge": "table.merge(rows.slice(0, len(rows) // 2), 't.id = s.id').when_matched_update_all().execute()",
    "z_order": "table.optimize.z_order(['key', 'at'])",
}


def child(operation: str, folder: str, rows: int) -> None:
    """Repeats the operation until it is interrupted, saying before each time which version it starts from."""
    import deltaic

    table = deltaic.DeltaTable(folder)
    names = {"deltaic": deltaic, "table": table, "rows": data(rows)}
    print("ready", flush=True)
    try:
        while True:
            print(table.version, flush=True)
            exec(OPERATIONS[operation], names)
    except KeyboardInterrupt:
        print("interrupted", flush=True)


def seconds(operation: str, folder: Path, rows: int, moment: float) -> float:
    process = subprocess.Popen(
        [sys.executable, __file__, "--child", operation, str(folder), "--rows", str(rows)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(moment)
    began = time.perf_counter()
    process.send_signal(signal.SIGINT)
    said = ""
    last_resort = threading.Timer(PATIENCE, process.kill)
    last_resort.start()
    for line in process.stdout:
        taken = time.perf_counter() - began
        if line == "interrupted\n":
            break
        said = line
    else:
        if not last_resort.is_alive():
            process.wait()
            return PATIENCE
        raise SystemExit(f"{operation} was not interrupted but failed")
    process.wait()
    last_resort.cancel()
    import deltaic

    table = deltaic.DeltaTable(folder)
    if table.version != int(said):
        raise SystemExit(f"{operation} was interrupted and left version {table.version} after {said.strip()}")
    if table.scan().count() != table.scan(["id"]).to_arrow().num_rows:
        raise SystemExit(f"{operation} left a table whose files and log disagree")
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--record", type=Path, help="where to write the numbers as JSON")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(*options.child, options.rows)
        return
    import deltaic

    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="deltaic-bench-") as directory:
        deltaic.write(f"{directory}/table", data(options.rows))
        for operation in OPERATIONS:
            longest = 0.0
            for moment in MOMENTS:
                copy = Path(directory) / "copy"
                shutil.rmtree(copy, ignore_errors=True)
                shutil.copytree(f"{directory}/table", copy)
                longest = max(longest, seconds(operation, copy, options.rows, moment))
            found[operation] = round(longest, 3)
            print(
                f"{operation:10} {longest:6.3f} s (<= {LIMIT:g}) {'met' if longest <= LIMIT else 'MISSED'}",
                flush=True,
            )
    if options.record:
        command = " ".join(["python", "benches/peers/interrupt.py", *sys.argv[1:]])
        machine = {"cores": os.cpu_count(), "system": platform.platform(), "load": list(os.getloadavg())}
        about = {
            "command": command,
            "machine": machine,
            "versions": versions(),
            "rows": options.rows,
            "moments": MOMENTS,
        }
        options.record.write_text(json.dumps({**about, "seconds": found}, indent=1) + "\n", encoding="utf-8")
    if max(found.values()) > LIMIT:
        raise SystemExit("a target was missed")


if __name__ == "__main__":
    main()
