"""What the two clients share: the lines of requests and replies, durations, and the place of the socket."""
from __future__ import annotations

import json
import os
import re
import uuid
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Union

from .errors import ConnectionLost, NotReachable, error_of
from .types import Event, read_event, read_job

RETRY_S = 30.0  # how long a daemon that restarts is waited for, where nothing can happen twice

Seconds = Union[int, float, str]
After = Union[str, int, Sequence[Union[str, int]], None]  # a job, or several

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd]?)")
_DAYS = re.compile(r"(?:(\d+)-)?(\d+):(\d\d):(\d\d)")


def seconds(value: Seconds) -> float:
    """90, "90", "90s", "15m", "2h", "1d" or Slurm's "1-02:03:04"."""
    if not isinstance(value, str):
        return float(value)
    m = _DURATION.fullmatch(value.strip())
    if m:
        return float(m.group(1)) * _UNITS[m.group(2)]
    m = _DAYS.fullmatch(value.strip())
    if m:
        return float(m.group(1) or 0) * 86400 + int(m.group(2)) * 3600 + int(m.group(3)) * 60 + int(m.group(4))
    raise ValueError(f"{value!r} is no duration; write 90, 90s, 15m, 2h or D-HH:MM:SS")


def job_members(type: str, params: Optional[Mapping[str, Any]], slo: Optional[Seconds], deadline: Optional[str],
                confidence: Optional[float], batches: Optional[Iterable[float]], cpus: Optional[int],
                epochs: Union[int, str, None], best_effort: bool, chance: Optional[float], may_stop: bool,
                priority: int, max_memory_mb: Optional[float],
                gpus: Optional[int] = None, value: Optional[float] = None) -> Dict[str, Any]:
    """The members that `submit` and `predict` have in common; what is not given is left out."""
    r: Dict[str, Any] = {"type": type}
    if params:
        r["params"] = dict(params)
    if slo is not None:
        r["slo_s"] = seconds(slo)
    if deadline is not None:
        r["deadline"] = deadline
    if confidence is not None:
        r["confidence"] = confidence
    if batches is not None:
        r["batches"] = list(batches)
    if cpus is not None:
        r["cpus"] = cpus
    if epochs is not None:
        r["epochs"] = epochs
    if best_effort:
        r["best_effort"] = True
    if chance is not None:
        r["chance"] = chance
    if may_stop:
        r["may_stop"] = True
    if priority:
        r["priority"] = priority
    if max_memory_mb is not None:
        r["max_memory_mb"] = max_memory_mb
    if gpus is not None:
        r["gpus"] = gpus
    if value is not None:
        r["value"] = value
    return r


def submit_members(members: Dict[str, Any], mode: str, tag: Optional[str], key: Optional[str], dry_run: bool,
                   after: After, after_ok: bool, retry: int,
                   index: Optional[float]) -> Dict[str, Any]:
    """job_members() and what `submit` alone has. Without a key one is made, so that a submit can be sent again after a
    lost answer, and is one job all the same."""
    members["mode"] = mode
    if tag is not None:
        members["tag"] = tag
    if after is not None:
        members["after"] = [str(job) for job in after] if isinstance(after, (list, tuple)) else str(after)
    if after_ok:
        members["after_ok"] = True
    if retry:
        members["retry"] = retry
    if index is not None:
        members["index"] = index
    if dry_run:
        members["dry_run"] = True
    else:
        members["key"] = key if key is not None else uuid.uuid4().hex
    return members


def encode(op: str, members: Mapping[str, Any]) -> bytes:
    return json.dumps({"op": op, **members}, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def list_members(state: Union[str, Iterable[str], None], type: Optional[str], mine: bool) -> Dict[str, Any]:
    members: Dict[str, Any] = {"mine": mine}
    if state is not None:
        members["state"] = state if isinstance(state, str) else [*state]
    if type is not None:
        members["type"] = type
    return members


def finished_members(job: Union[str, int], exit_code: int, accuracy: Optional[float],
                     run_s: Optional[float]) -> Dict[str, Any]:
    members: Dict[str, Any] = {"job": str(job), "exit_code": exit_code}
    if accuracy is not None:
        members["accuracy"] = accuracy
    if run_s is not None:
        members["run_s"] = run_s
    return members


def next_members(job: Union[str, int], epoch: Optional[int], accuracy: Optional[float],
                 batch: Optional[float]) -> Dict[str, Any]:
    given = {"epoch": epoch, "accuracy": accuracy, "batch": batch}
    return {"job": str(job), **{name: v for name, v in given.items() if v is not None}}


def decode(line: bytes) -> Dict[str, Any]:
    if not line.endswith(b"\n"):
        raise ConnectionLost("the daemon closed the connection", "connection_lost")
    reply: Dict[str, Any] = json.loads(line)
    return reply


def checked(reply: Dict[str, Any]) -> Dict[str, Any]:
    if reply.get("ok") is not True:
        raise error_of(reply)
    return reply


def greeted(reply: Dict[str, Any]) -> Dict[str, Any]:
    """The first line of a connection, or an event: only a refusal has `ok`."""
    if reply.get("ok") is False:
        raise error_of(reply)
    return reply


def not_reachable(path: str, why: OSError) -> NotReachable:
    return NotReachable(f"no daemon at {path}: {why.strerror or why}", "not_reachable",
                        hint="start postriderd, or set POSTRIDER_SOCKET")


def lost(why: OSError) -> ConnectionLost:
    return ConnectionLost(f"the connection was lost: {why}", "connection_lost")


class Watched:
    """The replies to `watch`, of one job or of all, as events."""

    def __init__(self, job: Union[str, int, None]) -> None:
        self.job = None if job is None else str(job)
        self.request = encode("watch", {} if self.job is None else {"job": self.job})

    def first(self, reply: Dict[str, Any]) -> List[Event]:
        return [Event("state", None, read_job(v)) for v in checked(reply)["jobs"]]

    def next(self, reply: Dict[str, Any]) -> Event:
        return read_event(greeted(reply))

    def over(self, event: Event) -> bool:
        """Is it the end of the job that is watched?"""
        return self.job is not None and event.job is not None and event.job.job == self.job and not event.job.live


# A comment, or a string, in which "//" is no comment.
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*')


def _configured_socket() -> Optional[str]:
    """`socket` of the first configuration there is, as the command-line client looks for it."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    named = os.environ.get("POSTRIDER_CONFIG")
    for path in [named] if named else [os.path.join(home, "postrider/config.json"), "/etc/postrider/config.json"]:
        try:
            text = _COMMENT.sub(lambda m: m.group(1) or " ", Path(path).read_text(encoding="utf-8"))
            found = json.loads(text).get("socket")
        except (OSError, ValueError, AttributeError):
            continue
        if isinstance(found, str):
            return os.path.abspath(found)
    return None


def find_socket(given: Optional[str] = None) -> str:
    """The socket of the daemon: what is given, $POSTRIDER_SOCKET, the configuration's, the user's own, the system's,
    that of `postrider run`."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    run = os.environ.get("XDG_RUNTIME_DIR")
    own = os.path.join(run, "postrider.sock") if run else os.path.join(state, "postrider/postrider.sock")
    found = given or os.environ.get("POSTRIDER_SOCKET") or _configured_socket()
    if found:
        return found
    system = "/run/postrider/postrider.sock"
    started = [os.path.join(run, "postrider-run.sock")] if run else []
    started.append(os.path.join(state, "postrider/run/postrider.sock"))
    return next((path for path in [own, system, *started] if os.path.exists(path)), system)
