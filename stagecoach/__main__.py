"""`python -m stagecoach` and the console script: handle signals first, then import the rest."""

from __future__ import annotations

from stagecoach.terminal.interrupts import handled


def main() -> None:
    """Run the command line."""
    with handled():
        from stagecoach.commands.main import cli

        cli(prog_name="stagecoach")


if __name__ == "__main__":
    main()
