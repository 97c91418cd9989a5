"""Memory that does not suffice, recognised and told as one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from palate.errors import InputError

# Of torch, on a GPU, on a CPU (Linux and Windows) and in its library of matrices. Not "memory"
# alone: an illegal memory access is a fault, which a smaller batch does not mend.
_SAID = ("out of memory", "allocate memory", "enough memory", "alloc_failed")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether torch or Python did not get the memory that it asked for."""
    if isinstance(error, MemoryError):
        return True
    said = str(error).lower()
    return isinstance(error, RuntimeError) and any(words in said for words in _SAID)


@contextmanager
def memory_told(what_to_do: str) -> Iterator[None]:
    """Raise `InputError` with `what_to_do` where the memory does not suffice."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise InputError(f"the memory of this machine does not suffice: {what_to_do}") from error
