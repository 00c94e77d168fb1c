"""For training scripts: report epochs, run the next one as the scheduler says, and stop early when it asks for it.

The daemon reads JSON lines from the standard output of a job. To a job of a type that steers it answers by a file,
which says how the next epochs are to be run. It stops a job by SIGTERM: after an epoch where it would be late
otherwise (`may_stop`), or because it was cancelled. Outside the daemon the same script prints the same lines, trains
with what it was given, and Ctrl-C or SIGTERM ends it after the epoch at hand."""
from __future__ import annotations

import json
import math
import os
import signal
import sys
import threading
import time
from types import FrameType
from typing import Any, Dict, Iterator, Optional, TextIO, Union

Number = Union[int, float]
ANSWER_S = 0.01  # the longest wait for the answer to a report


def _number(v: Any) -> Any:
    """A float of any library; what is not a finite number becomes null, as JSON has it."""
    if v is None or isinstance(v, (bool, str)):
        return v
    f = float(v)
    if not math.isfinite(f):
        return None
    return int(f) if isinstance(v, int) or f.is_integer() and abs(f) < 2 ** 53 else f


def _read_next(text: str) -> Dict[str, float]:
    """The words of "batch=64 lr=0.01 last=12"; {} if it is no such line."""
    words: Dict[str, float] = {}
    for word in text.split():
        name, _, value = word.partition("=")
        try:
            words[name] = float(value)
        except ValueError:
            return {}
    return words if words.get("batch", 0) >= 1 else {}


def _read_file(path: Optional[str]) -> Dict[str, float]:
    try:
        with open(path or "", encoding="ascii") as f:
            return _read_next(f.read(256))
    except (OSError, ValueError):
        return {}


class TrainingJob:
    """Made by `postrider.job()`.

    id: the number of the job, as text; None outside the daemon.
    dir: the job's own folder, where it may leave files; None outside the daemon."""

    def __init__(self, out: Optional[TextIO] = None, batch: Optional[Number] = None, lr: Optional[float] = None,
                 epochs: Optional[int] = None) -> None:
        given = {"batch": batch, "lr": lr, "last": epochs}
        self._next: Dict[str, float] = {name: float(v) for name, v in given.items() if v is not None}
        self._next.update(_read_next(os.environ.get("POSTRIDER_START", "")))
        self._path = os.environ.get("POSTRIDER_NEXT")
        self._next.update(_read_file(self._path))
        self._asks = False
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

    def _known(self, name: str, argument: str) -> Number:
        if name not in self._next:
            raise ValueError(f"{argument} is not known outside the daemon: give it, postrider.job({argument}=...)")
        v = self._next[name]
        return int(v) if v.is_integer() else v

    @property
    def batch(self) -> Any:
        """Of the next epoch. It may change with each report, where the type of the job steers."""
        self._asks = True
        return self._known("batch", "batch")

    @property
    def lr(self) -> Optional[float]:
        """The learning rate that goes with it; None: none is known."""
        return self._next.get("lr")

    @property
    def last(self) -> int:
        """The epoch to end after. It may change with each report, too."""
        return int(self._known("last", "epochs"))

    def epochs(self, first: int = 1) -> Iterator[int]:
        """The epochs that are to be run, up to `last`, or until the scheduler asks to stop."""
        epoch = first
        while epoch <= self.last and not self._stop:
            yield epoch
            epoch += 1

    def _await(self, epoch: int) -> None:
        """The answer to a report; without one in time the job goes on as it is. A late one counts for the next
        epoch."""
        until = time.monotonic() + ANSWER_S
        pause = 0.0002
        while True:
            words = _read_file(self._path)
            if words.get("after", -1) >= epoch or time.monotonic() >= until:
                break
            time.sleep(pause)
            pause = min(2 * pause, 0.002)
        self._next.update(words)

    def report(self, epoch: int, accuracy: Any = None, **more: Any) -> None:
        """One line for an epoch that is over, counted from 1: `epoch`, `accuracy` (0 to 1, as large as good), and any
        other numbers, such as loss. Numbers of NumPy and PyTorch are fine."""
        line: Dict[str, Any] = {"epoch": _number(epoch)}
        if accuracy is not None:
            line["accuracy"] = _number(accuracy)
        if self._asks:  # the script goes by `batch`: this is what it did, and it wants to know how to go on
            line["batch"] = self._known("batch", "batch")
            line["asks"] = True
        for name, value in more.items():
            line[name] = _number(value)
        out = self._out or sys.stdout
        out.write(json.dumps(line) + "\n")
        out.flush()  # the daemon decides by it whether the job is in time
        if self._asks and self._path:
            self._await(epoch)

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


def job(out: Optional[TextIO] = None, batch: Optional[Number] = None, lr: Optional[float] = None,
        epochs: Optional[int] = None) -> TrainingJob:
    """`with postrider.job() as j:` around the training loop. out: where the lines go, instead of standard output.
    batch, lr, epochs: what `j.batch`, `j.lr` and `j.last` are outside the daemon."""
    return TrainingJob(out, batch, lr, epochs)
