"""A PostgreSQL server of the test's own; the test skips where none is installed."""

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest


@contextlib.contextmanager
def postgresql():
    """The URL of a PostgreSQL server of our own, reached through a socket in its folder."""
    programs = _programs()
    as_root = os.geteuid() == 0
    run_as = {"user": "postgres", "group": "postgres", "extra_groups": []} if as_root else {}
    with tempfile.TemporaryDirectory(prefix="palate-pg-") as folder:
        if as_root:  # the server refuses to run as root
            shutil.chown(folder, "postgres", "postgres")
        data, quiet = f"{folder}/data", {"stdout": subprocess.DEVNULL, "cwd": folder, **run_as}
        made = ["-D", data, "-U", "palate", "--auth=trust", "--no-sync"]
        subprocess.run([programs / "initdb", *made], check=True, **quiet)
        options = f"-c listen_addresses='' -c unix_socket_directories={folder}"
        control = [programs / "pg_ctl", "-D", data, "-w", "-l", f"{folder}/log"]
        subprocess.run([*control, "-o", options, "start"], check=True, **quiet)
        try:
            yield f"postgresql://palate@/postgres?host={folder}"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], check=True, **quiet)


def _programs() -> Path:
    """The folder with the server's programs."""
    on_path = shutil.which("initdb")
    places = [Path(on_path).resolve().parent] if on_path else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = next((p for p in places if (p / "initdb").exists() and (p / "pg_ctl").exists()), None)
    if found is None:
        pytest.skip("no PostgreSQL server is installed on this machine")
    if os.geteuid() == 0:
        try:
            pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("root may not run PostgreSQL, and there is no user postgres to run it")
    return found
