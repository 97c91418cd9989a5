"""`palate simulator serve`: vLLM with the adapters of a study, checked before it is ready."""

from __future__ import annotations

import asyncio
import http.client
import ipaddress
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import click

from palate.adapter_probe import probe_adapters
from palate.config import Study, UserSection, read_study
from palate.disk import disk
from palate.errors import InputError, Stopped
from palate.models.faults import one_line
from palate.models.pool import Models
from palate.prepare import simulator_folder, simulator_of
from palate.probed import Probed
from palate.report.safe import terminal_safe
from palate.simulators.trained import Trained, read_trained
from palate.simulators.vllm import PROGRAM, serve_command, served_base, served_names

LOG = "simulators/vllm.log"  # in the study folder
_POLL_S = 0.25
_STOP_LIMIT_S = 30.0
_LAST_LINES = 5
_TAIL_BYTES = 16384


def serve_simulators(
    path: Path, *, host: str, port: int, base: str | None, only_print: bool, extra: Sequence[str]
) -> None:
    """Serve the adapters of a study's users until it is interrupted.

    `base` chooses among the bases of the study's adapters; `extra` are arguments for vLLM.

    Raises:
        InputError: there is nothing to serve, vLLM is not there or does not come up, or an adapter
            has no effect.
        Stopped: vLLM ended by itself.
    """
    study = read_study(path)
    adapters = _served(study, base)
    if not adapters:
        click.echo(
            "No server is needed: the embedded model holds these adapters itself, in `palate run` "
            "and wherever else they are used."
        )
        return
    command = serve_command(adapters, host=host, port=port, extra=extra)
    if only_print:
        click.echo(shlex.join(command))
        return
    _check_start(host, port)
    log = study.folder / LOG
    with disk(log):
        log.parent.mkdir(parents=True, exist_ok=True)
    with _vllm(command, log) as process:
        _work(study, adapters, process, log, host=host, port=port)


def _work(
    study: Study,
    adapters: Mapping[str, Trained],
    process: subprocess.Popen[bytes],
    log: Path,
    *,
    host: str,
    port: int,
) -> None:
    """Wait for the server, check its adapters, say how they are called, and stay with it."""
    place = _reached(host)
    try:
        click.echo(f"Loading the base model (Ctrl-C stops it; log: {log})", err=True)
        _wait_until_healthy(process, log, place, port)
        sections = _named_here(study, adapters, f"http://{_in_url(place)}:{port}/v1")
        _say(sections, asyncio.run(_probed(study, sections)))
        code = process.wait()
    except KeyboardInterrupt:
        click.echo("Stopped.", err=True)
        return
    raise Stopped(f"{PROGRAM} ended with code {code}: {_tail(log)} (log: {log})")


def _served(study: Study, base: str | None) -> dict[str, Trained]:
    """The adapters that need a server, by user; empty where the embedded model holds them all."""
    users = [user for user in study.content.users if user.simulator.kind == "lora"]
    if not users:
        raise InputError(
            f'{study.file} has no user whose simulator is of kind "lora"; train one with `palate '
            "simulator train` and set its kind"
        )
    found = {u.id: read_trained(simulator_folder(study, u), user_id=u.id) for u in users}
    chosen = {
        user: trained
        for user, trained in found.items()
        if base is None or base in (trained.record.base.name, served_base(trained.record.base))
    }
    if not chosen:
        bases = sorted({trained.record.base.name for trained in found.values()})
        raise InputError(
            f"{study.file}: no adapter belongs to {base}; they belong to {', '.join(bases)}"
        )
    return {u: t for u, t in chosen.items() if not t.record.base.name.startswith("local:")}


def _check_start(host: str, port: int) -> None:
    if shutil.which(PROGRAM) is None:
        raise InputError(
            f"the program {PROGRAM} is not on the PATH; install vLLM on the machine with the GPU, "
            "or take the command that --print shows to it"
        )
    # Another server's "healthy" would be taken for ours.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with closing(socket.socket(family, socket.SOCK_STREAM)) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((host, port))
        except OSError as error:
            raise InputError(
                f"port {port} of {host} cannot be used ({error.strerror}); name another --port"
            ) from None


@contextmanager
def _vllm(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The server in a process group of its own, which is gone when this ends, however it ends."""
    with disk(log), log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - a list of ours, and no shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for us: we tell it in our own words
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            pass
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # workers that its end left behind
            process.wait()


def _wait_until_healthy(process: subprocess.Popen[bytes], log: Path, host: str, port: int) -> None:
    """Wait as long as loading takes; raises `InputError` where the server ends instead."""
    while not _is_healthy(host, port):
        if process.poll() is not None:
            raise InputError(
                f"{PROGRAM} did not start (code {process.returncode}): {_tail(log)} (log: {log})"
            )
        time.sleep(_POLL_S)


def _is_healthy(host: str, port: int) -> bool:
    with closing(http.client.HTTPConnection(host, port, timeout=10)) as connection:
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False


def _tail(log: Path) -> str:
    """The last lines of a log on one line."""
    try:
        lines = log.read_bytes()[-_TAIL_BYTES:].decode("utf-8", "replace").splitlines()
    except OSError:
        return "its log cannot be read"
    written = [line.strip() for line in lines if line.strip()][-_LAST_LINES:]
    return one_line(" / ".join(written), limit=600) or "it wrote nothing"


def _named_here(study: Study, adapters: Mapping[str, Trained], url: str) -> tuple[UserSection, ...]:
    """The study's users with the names that their adapters have at this server."""
    some = next(iter(adapters.values()))
    names = served_names(tuple(adapters), served_base(some.record.base))
    return tuple(
        user.model_copy(
            update={
                "simulator": user.simulator.model_copy(
                    update={"model": f"openai:{names[user.id]}@{url}"}
                )
            }
        )
        for user in study.content.users
        if user.id in adapters
    )


async def _probed(study: Study, users: Sequence[UserSection]) -> tuple[Probed, ...]:
    simulators = {user.id: simulator_of(study, user) for user in users}
    async with Models(study.content.endpoints, study_dir=study.folder) as models:
        try:
            return await probe_adapters(simulators, users, models)
        except Stopped as error:  # nothing is resumed here: a server that is healthy must answer
            raise InputError(str(error)) from None


def _say(users: Sequence[UserSection], probed: Sequence[Probed]) -> None:
    for one in probed:
        for warning in one.warnings:
            click.echo(f"Note: {terminal_safe(warning)}", err=True)
    click.echo("Ready. In study.toml:")
    for user in users:
        simulator = user.simulator
        path = (
            f", path = {json.dumps(simulator.path, ensure_ascii=False)}" if simulator.path else ""
        )
        click.echo(
            terminal_safe(
                f"  id = {json.dumps(user.id, ensure_ascii=False)}   "
                f'simulator = {{ kind = "lora"{path}, model = "{simulator.model}" }}'
            )
        )


def _reached(host: str) -> str:
    """Where a server that listens at `host` is asked from this machine."""
    with suppress(ValueError):  # a name, not an address
        if ipaddress.ip_address(host).is_unspecified:
            return "127.0.0.1"
    return host


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
