"""A client that waits for its answers. See aio.py for the one that does not."""
from __future__ import annotations

import socket as sockets
import threading
import time
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Union

from ._request import (RETRY_S, After, Seconds, Watched, checked, decode, encode, find_socket, finished_members, greeted,
                       job_members, list_members, lost, next_members, not_reachable, seconds, submit_members)
from .errors import ConnectionLost, NotReachable, PostriderError, WaitTimeout
from .types import Event, Explanation, Job, Next, Submission, read_explanation, read_job, read_next, read_submission

__all__ = ["Client", "find_socket"]

PIPELINE = 16  # requests under way at a time; more of them fill the buffers, and both sides wait
_CHANGES = {"cancel", "started", "finished", "progress"}  # not sent a second time after a lost connection


class _Connection:
    """One connection: lines out, lines in."""

    def __init__(self, path: str, timeout: Optional[float]) -> None:
        self.socket = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
        self.socket.settimeout(timeout)
        try:
            self.socket.connect(path)
        except OSError as e:
            self.socket.close()
            raise not_reachable(path, e) from e
        self.file = self.socket.makefile("rb", buffering=1 << 18)
        try:
            greeted(self.read())
        except PostriderError:
            self.close()
            raise

    def read(self) -> Dict[str, Any]:
        try:
            line = self.file.readline()
        except sockets.timeout as e:
            raise WaitTimeout("the daemon did not answer in time", "timeout") from e
        except OSError as e:
            raise lost(e) from e
        return decode(line)

    def send(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except sockets.timeout as e:
            raise WaitTimeout("the daemon takes no more requests for now", "timeout") from e
        except OSError as e:
            raise lost(e) from e

    def close(self) -> None:
        if hasattr(self, "file"):
            self.file.close()
        self.socket.close()


class Client:
    """Several threads may share one: requests go out one after the other.

    socket: a path; without it $POSTRIDER_SOCKET, the configuration's, the user's own daemon's, the system's.
    timeout: seconds to wait for an answer; None: for ever."""

    def __init__(self, socket: Optional[str] = None, timeout: Optional[float] = 60.0) -> None:
        self.path = find_socket(socket)
        self.timeout = timeout
        self._lock = threading.Lock()
        self._connection: Optional[_Connection] = None

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *why: object) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        if self._connection:
            self._connection.close()
            self._connection = None

    # ---- requests ----

    def _connected(self) -> _Connection:
        if not self._connection:
            self._connection = _Connection(self.path, self.timeout)
        return self._connection

    def _once(self, data: bytes) -> Dict[str, Any]:
        try:
            c = self._connected()
            c.send(data)
            return c.read()
        except Exception:
            self._drop()  # or a late answer would be taken for that of the next request
            raise

    def request(self, op: str, **members: Any) -> Dict[str, Any]:
        """Any op of the protocol; the reply as it came. A lost connection is made anew, unless the request may have
        been carried out and would be again."""
        data = encode(op, members)
        until = time.monotonic() + RETRY_S
        with self._lock:
            had = self._connection is not None
            while True:
                try:
                    reply = self._once(data)
                    break
                except (ConnectionLost, NotReachable) as e:
                    broke = isinstance(e, ConnectionLost)
                    # An idle connection is closed by the daemon: that is no reason to fail.
                    if op in _CHANGES or not (had or broke) or time.monotonic() > until:
                        raise
                    had = True
                    if not broke:
                        time.sleep(0.1)
        return checked(reply)

    def submit(self, type: str, params: Optional[Mapping[str, Any]] = None, *, slo: Optional[Seconds] = None,
               deadline: Optional[str] = None, confidence: Optional[float] = None,
               batches: Optional[Iterable[float]] = None, cpus: Optional[int] = None,
               epochs: Union[int, str, None] = None, best_effort: bool = False, chance: Optional[float] = None,
               may_stop: bool = False, priority: int = 0, max_memory_mb: Optional[float] = None,
               gpus: Optional[int] = None, value: Optional[float] = None, mode: str = "run",
               tag: Optional[str] = None,
               key: Optional[str] = None, dry_run: bool = False, after: After = None,
               after_ok: bool = False, retry: int = 0, index: Optional[float] = None) -> Submission:
        """The answer comes when the job is on disk. A rejected job is no error: `accepted` is False, and
        `decision.smallest_slo_s` says what could have been promised. Without a `key` one is made, so that a
        submit whose answer is lost is sent again and stays one job."""
        members = job_members(type, params, slo, deadline, confidence, batches, cpus, epochs, best_effort, chance,
                              may_stop, priority, max_memory_mb, gpus, value)
        return read_submission(self.request("submit", **submit_members(
            members, mode, tag, key, dry_run, after, after_ok, retry, index)))

    def predict(self, type: str, params: Optional[Mapping[str, Any]] = None, *, slo: Optional[Seconds] = None,
                deadline: Optional[str] = None, confidence: Optional[float] = None,
                batches: Optional[Iterable[float]] = None, cpus: Optional[int] = None,
                epochs: Union[int, str, None] = None, best_effort: bool = False, chance: Optional[float] = None,
                may_stop: bool = False, priority: int = 0, max_memory_mb: Optional[float] = None,
                gpus: Optional[int] = None, value: Optional[float] = None) -> Submission:
        """What `submit` would answer now. Nothing is stored."""
        return read_submission(self.request("predict", **job_members(
            type, params, slo, deadline, confidence, batches, cpus, epochs, best_effort, chance, may_stop, priority,
            max_memory_mb, gpus, value)))

    def predict_many(self, questions: Iterable[Mapping[str, Any]]) -> Iterator[Submission]:
        """Many at once over one connection, each with the arguments of `predict`: the answers come in the order of the
        questions, while later questions are under way. An error reply ends it."""
        defaults: Dict[str, Any] = {
            "params": None, "slo": None, "deadline": None, "confidence": None, "batches": None, "cpus": None,
            "epochs": None, "best_effort": False, "chance": None, "may_stop": False, "priority": 0,
            "max_memory_mb": None, "gpus": None, "value": None}
        c = _Connection(self.path, self.timeout)
        try:
            under_way, more, source = 0, True, iter(questions)
            while more or under_way:
                lines: List[bytes] = []
                while more and under_way + len(lines) < PIPELINE:
                    q = next(source, None)
                    if q is None:
                        more = False
                    else:
                        lines.append(encode("predict", job_members(**{**defaults, **q})))
                if lines:
                    c.send(b"".join(lines))
                    under_way += len(lines)
                for _ in range(under_way if not more else max(under_way // 2, 1)):
                    reply = c.read()
                    under_way -= 1
                    yield read_submission(checked(reply))
        finally:
            c.close()

    def status(self, job: Union[str, int]) -> Job:
        return read_job(self.request("status", job=str(job))["job"])

    def explain(self, job: Union[str, int]) -> Explanation:
        """Every decision and every estimate that was made for a job."""
        return read_explanation(self.request("explain", job=str(job)))

    def cancel(self, job: Union[str, int]) -> Job:
        return read_job(self.request("cancel", job=str(job))["job"])

    def list(self, state: Union[str, Iterable[str], None] = None, *, type: Optional[str] = None, mine: bool = False,
             limit: Optional[int] = None) -> Iterator[Job]:
        """Jobs, the newest first; they are fetched in pages while you read them. limit: at most so many."""
        members = list_members(state, type, mine)
        left = limit
        while left is None or left > 0:
            page = self.request("list", limit=min(left or 1000, 1000), **members)
            for v in page["jobs"]:
                yield read_job(v)
            if left is not None:
                left -= len(page["jobs"])
            if not page["more"] or not page["jobs"]:
                return
            members["before"] = page["jobs"][-1]["job"]

    def stats(self) -> Dict[str, Any]:
        """What `postrider stats --json` prints; docs/PROTOCOL.md has the members."""
        return self.request("stats")

    def hello(self) -> Dict[str, Any]:
        """Version, policy, model, job types, and who the daemon takes you for."""
        return self.request("hello")

    # ---- jobs that you run yourself (mode="advise") ----

    def started(self, job: Union[str, int]) -> Submission:
        """You have started it; `decision` has the batch for the time that is left."""
        return read_submission(self.request("started", job=str(job)))

    def progress(self, job: Union[str, int], done: float) -> Job:
        return read_job(self.request("progress", job=str(job), done=done)["job"])

    def next(self, job: Union[str, int], *, epoch: Optional[int] = None, accuracy: Optional[float] = None,
             batch: Optional[float] = None) -> Next:
        """How the next epoch of a job is to be run. epoch: of an advised job, its report: that one is over."""
        return read_next(self.request("next", **next_members(job, epoch, accuracy, batch)))

    def finished(self, job: Union[str, int], *, exit_code: int = 0, accuracy: Optional[float] = None,
                 run_s: Optional[float] = None) -> Job:
        return read_job(self.request("finished", **finished_members(job, exit_code, accuracy, run_s))["job"])

    # ---- events ----

    def watch(self, job: Union[str, int, None] = None, timeout: Optional[Seconds] = None) -> Iterator[Event]:
        """Events of a job until it ends, or of all jobs for ever, over a connection made for this. Before the first
        one comes an Event "state" for each job that lives. WaitTimeout: none came for so long."""
        watched = Watched(job)
        c = _Connection(self.path, None if timeout is None else seconds(timeout))
        try:
            c.send(watched.request)
            for e in watched.first(c.read()):
                yield e
                if watched.over(e):
                    return
            while True:
                e = watched.next(c.read())
                yield e
                if watched.over(e):
                    return
        finally:
            c.close()

    def wait(self, job: Union[str, int], timeout: Optional[Seconds] = None) -> Job:
        """Until the job has ended. A daemon that restarts meanwhile is waited for."""
        until = None if timeout is None else time.monotonic() + seconds(timeout)
        lost_since: Optional[float] = None
        while True:
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                raise WaitTimeout(f"job {job} has not ended in time", "timeout")
            try:
                last = self._watch_to_end(job, left)
                if last:
                    return last
                lost_since = None
            except NotReachable:
                lost_since = lost_since or time.monotonic()
                if time.monotonic() - lost_since > RETRY_S:
                    raise
                time.sleep(0.1)

    def _watch_to_end(self, job: Union[str, int], left: Optional[float]) -> Optional[Job]:
        try:
            for e in self.watch(job, left):
                if e.job and e.job.job == str(job) and not e.job.live:
                    return e.job
        except WaitTimeout:
            return None  # no event for so long; wait() looks at the clock
        except PostriderError as e:
            if e.code != "wrong_state":  # it ended so long ago that it is in the database alone
                raise
            return self.status(job)
        return None
