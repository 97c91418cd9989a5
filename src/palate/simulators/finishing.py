"""The end of a training: its files beside the checkpoint, then into their place, the record last.

A folder without `simulator.json` is not a finished simulator, so that file goes first where an
older one is replaced, and comes last: at no moment does a record name files that are not there.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from palate.disk import disk, write_atomically
from palate.errors import InputError
from palate.simulators.adapter_file import read_adapter
from palate.simulators.base_model import Base
from palate.simulators.checkpoints import Checkpoints
from palate.simulators.gguf_adapter import write_gguf_adapter
from palate.simulators.new_adapter import save_adapter
from palate.simulators.trained import (
    CHAT_TEMPLATE,
    GGUF_ADAPTER,
    LOSS_CURVE,
    PEFT_FOLDER,
    RECORD,
    TrainedRecord,
    file_sha256,
)

if TYPE_CHECKING:
    from peft import PeftModel


def finish(
    model: PeftModel, base: Base, draft: TrainedRecord, checkpoints: Checkpoints, folder: Path
) -> TrainedRecord:
    """Write the trained adapter and its record into `folder`, in place of an older one.

    It can be repeated from the start at any point: the last checkpoint is removed at the very end.

    Args:
        draft: the record, but for its files, its hash and the reason for no llama.cpp adapter.

    Raises:
        InputError: the adapter holds values that are no numbers, or has no effect.
        StoreError: the disk refuses; the same command takes it up again.
    """
    with disk(folder):
        made = checkpoints.finished
        if made.exists():
            shutil.rmtree(made)
        made.mkdir(parents=True)
        save_adapter(model, made / PEFT_FOLDER, base=base)
        _check_saved(made / PEFT_FOLDER, checkpoints)
        why_not = write_gguf_adapter(made / PEFT_FOLDER, base, made / GGUF_ADAPTER)
        template = base.tokenizer.get_chat_template()
        (made / CHAT_TEMPLATE).write_bytes(template.encode())
        shutil.copyfile(checkpoints.curve.file, made / LOSS_CURVE)
        files = {name: file_sha256(made / name) for name in sorted(_files(made))}
        record = draft.model_copy(update={"files": files, "gguf": why_not})
        record = record.model_copy(update={"sha256": record.content_sha256()})
        _replace(made, folder, record)
        checkpoints.remove()
    return record


def _check_saved(peft: Path, checkpoints: Checkpoints) -> None:
    """Whatever the architecture, an adapter of no numbers or no effect is not finished."""
    try:
        read_adapter(peft)
    except InputError:
        checkpoints.clear()  # it leads here again
        raise


def _replace(made: Path, folder: Path, record: TrainedRecord) -> None:
    (folder / RECORD).unlink(missing_ok=True)
    for old in (PEFT_FOLDER, GGUF_ADAPTER, CHAT_TEMPLATE, LOSS_CURVE):
        path = folder / old
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    for name in record.files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).replace(folder / name)
    write_atomically(folder / RECORD, record.model_dump_json(by_alias=True, indent=1) + "\n")


def _files(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        if path.is_file():
            yield path.relative_to(folder).as_posix()
