"""transformers without its progress bars and remarks: what matters is raised or recorded."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Within it, transformers and the hub client say nothing but errors."""
    from huggingface_hub.utils import logging as hub_logging
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    hub_level = hub_logging.get_verbosity()
    logging.set_verbosity_error()
    hub_logging.set_verbosity_error()  # it tells every try at a hub that does not answer
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            # Of one of these libraries about the other's names: nothing that a user can mend.
            warnings.simplefilter("ignore", FutureWarning)
            yield
    finally:
        logging.set_verbosity(level)
        hub_logging.set_verbosity(hub_level)
        if bars:
            logging.enable_progress_bar()
