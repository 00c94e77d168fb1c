"""Talk to postriderd, the batch-size scheduler, and report from training scripts.

    import postrider

    with postrider.Client() as client:
        answer = client.submit("digits", params={"network": "lenet5"}, slo="10m")
        job = client.wait(answer.job.job)
        print(job.state, job.accuracy, job.slo_outcome)

Inside a training script (it works unchanged outside the daemon):

    with postrider.job() as j:
        for epoch in range(1, epochs + 1):
            train_one_epoch(batch)
            j.report(epoch, accuracy=test())
            if j.should_stop():
                break

Nothing but the standard library is needed. docs/PROTOCOL.md says what every field means.
"""
from ._version import __version__
from .aio import AsyncClient
from .client import Client, find_socket
from .errors import (
    BadRequest,
    ConnectionLost,
    NotPermitted,
    NotReachable,
    PostriderError,
    RefusedForNow,
    UnknownJob,
    WaitTimeout,
)
from .training import TrainingJob, job
from .types import (
    BeyondModel,
    Candidate,
    Decision,
    Estimate,
    Event,
    Explanation,
    Job,
    KeptEstimate,
    Offer,
    Outside,
    Progress,
    Submission,
    Waiting,
)

__all__ = [
    "AsyncClient", "BadRequest", "BeyondModel", "Candidate", "Client", "ConnectionLost", "Decision",
    "Estimate", "Event", "Explanation", "Job", "KeptEstimate", "NotPermitted", "NotReachable", "Offer",
    "Outside", "PostriderError", "Progress", "RefusedForNow", "Submission", "TrainingJob", "UnknownJob",
    "WaitTimeout", "Waiting", "__version__", "find_socket", "job",
]
