"""The `deltaic` command: one function for each subcommand, which calls the public API and prints what it
returns."""

from __future__ import annotations

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
        print(f"the command deltaic needs {error.name}, which is not installed: pip install 'deltaic[cli]'", file=sys.stderr)
        sys.exit(2)
    from deltaic.errors import DeltaError

    try:
        app()
    except DeltaError as error:
        fail(str(error))
        sys.exit(1)
    except BrokenPipeError:  # `deltaic sql ... | head` has read enough
        sys.stderr.close()
        sys.exit(0)
