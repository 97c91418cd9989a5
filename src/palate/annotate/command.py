"""`palate annotate STUDY`: invites, revokes, lists, exports, or serves."""

from __future__ import annotations

import contextlib
import logging
import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import click
from sqlalchemy.exc import SQLAlchemyError

from palate.annotate import invitations, sessions
from palate.annotate.app import application
from palate.annotate.characters import Characters
from palate.annotate.database import Database, open_database, reason
from palate.annotate.invitations import Progress
from palate.annotate.serve import address_of, is_any, is_loopback, listening, serve, web_address
from palate.config import Study, load_study
from palate.errors import InputError, StoreError
from palate.histories import read
from palate.models.pool import Models
from palate.report.safe import terminal_safe
from palate.types import Record


class Options(Record):
    """What the command line says; `url` is where people reach the app, if not at host and port."""

    host: str
    port: int
    url: str | None
    database: str | None
    invite: tuple[str, ...]
    days: int
    revoke: tuple[str, ...]
    chats: tuple[Path, ...]
    show: bool
    export: bool
    out: Path | None


def annotate(path: Path, options: Options) -> None:
    """Do what `options` ask; serve, unless they ask for a list, an export or a revocation.

    Raises:
        InputError: the study, the database, a name, a file or the address is wrong.
        StoreError: an export cannot be written, or the database refuses a change.
    """
    managed = options.show or options.export or options.revoke
    study = load_study(path, keys=() if managed else ("candidates",))
    database = open_database(study.folder, options.database, study=study.content.study.name)
    with contextlib.closing(database):
        try:
            if managed:
                _manage(study, database, options)
            else:
                _serve(study, database, options)
        except SQLAlchemyError as error:
            raise StoreError(
                f"the database refused ({reason(error)}); make room or mend it, then give the "
                "same command again"
            ) from None


def _manage(study: Study, database: Database, options: Options) -> None:
    now = int(time.time())
    for name in options.revoke:
        count = invitations.revoke(database, name, now=now)
        click.echo(f"Revoked {count} link{'s' if count != 1 else ''} of {terminal_safe(name)}.")
    _invite(database, options, web_address(options.host, options.port))
    _take_in(database, options)
    if options.export:
        folder = options.out or study.folder / sessions.FOLDER
        files = sessions.export(database, folder)
        if not files:
            click.echo("Nobody has said or rated anything yet: there is nothing to export.")
        for written in files:
            path = terminal_safe(str(written.path))
            click.echo(f"{path}: {written.sessions} sessions, {written.ratings} ratings")
    if options.show:
        _print(invitations.progress(database, now=now))


def _serve(study: Study, database: Database, options: Options) -> None:
    # What a model's endpoint says goes to the operator's terminal, never to a browser.
    logging.basicConfig(format="palate: %(message)s", level=logging.WARNING)
    models = Models(study.content.endpoints, study_dir=study.folder)
    characters = Characters(study, models)
    listens = listening(options.host, options.port)
    with listens:
        address = address_of(listens, options.host)
        _invite(database, options, address)
        _take_in(database, options)
        if not is_loopback(options.host):
            click.echo(
                f"Note: {options.host} can be reached from other machines, and nothing is "
                "encrypted; put a server that speaks HTTPS before it where others share the "
                "network.",
                err=True,
            )
        with contextlib.suppress(KeyboardInterrupt):  # the usual end of a server
            click.echo(f"Serving {address} — stop with Ctrl-C")
            serve(application(database, characters, on_close=models.close), listens)


def _invite(database: Database, options: Options, listens_at: str) -> None:
    address = options.url or listens_at
    if options.invite and _leads_nowhere(address):
        raise InputError(
            f"{address} is no address that people can open: name the one that they shall open "
            "with --url, without a path, as in --url https://rate.example.org"
        )
    for name in options.invite:
        secret = invitations.invite(database, name, now=int(time.time()), days=options.days)
        click.echo(f"Link for {terminal_safe(name)}: {address.rstrip('/')}/i/{secret}")


def _leads_nowhere(address: str) -> bool:
    """Whether no browser could open a link made of `address`.

    It stands for every address or any port, is no web address, or says more than where: the app's
    own addresses begin at the root, and a name with a password would be in every link.
    """
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return True
    more = parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc
    odd = not address.isprintable() or re.search(r"[\s?#\\]", address)
    nowhere = parts.scheme not in ("http", "https") or port == 0 or is_any(parts.hostname or "")
    return bool(more or odd or nowhere)


def _take_in(database: Database, options: Options) -> None:
    for file in options.chats:
        count = sessions.take_in(database, read(file), now=int(time.time()))
        click.echo(f"{terminal_safe(str(file))}: {count} new chats to rate")


def _print(everybody: Sequence[Progress]) -> None:
    if not everybody:
        click.echo("Nobody was invited yet: add --invite NAME")
    for one in everybody:
        link = f"link until {_day(one.expires_at)}" if one.links else "no link that works"
        seen = f"last seen {_day(one.seen_at)}" if one.seen_at else "not seen yet"
        click.echo(
            f"{terminal_safe(one.person_id)}: {link}, {seen}; {one.closed_chats} chats finished, "
            f"{one.open_chats} open; {one.rated} of {one.replies} replies rated"
        )


def _day(seconds: int | None) -> str:
    return datetime.fromtimestamp(seconds or 0, UTC).strftime("%Y-%m-%d %H:%M UTC")
