"""`python -m stagecoach` and the console script: handle signals first, then import the rest.

Beside a warm Spark, a process that has imported the rest already runs the command.
"""

from __future__ import annotations

import sys

from stagecoach.host.handover import hand_over
from stagecoach.infra.host.ending import begin_command
from stagecoach.terminal.garbage import collect_rarely, leave_to_the_system
from stagecoach.terminal.interrupts import handled


def main() -> None:
    """Run the command line."""
    if (code := hand_over(sys.argv)) is not None:
        sys.exit(code)
    begin_command()
    collect_rarely()
    try:
        with handled():
            from stagecoach.commands.main import cli

            cli(prog_name="stagecoach")
    finally:
        leave_to_the_system()


if __name__ == "__main__":
    main()
