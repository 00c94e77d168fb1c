"""What the daemon answers, as dataclasses. Names and meanings are those of docs/PROTOCOL.md; what is not known is
None. Members that a newer daemon adds are left out; the tests compare the rest with what a real daemon sends."""
from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Type, TypeVar, cast

T = TypeVar("T")


def _reader(cls: Type[T], nested: Optional[Dict[str, Callable[[Any], Any]]] = None) -> Callable[[Mapping[str, Any]], T]:
    """Makes an object of the members that are there. Replies come by the thousand, so this does little."""
    names: Tuple[str, ...] = tuple(f.name for f in fields(cast(Any, cls)))
    inner = nested or {}
    places = [(i, inner[n]) for i, n in enumerate(names) if n in inner]

    def read(v: Mapping[str, Any]) -> T:
        values = [v.get(n) for n in names]
        for i, fn in places:
            if values[i] is not None:
                values[i] = fn(values[i])
        return cls(*values)

    return read


@dataclass
class Outside:
    """A column of the job that is not within the training table, and the column's range there. A category has no
    numbers."""

    column: Optional[str] = None
    category: Optional[bool] = None
    value: Optional[float] = None
    least: Optional[float] = None
    most: Optional[float] = None


@dataclass
class BeyondModel:
    """A number so far outside the training table that no batch can be promised, and from where to where one can."""

    column: Optional[str] = None
    value: Optional[float] = None
    least: Optional[float] = None
    most: Optional[float] = None


@dataclass
class Candidate:
    """One batch (or pair of batch and epochs) that was looked at."""

    batch: Optional[float] = None
    epochs: Optional[float] = None
    lr: Optional[float] = None
    wait_s: Optional[float] = None
    wait_upper_s: Optional[float] = None
    time_s: Optional[float] = None
    upper_s: Optional[float] = None
    accuracy: Optional[float] = None
    chance: Optional[float] = None
    harm: Optional[float] = None
    cost: Optional[float] = None
    memory_mb: Optional[float] = None
    gpus: Optional[int] = None
    delays_s: Optional[float] = None
    breaks: Optional[str] = None
    behind: Optional[str] = None
    headroom_s: Optional[float] = None
    extrapolated: Optional[bool] = None
    outside: Optional[Outside] = None
    feasible: Optional[bool] = None
    reasons: Optional[List[str]] = None


@dataclass
class Offer:
    """What a rejected job could take without a promise."""

    batch: Optional[float] = None
    epochs: Optional[float] = None
    chance: Optional[float] = None
    accuracy: Optional[float] = None
    time_s: Optional[float] = None


@dataclass
class Alternative:
    """A candidate beside the chosen one: passed over, with more time, or in time if shorter. `text` says it in words."""

    batch: Optional[float] = None
    epochs: Optional[float] = None
    accuracy: Optional[float] = None
    needs_s: Optional[float] = None
    why: Optional[str] = None
    job: Optional[str] = None
    cost: Optional[float] = None
    text: Optional[str] = None


@dataclass
class Decision:
    """Why this batch: every candidate with its time, bound and accuracy, and the reasons why it lost."""

    at: Optional[str] = None
    when: Optional[str] = None
    policy: Optional[str] = None
    model: Optional[str] = None
    confidence: Optional[float] = None
    slo_s: Optional[float] = None
    chosen: Optional[int] = None
    smallest_slo_s: Optional[float] = None
    offer: Optional[Offer] = None
    passed_over: Optional[Alternative] = None
    with_more_time: Optional[Alternative] = None
    shorter: Optional[Alternative] = None
    beyond_model: Optional[BeyondModel] = None
    other_load: Optional[float] = None
    other_factor: Optional[float] = None
    price: Optional[float] = None
    value: Optional[float] = None
    accuracy_error: Optional[float] = None
    took_us: Optional[float] = None
    candidates: Optional[List[Candidate]] = None

    @property
    def chosen_candidate(self) -> Optional[Candidate]:
        return self.candidates[self.chosen] if self.chosen is not None and self.candidates else None


@dataclass
class Estimate:
    """Of a live job, in seconds from now."""

    start_s: Optional[float] = None
    end_s: Optional[float] = None
    end_low_s: Optional[float] = None
    end_high_s: Optional[float] = None
    late: Optional[bool] = None


@dataclass
class KeptEstimate:
    """One that was made for a job and kept, in seconds from `at`."""

    at: Optional[str] = None
    start_s: Optional[float] = None
    end_s: Optional[float] = None
    end_low_s: Optional[float] = None
    end_high_s: Optional[float] = None
    why: Optional[str] = None


@dataclass
class Waiting:
    """Why a queued job waits."""

    code: Optional[str] = None
    message: Optional[str] = None


@dataclass
class Progress:
    epoch: Optional[float] = None
    epochs: Optional[float] = None
    accuracy: Optional[float] = None
    final_accuracy: Optional[float] = None


@dataclass
class Change:
    """How a running job was told to go on, after an epoch."""

    after: Optional[float] = None
    batch: Optional[float] = None
    lr: Optional[float] = None
    last: Optional[float] = None
    why: Optional[str] = None
    end_s: Optional[float] = None
    end_upper_s: Optional[float] = None
    accuracy: Optional[float] = None
    at: Optional[str] = None


@dataclass
class Next:
    """How the next epoch is to be run."""

    batch: Optional[float] = None
    lr: Optional[float] = None
    last: Optional[float] = None
    after: Optional[float] = None


@dataclass
class Job:
    job: str = ""
    number: Optional[int] = None
    state: str = ""
    type: Optional[str] = None
    mode: Optional[str] = None
    params: Optional[Dict[str, Any]] = None
    cpus: Optional[int] = None
    gpus: Optional[int] = None
    devices: Optional[str] = None
    tag: Optional[str] = None
    uid: Optional[int] = None
    tenant: Optional[str] = None
    priority: Optional[int] = None
    slo_s: Optional[float] = None
    confidence: Optional[float] = None
    best_effort: Optional[bool] = None
    chance: Optional[float] = None
    value: Optional[float] = None
    may_stop: Optional[bool] = None
    after: Optional[str] = None
    after_more: Optional[List[str]] = None
    after_ok: Optional[bool] = None
    retry: Optional[int] = None
    attempt: Optional[int] = None
    index: Optional[float] = None
    verdict: Optional[str] = None
    batches: Optional[List[float]] = None
    max_memory_mb: Optional[float] = None
    submitted_at: Optional[str] = None
    started_at: Optional[str] = None
    ended_at: Optional[str] = None
    deadline_at: Optional[str] = None
    batch: Optional[float] = None
    epochs: Optional[float] = None
    lr: Optional[float] = None
    steered: Optional[List[Change]] = None
    policy: Optional[str] = None
    model: Optional[str] = None
    predicted_s: Optional[float] = None
    upper_s: Optional[float] = None
    predicted_accuracy: Optional[float] = None
    estimate: Optional[Estimate] = None
    waiting: Optional[Waiting] = None
    progress: Optional[Progress] = None
    wait_s: Optional[float] = None
    run_s: Optional[float] = None
    response_s: Optional[float] = None
    accuracy: Optional[float] = None
    stopped_epoch: Optional[float] = None
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    max_rss_mb: Optional[float] = None
    slo_outcome: Optional[str] = None
    slack_s: Optional[float] = None
    reason: Optional[str] = None
    pid: Optional[int] = None

    @property
    def live(self) -> bool:
        return self.state in ("queued", "running")

    @property
    def ok(self) -> bool:
        """It is done, with exit code 0."""
        return self.state == "done"

    @property
    def met(self) -> Optional[bool]:
        """Its limit; None: it had none, or has not ended."""
        return None if self.slo_outcome is None else self.slo_outcome == "met"


@dataclass
class Submission:
    """The answer to `submit` and `predict`."""

    verdict: str = ""
    job: Optional[Job] = None
    decision: Optional[Decision] = None
    duplicate: Optional[bool] = None
    reason: Optional[str] = None  # of a question: why nothing can be promised
    probe: Optional[str] = None  # the job that finds out about a context that was never measured

    @property
    def accepted(self) -> bool:
        return self.verdict != "rejected"

    @property
    def promised(self) -> bool:
        return self.verdict == "promised"


@dataclass
class Explanation:
    job: Optional[Job] = None
    decisions: Optional[List[Decision]] = None
    estimates: Optional[List[KeptEstimate]] = None


@dataclass
class Event:
    """Something happened; `job` is None where it is about the daemon itself."""

    event: str = ""
    at: Optional[str] = None
    job: Optional[Job] = None


read_candidate = _reader(Candidate, {"outside": _reader(Outside)})
read_decision = _reader(Decision, {
    "offer": _reader(Offer), "beyond_model": _reader(BeyondModel),
    "candidates": lambda v: [read_candidate(c) for c in v]})
_read_change = _reader(Change)
read_next = _reader(Next)
read_job = _reader(Job, {"steered": lambda v: [_read_change(c) for c in v],
                         "estimate": _reader(Estimate), "waiting": _reader(Waiting),
                         "progress": _reader(Progress)})
read_submission = _reader(Submission, {"job": read_job, "decision": read_decision})
_read_kept = _reader(KeptEstimate)
read_explanation = _reader(Explanation, {
    "job": read_job, "decisions": lambda v: [read_decision(d) for d in v],
    "estimates": lambda v: [_read_kept(e) for e in v]})
read_event = _reader(Event, {"job": read_job})


def moment(text: Optional[str]) -> Optional[datetime]:
    """A moment of the daemon ("2026-11-16T10:00:00.000000Z") as a datetime with a time zone."""
    return None if text is None else datetime.fromisoformat(text.replace("Z", "+00:00"))
