"""Everything palate raises on purpose.

    PalateError                 printed as one sentence, never with a traceback
    ├── InputError              the study, a card, a rubric, a CSV is wrong      exit code 2
    │   ├── RubricError         a rubric is malformed, changed, or would score what built it
    │   └── StudyChanged        a run folder belongs to a different study
    ├── Stopped                 work is left; the same command resumes           exit code 3
    │   └── StoreError          the run folder cannot be written, or is in use
    └── ModelError              a model gave no usable reply (never a score)
        ├── TransportError      the call failed after its retries: the cell stays open
        ├── RequestRefused      the endpoint will never accept this request (HTTP 4xx)
        │   └── ContextExceeded     … because it is longer than the model's context
        ├── LeftToBatch         nobody was asked yet: the request waits for a batch file
        └── ScriptError         a scripted model has no line for this call

A message says what is wrong, where, and what to do, in one sentence. Raise where the fact is known;
catch only where something can be done: `run` turns a `ModelError` into a failed cell, `cli` turns
the rest into an exit code. A verdict that cannot be read is not an error but data: see
`palate.judging.verdicts`.
"""

from __future__ import annotations


class PalateError(Exception):
    """Base of the tree; its text is meant for the person at the terminal."""

    exit_code = 1


class InputError(PalateError):
    """What the user gave is wrong and only the user can mend it."""

    exit_code = 2


class RubricError(InputError):
    """A personal rubric is malformed, was changed after freezing, or would score what built it."""


class StudyChanged(InputError):
    """The run folder was begun with other settings; results are never mixed (paper 3.2)."""


class Stopped(PalateError):
    """The run ended with work left; the same command takes it up again."""

    exit_code = 3


class StoreError(Stopped):
    """The run folder cannot be written (disk full, in use by another process)."""


class ModelError(PalateError):
    """A model gave no usable reply."""


class TransportError(ModelError):
    """Connection, timeout, rate limit or server fault, after the bounded retries."""


class RequestRefused(ModelError):
    """The endpoint answered with a status that no retry will change."""


class ContextExceeded(RequestRefused):
    """The request is longer than the model's context; a shorter one may be accepted."""


class LeftToBatch(ModelError):
    """The request was written down for a batch service instead of being sent; no failure."""


class ScriptError(ModelError):
    """A scripted model was asked for a line that its script does not have."""
