"""The `deltaic` command: one function for each subcommand, which calls the public API and prints what it
returns."""

from __future__ import annotations

import io
import os
import sys


def main() -> None:
    """Entry point. Exit codes: 0 done, 1 an error of the table or the statement (its message on stderr), 2
    wrong usage, 130 Ctrl-C."""
    try:
        import deltaic.cli.log_commands  # noqa: F401  adds its commands
        from deltaic.cli.app import app
        from deltaic.cli.render import fail
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        print(
            f"the command deltaic needs {error.name}, which is not installed: pip install 'deltaic[cli]'",
            file=sys.stderr,
        )
        sys.exit(2)
    from deltaic.errors import DeltaError

    _use_utf8()
    try:
        app()
    except DeltaError as error:
        fail(str(error))
        sys.exit(1)
    except BrokenPipeError:  # `deltaic sql ... | head` has read enough
        sys.stderr.close()
        sys.exit(0)


def _use_utf8() -> None:
    """Makes pipes and files UTF-8 on Windows. Python uses the code page there, which lacks most letters of
    tables and of frames around them, and JSON is UTF-8."""
    if os.name != "nt" or os.environ.get("PYTHONIOENCODING"):
        return
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not stream.isatty():
            stream.reconfigure(encoding="utf-8")
