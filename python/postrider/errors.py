"""What can go wrong. A job that is rejected is no error: it is an answer (Submission.accepted is False)."""
from __future__ import annotations

from typing import Any, Mapping, Optional


class PostriderError(Exception):
    """An error reply of the daemon. `code` is stable and for programs, the message is for people."""

    def __init__(self, message: str, code: str = "", field: Optional[str] = None, hint: Optional[str] = None) -> None:
        super().__init__(message + (f" ({hint})" if hint else ""))
        self.code = code
        self.message = message
        self.field = field
        self.hint = hint


class BadRequest(PostriderError):
    """The request makes no sense to the daemon; `field` says which member."""


class UnknownJob(PostriderError):
    """There is no job of this id."""


class NotPermitted(PostriderError):
    """Only the owner of the job, or an admin, may do that."""


class RefusedForNow(PostriderError):
    """The queue is full, the daemon drains, or its disk has failed: try again later."""


class NotReachable(PostriderError):
    """No daemon answers at the socket."""


class ConnectionLost(NotReachable):
    """The daemon closed the connection before it answered."""


class WaitTimeout(PostriderError, TimeoutError):
    """The time given has run out. The job goes on."""


_CLASSES = {
    "unknown_job": UnknownJob, "unknown_type": BadRequest, "bad_field": BadRequest, "unknown_field": BadRequest,
    "bad_json": BadRequest, "unknown_op": BadRequest, "bad_version": BadRequest, "line_too_long": BadRequest,
    "not_permitted": NotPermitted, "queue_full": RefusedForNow, "draining": RefusedForNow,
    "storage_failed": RefusedForNow, "too_many_connections": RefusedForNow,
}


def error_of(reply: Mapping[str, Any]) -> PostriderError:
    """The exception for an error reply."""
    e = reply.get("error") or {}
    code = e.get("code", "")
    return _CLASSES.get(code, PostriderError)(e.get("message", "the daemon gives no reason"), code, e.get("field"),
                                              e.get("hint"))
