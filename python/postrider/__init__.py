"""Talk to postriderd, the batch-size scheduler, and report from training scripts.

    import postrider

    with postrider.Client() as client:
        answer = client.submit("digits", params={"network": "lenet5"}, slo="10m")
        job = client.wait(answer.job.job)
        print(job.state, job.accuracy, job.slo_outcome)

Inside a training script (it works unchanged outside the daemon):

    with postrider.job(batch=64, epochs=10) as j:  # as it runs outside the daemon
        for epoch in j.epochs():
            train_one_epoch(j.batch)
            j.report(epoch, accuracy=test())  # the next epoch may have another batch

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
    Change,
    Decision,
    Estimate,
    Event,
    Explanation,
    Job,
    KeptEstimate,
    Next,
    Offer,
    Outside,
    Progress,
    Submission,
    Waiting,
)

__all__ = [
    "AsyncClient", "BadRequest", "BeyondModel", "Candidate", "Change", "Client", "ConnectionLost", "Decision",
    "Estimate", "Event", "Explanation", "Job", "KeptEstimate", "Next", "NotPermitted", "NotReachable", "Offer",
    "Outside", "PostriderError", "Progress", "RefusedForNow", "Submission", "TrainingJob", "UnknownJob",
    "WaitTimeout", "Waiting", "__version__", "find_socket", "job",
]
