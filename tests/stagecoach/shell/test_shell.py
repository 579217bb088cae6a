"""The shell: statements, commands, completion, and a prompt that is typed at."""

from __future__ import annotations

import os
import pty
import select
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from stagecoach.shell.completing import ShellCompleter
from stagecoach.shell.prompt import make_prompt
from stagecoach.shell.shell import COMMANDS, Shell
from stagecoach.shell.statements import is_complete, split_pieces
from tests.in_memory_session import open_in_memory

ORDERS = pa.table({"order_id": [1, 2, 3], "shop": ["a", "b", "a"]})
SHOPS = pa.table({"shop": ["a", "b"], "region": ["north", "south"]})
ROOT = Path(__file__).parents[3]


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    with open_in_memory(tmp_path, {"orders": ORDERS, "shops": SHOPS}) as session:
        yield Shell(session, quiet=True)


def pieces(text: str) -> list[str]:
    found = list(split_pieces(text))
    assert all(text.startswith(piece.text, piece.start) for piece in found)
    return [piece.text for piece in found]


def test_statements_are_cut_as_spark_reads_them() -> None:
    assert pieces("SELECT ';' -- ;\n, `a;b`; SELECT 2;") == [
        "SELECT ';' -- ;\n, `a;b`",
        "SELECT 2",
    ]
    assert pieces(";;") == []
    assert pieces("SELECT 1; SELECT 'a;") == ["SELECT 1", "SELECT 'a;"]
    assert not list(split_pieces("SELECT 1; SELECT 'a;"))[-1].is_complete


def test_a_command_is_a_line_wherever_a_statement_may_begin() -> None:
    text = """-- rows
    .limit 1
    SELECT 1.5, t.a /* ; */ FROM t; .param x='don't
    -- two
    SELECT 2;
    .quit"""
    assert pieces(text) == [
        ".limit 1",
        "SELECT 1.5, t.a /* ; */ FROM t",
        ".param x='don't",
        "-- two\n    SELECT 2",
        ".quit",
    ]


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True),
        (".tables", True),
        ("SELECT 1; .tables", True),
        ("SELECT 1;", True),
        ("SELECT 1; -- done", True),
        ("SELECT 1", False),
        ("SELECT ';'", False),
        ("SELECT 'a;", False),
        ("SELECT 1; SELECT 2", False),
        ("SELECT 1 -- ;", False),
    ],
)
def test_enter_runs_what_is_complete(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def completed(shell: Shell, text: str, after: str = "") -> list[str]:
    completer = ShellCompleter(shell.names, COMMANDS)
    document = Document(text + after, len(text))
    return [c.text for c in completer.get_completions(document, CompleteEvent())]


def test_names_are_completed(shell: Shell) -> None:
    assert completed(shell, "SELECT * FROM ") == ["orders", "shops"]
    assert completed(shell, "SELECT * FROM o") == ["orders"]
    assert completed(shell, "SELECT * FROM orders WHERE ord")[:1] == ["order_id"]
    assert completed(shell, "SELECT reg", " FROM shops")[-1] == "region"
    assert completed(shell, "SELECT * FROM orders o JOIN shops AS s ON o.") == ["order_id", "shop"]
    assert completed(shell, "SELECT * FROM orders o JOIN shops AS s ON s.r") == ["region"]
    assert completed(shell, "SELECT * FROM orders JOIN sh") == ["shops"]
    assert "count_if" in completed(shell, "SELECT COUNT_")
    assert completed(shell, "SEL")[0] == "SELECT"
    assert completed(shell, "SELECT 'or") == []
    assert completed(shell, "SELECT * FROM none WHERE none.") == []
    assert completed(shell, ".sch") == [".schema"]
    assert completed(shell, ".schema s") == ["shops"]


def test_commands(shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said(text: str) -> str:
        shell.execute(text)
        found = capsys.readouterr()
        return found.out + found.err

    assert said(".tables") == "orders\nshops\n"
    assert said(".schema shops") == "shop    string\nregion  string\n"
    assert said(".schema shop") == "error: there is no table shop; did you mean shops?\n"
    assert said(".tabels") == "error: unknown command .tabels; did you mean .tables?\n"
    assert all(name in said(".help") for name in COMMANDS)
    assert "no query has run yet" in said(".explain")
    assert said(".explain SELECT 1").startswith("query query: 1 stage")
    assert "--> shell:1:8" in said(".explain SELECT nope FROM orders")
    shown = said("SELECT shop FROM orders WHERE order_id = 2;")
    assert shown.startswith("shop\n────\nb\n(1 row)\n")
    assert shown.endswith("s (1 stage)\n")
    assert "Scan" in said(".explain")
    assert said(".timing off") == "timing: off\n"
    assert said(".format csv") == "format: csv\n"
    assert said(".param id=3") == "id=3\n"
    assert said("SELECT shop FROM orders WHERE order_id = :id;") == "shop\na\n"
    assert said("SELECT 1 AS one; SELECT\n2 AS two;") == "one\n1\ntwo\n2\n"
    assert "did you mean" in said("SELECT regoin FROM shops;")
    assert said(".format xml").startswith("error: 'xml' is not a format; use table, vertical")
    (tmp_path / "x.sql").write_text("SELECT 3 AS three;\n.format json\nSELECT 4 AS four\n")
    assert said(f".read {tmp_path}/x.sql") == 'three\n3\nformat: json\n{"four": 4}\n'
    assert "No such file" in said(".read none.sql")


def test_a_script_goes_on_after_an_error(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.timing = False
    assert shell.run_script("SELECT nope FROM orders; SELECT 1 AS a;\n.quit\nSELECT 2;", "x") == 2
    found = capsys.readouterr()
    assert "(1 row)" in found.out
    assert "--> x:1:8" in found.err
    assert "2\n" not in found.out


def test_commands_stand_between_the_statements_of_a_script(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.timing, shell.format = False, "csv"
    script = """.limit 1
SELECT order_id AS a FROM orders ORDER BY a;
.limit 2
SELECT order_id AS b FROM orders ORDER BY b;
"""
    assert shell.run_script(script, "x") == 0
    assert capsys.readouterr().out == "limit: 1\na\n1\nlimit: 2\nb\n1\n2\n"


def test_errors_of_a_script_are_placed_in_its_file(
    shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = """SELECT 1 AS a;

-- the second
SELECT
  nope FROM orders; SELECT regoin FROM shops;
.format csv
SELECT 1 +;
"""
    assert shell.run_script(script, "x.sql") == 2
    found = capsys.readouterr().err
    assert "--> x.sql:5:3\n   |\n 5 |   nope FROM orders; SELECT regoin FROM shops;\n" in found
    assert "--> x.sql:5:28\n" in found
    assert "--> x.sql:7:" in found


def test_a_file_that_is_read_fails_as_a_script_does(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "bad.sql").write_text("SELECT 1; SELECT nope FROM orders; SELECT 2;")
    (tmp_path / "ends.sql").write_text("SELECT nope FROM orders;\n.quit\n")
    assert shell.run_script(f".read {tmp_path}/bad.sql\nSELECT 1;", "x") == 2
    assert shell.run_script(f".read {tmp_path}/ends.sql\nSELECT 1;", "x") == 2
    assert shell.run_script("SELECT 1;\n.explain SELECT nope FROM orders", "x") == 2
    assert shell.run_script(f".read {tmp_path}/none.sql\nSELECT 1;", "x") == 1


def test_ctrl_c_cancels_a_query_and_keeps_the_session(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    shell.session.before_run = interrupt  # type: ignore[attr-defined]
    shell.execute("SELECT 1;")
    assert capsys.readouterr().err == "cancelled\n"
    shell.session.before_run = lambda: None  # type: ignore[attr-defined]
    shell.execute("SELECT 1 AS a;")
    assert "(1 row)" in capsys.readouterr().out


def test_keys_at_the_prompt(shell: Shell, tmp_path: Path) -> None:
    history = tmp_path / "state" / "history"
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        read = make_prompt(shell, history, input=keys, output=DummyOutput())
        keys.send_text("SELECT 1 AS a\rFROM orders;\r")
        assert read() == "SELECT 1 AS a\nFROM orders;"
        keys.send_text(".tables\r")
        assert read() == ".tables"
        keys.send_text("\x1b[A\r")  # the line before
        assert read() == ".tables"
        keys.send_text("SELECT\x03")
        with pytest.raises(KeyboardInterrupt):
            read()
        keys.send_text("\x04")
        with pytest.raises(EOFError):
            read()
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert "+FROM orders;" in history.read_text()


PROGRAM = """
import os, sys, time
from pathlib import Path
import pyarrow as pa
from stagecoach.arguments import options
from stagecoach.terminal.interrupts import handled
from tests.in_memory_session import open_in_memory

session = open_in_memory(Path.cwd(), {"orders": pa.table({"n": [1, 2]})})
session.expect_spark = lambda fresh: None

def slow():
    if Path("slow").exists():
        print("RUNS", flush=True)
        time.sleep(60)

session.before_run = slow
options.SessionRequest.open = lambda self, offline=False: session
with handled():
    from stagecoach.commands.main import cli
    cli(["shell", "--history", "history", "-q"], prog_name="stagecoach")
"""


def test_a_terminal(tmp_path: Path) -> None:
    """Types at the real command in a pseudo-terminal, and presses Ctrl-C while a query runs."""
    (tmp_path / "slow").touch()
    main, side = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=side,
        stdout=side,
        stderr=side,
        cwd=tmp_path,
        env=environment,
        start_new_session=True,
    )
    os.close(side)
    seen = ""

    def wait_for(text: str, seconds: float = 60.0) -> None:
        nonlocal seen
        deadline = time.monotonic() + seconds
        while text not in seen:
            assert time.monotonic() < deadline, f"no {text!r} in {seen!r}"
            if select.select([main], [], [], 0.2)[0]:
                try:
                    seen += os.read(main, 65536).decode(errors="replace")
                except OSError:  # the other end is closed
                    raise AssertionError(f"it ended without {text!r}: {seen!r}") from None
        seen = seen.split(text, 1)[1]

    try:
        wait_for("stagecoach>")
        os.write(main, b"SELECT sum(n) AS total FROM orders;\r")
        wait_for("RUNS")
        os.kill(process.pid, signal.SIGINT)
        wait_for("cancelled")
        (tmp_path / "slow").unlink()
        wait_for("stagecoach>")
        os.write(main, b"SELECT sum(n) + 39 AS total\rFROM orders;\r")
        wait_for("42")
        wait_for("stagecoach>")
        os.write(main, b"\x04")
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        os.close(main)
