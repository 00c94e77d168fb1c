"""For training scripts: report epochs, and stop early when the scheduler asks for it.

The daemon reads JSON lines from the standard output of a job, and stops a job by SIGTERM: after an epoch where it
would be late otherwise (`may_stop`), or because it was cancelled. Outside the daemon the same script prints the same
lines, and Ctrl-C or SIGTERM ends it after the epoch at hand."""
from __future__ import annotations

import json
import math
import os
import signal
import sys
import threading
from types import FrameType
from typing import Any, Dict, Optional, TextIO


def _number(v: Any) -> Any:
    """A float of any library; what is not a finite number becomes null, as JSON has it."""
    if v is None or isinstance(v, (bool, str)):
        return v
    f = float(v)
    if not math.isfinite(f):
        return None
    return int(f) if isinstance(v, int) or f.is_integer() and abs(f) < 2 ** 53 else f


class TrainingJob:
    """Made by `postrider.job()`.

    id: the number of the job, as text; None outside the daemon.
    dir: the job's own folder, where it may leave files; None outside the daemon."""

    def __init__(self, out: Optional[TextIO] = None) -> None:
        self.id: Optional[str] = os.environ.get("POSTRIDER_JOB")
        self.dir: Optional[str] = os.environ.get("POSTRIDER_DIR")
        self._out = out
        self._stop = False
        self._before: Any = None
        self._handles = False

    @property
    def inside(self) -> bool:
        """Does the daemon run this script?"""
        return self.id is not None

    def report(self, epoch: int, accuracy: Any = None, **more: Any) -> None:
        """One line for an epoch that is over, counted from 1: `epoch`, `accuracy` (0 to 1, as large as good), and any
        other numbers, such as loss. Numbers of NumPy and PyTorch are fine."""
        line: Dict[str, Any] = {"epoch": _number(epoch)}
        if accuracy is not None:
            line["accuracy"] = _number(accuracy)
        for name, value in more.items():
            line[name] = _number(value)
        out = self._out or sys.stdout
        out.write(json.dumps(line) + "\n")
        out.flush()  # the daemon decides by it whether the job is in time

    def should_stop(self) -> bool:
        """Ask after every epoch: True means, save what you have and leave."""
        return self._stop

    def _on_term(self, number: int, frame: Optional[FrameType]) -> None:
        self._stop = True
        signal.signal(signal.SIGTERM, self._before)  # a second one is not waited for

    def __enter__(self) -> "TrainingJob":
        if threading.current_thread() is threading.main_thread():  # Python handles signals there alone
            self._before = signal.signal(signal.SIGTERM, self._on_term)
            if self._before is None:  # set by a library in C
                self._before = signal.SIG_DFL
            self._handles = True
        return self

    def __exit__(self, *why: object) -> None:
        if self._handles:
            signal.signal(signal.SIGTERM, self._before)
            self._handles = False


def job(out: Optional[TextIO] = None) -> TrainingJob:
    """`with postrider.job() as j:` around the training loop. out: where the lines go, instead of standard output."""
    return TrainingJob(out)
