"""The client for asyncio: the same methods, each to be awaited. Requests of one client are pipelined, so there is no
predict_many: gather as many predict() as you like."""
from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, AsyncIterator, Deque, Dict, Iterable, Mapping, Optional, Tuple, Union

from ._request import (RETRY_S, After, Seconds, Watched, checked, decode, encode, find_socket, finished_members, greeted,
                       job_members, list_members, lost, next_members, not_reachable, seconds, submit_members)
from .errors import ConnectionLost, NotReachable, PostriderError, WaitTimeout
from .types import Event, Explanation, Job, Next, Submission, read_explanation, read_job, read_next, read_submission

_LIMIT = 1 << 26  # bytes of one reply: a list of 1,000 jobs is about one megabyte


async def _open(path: str) -> Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        reader, writer = await asyncio.open_unix_connection(path, limit=_LIMIT)
    except OSError as e:
        raise not_reachable(path, e) from e
    try:
        greeted(await _read(reader))
    except BaseException:
        writer.close()
        raise
    return reader, writer


async def _read(reader: asyncio.StreamReader) -> Dict[str, Any]:
    try:
        return decode(await reader.readline())
    except OSError as e:
        raise lost(e) from e


class AsyncClient:
    """`async with postrider.AsyncClient() as client: ...`. Replies come in the order of the requests, so many tasks
    may share one client."""

    def __init__(self, socket: Optional[str] = None) -> None:
        self.path = find_socket(socket)
        self._writer: Optional[asyncio.StreamWriter] = None
        self._reading: Optional["asyncio.Task[None]"] = None
        self._under_way: Deque["asyncio.Future[Dict[str, Any]]"] = deque()
        self._opening = asyncio.Lock()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *why: object) -> None:
        await self.close()

    async def close(self) -> None:
        reading, self._reading = self._reading, None
        if reading:
            reading.cancel()
        if self._writer:
            self._writer.close()
            self._writer = None
        self._fail(ConnectionLost("the client was closed", "connection_lost"))

    def _fail(self, why: PostriderError) -> None:
        while self._under_way:
            waiting = self._under_way.popleft()
            if not waiting.done():
                waiting.set_exception(why)

    async def _read_all(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                reply = await _read(reader)
                if self._under_way:
                    waiting = self._under_way.popleft()
                    if not waiting.done():
                        waiting.set_result(reply)
        except PostriderError as e:
            writer.close()
            if self._writer is writer:
                self._writer = None
            self._fail(e)

    async def _connected(self) -> asyncio.StreamWriter:
        async with self._opening:
            if not self._writer:
                reader, self._writer = await _open(self.path)
                self._reading = asyncio.ensure_future(self._read_all(reader, self._writer))
            return self._writer

    async def request(self, op: str, **members: Any) -> Dict[str, Any]:
        """Any op of the protocol; the reply as it came."""
        data = encode(op, members)
        writer = await self._connected()
        answer: "asyncio.Future[Dict[str, Any]]" = asyncio.get_running_loop().create_future()
        self._under_way.append(answer)
        writer.write(data)
        try:
            await writer.drain()
        except OSError:
            pass  # the reader sees it as well, and fails what is under way
        return checked(await answer)

    async def submit(self, type: str, params: Optional[Mapping[str, Any]] = None, *, slo: Optional[Seconds] = None,
                     deadline: Optional[str] = None, confidence: Optional[float] = None,
                     batches: Optional[Iterable[float]] = None, cpus: Optional[int] = None,
                     epochs: Union[int, str, None] = None, best_effort: bool = False,
                     chance: Optional[float] = None, may_stop: bool = False, priority: int = 0,
                     max_memory_mb: Optional[float] = None,
                     gpus: Optional[int] = None, value: Optional[float] = None, mode: str = "run",
                     tag: Optional[str] = None,
                     key: Optional[str] = None, dry_run: bool = False, after: After = None,
                     after_ok: bool = False, retry: int = 0, index: Optional[float] = None) -> Submission:
        """As Client.submit. A key is always sent, so it is safe to submit again with the same one."""
        members = job_members(type, params, slo, deadline, confidence, batches, cpus, epochs, best_effort, chance,
                              may_stop, priority, max_memory_mb, gpus, value)
        return read_submission(await self.request("submit", **submit_members(
            members, mode, tag, key, dry_run, after, after_ok, retry, index)))

    async def predict(self, type: str, params: Optional[Mapping[str, Any]] = None, *, slo: Optional[Seconds] = None,
                      deadline: Optional[str] = None, confidence: Optional[float] = None,
                      batches: Optional[Iterable[float]] = None, cpus: Optional[int] = None,
                      epochs: Union[int, str, None] = None, best_effort: bool = False,
                      chance: Optional[float] = None, may_stop: bool = False, priority: int = 0,
                      max_memory_mb: Optional[float] = None,
                      gpus: Optional[int] = None, value: Optional[float] = None) -> Submission:
        return read_submission(await self.request("predict", **job_members(
            type, params, slo, deadline, confidence, batches, cpus, epochs, best_effort, chance, may_stop, priority,
            max_memory_mb, gpus, value)))

    async def status(self, job: Union[str, int]) -> Job:
        return read_job((await self.request("status", job=str(job)))["job"])

    async def explain(self, job: Union[str, int]) -> Explanation:
        return read_explanation(await self.request("explain", job=str(job)))

    async def cancel(self, job: Union[str, int]) -> Job:
        return read_job((await self.request("cancel", job=str(job)))["job"])

    async def list(self, state: Union[str, Iterable[str], None] = None, *, type: Optional[str] = None,
                   mine: bool = False, limit: Optional[int] = None) -> AsyncIterator[Job]:
        """As Client.list: `async for job in client.list()`."""
        members = list_members(state, type, mine)
        left = limit
        while left is None or left > 0:
            page = await self.request("list", limit=min(left or 1000, 1000), **members)
            for v in page["jobs"]:
                yield read_job(v)
            if left is not None:
                left -= len(page["jobs"])
            if not page["more"] or not page["jobs"]:
                return
            members["before"] = page["jobs"][-1]["job"]

    async def started(self, job: Union[str, int]) -> Submission:
        return read_submission(await self.request("started", job=str(job)))

    async def progress(self, job: Union[str, int], done: float) -> Job:
        return read_job((await self.request("progress", job=str(job), done=done))["job"])

    async def next(self, job: Union[str, int], *, epoch: Optional[int] = None, accuracy: Optional[float] = None,
                   batch: Optional[float] = None) -> Next:
        return read_next(await self.request("next", **next_members(job, epoch, accuracy, batch)))

    async def finished(self, job: Union[str, int], *, exit_code: int = 0, accuracy: Optional[float] = None,
                       run_s: Optional[float] = None) -> Job:
        return read_job((await self.request("finished", **finished_members(job, exit_code, accuracy, run_s)))["job"])

    async def stats(self) -> Dict[str, Any]:
        return await self.request("stats")

    async def hello(self) -> Dict[str, Any]:
        return await self.request("hello")

    async def watch(self, job: Union[str, int, None] = None) -> AsyncIterator[Event]:
        """As Client.watch, over a connection made for this."""
        watched = Watched(job)
        reader, writer = await _open(self.path)
        try:
            writer.write(watched.request)
            for e in watched.first(await _read(reader)):
                yield e
                if watched.over(e):
                    return
            while True:
                e = watched.next(await _read(reader))
                yield e
                if watched.over(e):
                    return
        finally:
            writer.close()

    async def wait(self, job: Union[str, int], timeout: Optional[Seconds] = None) -> Job:
        """Until the job has ended. A daemon that restarts meanwhile is waited for."""
        try:
            return await asyncio.wait_for(self._wait(job), None if timeout is None else seconds(timeout))
        except asyncio.TimeoutError as e:
            raise WaitTimeout(f"job {job} has not ended in time", "timeout") from e

    async def _wait(self, job: Union[str, int]) -> Job:
        loop = asyncio.get_running_loop()
        lost_since: Optional[float] = None
        while True:
            events = self.watch(job)
            try:
                async for e in events:
                    lost_since = None
                    if e.job and e.job.job == str(job) and not e.job.live:
                        return e.job
            except NotReachable:
                lost_since = lost_since or loop.time()
                if loop.time() - lost_since > RETRY_S:
                    raise
                await asyncio.sleep(0.1)
            except PostriderError as e:
                if e.code != "wrong_state":  # it ended so long ago that it is in the database alone
                    raise
                return await self.status(job)
            finally:
                await events.aclose()  # type: ignore[attr-defined]
