"""Ctrl-C and SIGTERM on the command line: the process and all that it has started end in 2 seconds.

    signal ─▶ "Cancelling…"         at once, by a thread that does nothing else
           ─▶ KeyboardInterrupt     in the main thread: the run cancels its jobs and marks its end
           ─▶ SIGTERM to children   a moment later: the JVM removes its temporary files and ends
           ─▶ SIGKILL to children   1.0 s after the signal, or at the second signal
           ─▶ exit                  1.3 s after the signal at the latest, with 128 + its number

Python handles signals in the main thread only, which may be waiting for Spark to start, and Dagster
replaces the handlers while a run is going on. So the thread does not depend on handlers: it reads
what the interpreter writes to `signal.set_wakeup_fd` whenever a signal arrives.

Only the command line installs this. `stagecoach.connect` leaves signals as they are: in a notebook
KeyboardInterrupt ends the query, and the session with its JVM stays.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType

from stagecoach.infra.host.ending import begin_ending
from stagecoach.infra.host.processes import descendants, send_signal

SIGNALS = (signal.SIGINT, signal.SIGTERM)

_ASK_SECONDS = 0.1
_KILL_SECONDS = 1.0
_EXIT_SECONDS = 1.3
_POLL_SECONDS = 0.05
_SWITCH_SECONDS = 0.0002


class Interrupts:
    """The signals that end this process; `handled` makes the only ones."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        """The first signal that arrived, or None."""
        self._is_raised = False
        self._is_alone = False
        self.ends_at_interrupt = True
        """Whether Ctrl-C ends the process; SIGTERM always does."""
        self._arrived, self._wakeup = os.pipe()
        os.set_blocking(self._wakeup, False)

    def install(self) -> None:
        """Handle signals from now on; to be called in the main thread."""
        signal.set_wakeup_fd(self._wakeup, warn_on_full_buffer=False)
        for number in SIGNALS:
            # A shell ignores SIGINT for what it starts in the background.
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._interrupt_once)
        threading.Thread(target=self._watch, name="interrupts", daemon=True).start()

    def exit_code(self) -> int | None:
        """Wait until no child is left; return 128 + the signal, or None if none has arrived."""
        if not self.is_received:
            return None
        # The other thread kills children that do not end, and then this process.
        while self.received is None or not self._is_alone:
            time.sleep(_POLL_SECONDS)
        return 128 + self.received

    @property
    def is_received(self) -> bool:
        """Whether a signal has arrived."""
        return self.received is not None or self._is_raised

    def _interrupt_once(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal in the main thread where nobody else does."""
        if not self._is_raised:
            self._is_raised = True
            raise KeyboardInterrupt

    def _watch(self) -> None:
        while (received := self._await_signal(None)) is None:
            continue
        # This thread must not wait for a main thread that is busy importing, say.
        sys.setswitchinterval(_SWITCH_SECONDS)
        begin_ending()
        _say("Cancelling…")
        # Everything else that is said follows from that; servers of pyspark print tracebacks.
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 -- until the exit
        self.received = received
        began = time.monotonic()
        children: set[int] = set()
        # What was about to be started when the signal came is found in one of the next rounds.
        while (seconds := time.monotonic() - began) < _EXIT_SECONDS:
            found = set(descendants(os.getpid(), children))
            if seconds >= _KILL_SECONDS:
                send_signal(found, signal.SIGKILL)
            elif seconds >= _ASK_SECONDS:
                send_signal(found - children, signal.SIGTERM)
                children |= found
            self._is_alone = not found
            if self._await_signal(_POLL_SECONDS) is not None:
                break
        send_signal(descendants(os.getpid(), children), signal.SIGKILL)
        os._exit(128 + received)

    def _await_signal(self, seconds: float | None) -> signal.Signals | None:
        """Return the next of the signals; None if none arrives in time."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([self._arrived], [], [], left)[0]:
                return None
            for number in os.read(self._arrived, 1):
                if number == signal.SIGINT and not self.ends_at_interrupt:
                    continue
                if number in SIGNALS:
                    return signal.Signals(number)


def _say(text: str) -> None:
    """Print a line on standard error, which another thread may be writing to at this moment."""
    with contextlib.suppress(OSError, ValueError):  # closed, or nobody reads it
        # A terminal shows ^C, or a line of progress that is not finished.
        start = "\n" if sys.stderr.isatty() else ""
        os.write(sys.stderr.fileno(), f"{start}{text}\n".encode())


_installed: Interrupts | None = None


@contextlib.contextmanager
def handled() -> Iterator[None]:
    """End this process within two seconds of SIGINT or SIGTERM; to be used once, in main."""
    global _installed
    _installed = signals = Interrupts()
    signals.install()
    try:
        yield
    finally:
        # Whatever else ends the block follows from the signal.
        if (code := signals.exit_code()) is not None:
            # Not `sys.exit`: it waits for threads, in a state where no thread can end the process.
            atexit._run_exitfuncs()
            os._exit(code)


def leave_to_caller() -> None:
    """Handle signals no more: the caller does, because it ends in a way of its own.

    To be called in the main thread.
    """
    global _installed
    if _installed is not None and not _installed.is_received:
        # The thread waits for ever for a signal that it is not told of.
        signal.set_wakeup_fd(-1)
        _installed = None


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """Have Ctrl-C only raise KeyboardInterrupt in the main thread, as Python does by itself."""
    signals, before = _installed, signal.getsignal(signal.SIGINT)
    if signals is not None:
        signals.ends_at_interrupt = False
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if signals is not None:
            signals.ends_at_interrupt = True


def was_interrupted() -> bool:
    """Return whether a signal is ending this process."""
    return _installed is not None and _installed.is_received
