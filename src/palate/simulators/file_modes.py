"""Files of weights that those may read who may read what lies beside them."""

from __future__ import annotations

from pathlib import Path


def make_readable(folder: Path, *, like: str) -> None:
    """Give the safetensors files in `folder` the mode of the file `like` there; raises `OSError`.

    safetensors makes its files for their owner alone, whatever the umask says.
    """
    mode = (folder / like).stat().st_mode & 0o777
    for file in folder.glob("*.safetensors"):
        file.chmod(mode)
