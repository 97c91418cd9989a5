"""Where ratings are kept: a SQLite file in the study folder, or a PostgreSQL named by its URL.

A change is acknowledged after its commit reached the disk: SQLite runs in WAL mode with full
synchronisation, PostgreSQL as it is set up. Tables are brought up to date when it is opened.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Connection, Engine, create_engine, event, insert, select, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

from palate.annotate.schema import studies
from palate.errors import InputError

FILE_NAME = "annotations.sqlite3"
BUSY_S = 30.0  # how long a writer waits for another
WRITERS = {"sqlite": 2, "postgresql": 12}  # connections; SQLite writes one at a time anyhow
_MIGRATIONS = Path(__file__).with_name("migrations")
_MIGRATING = 0x70616C617465  # PostgreSQL's advisory lock while tables are changed: "palate"


class Database:
    """The tables of one study; its methods block, and may be called from any thread."""

    def __init__(self, engine: Engine) -> None:
        """For `open_database` alone."""
        self.width = WRITERS[engine.dialect.name]
        self._writes = engine
        if engine.dialect.name == "sqlite":
            self._reads = engine.execution_options(palate_reads=True)
        else:
            self._reads = engine.execution_options(isolation_level="REPEATABLE READ")

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that is on the disk when the block ends, or never was."""
        with self._writes.begin() as connection:
            yield connection

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """One moment of the database, which nobody changes while it is read."""
        with self._reads.begin() as connection:
            yield connection

    def close(self) -> None:
        """Give back all connections."""
        self._writes.dispose()


def open_database(study_dir: Path, url: str | None, *, study: str) -> Database:
    """The database of the study of that name, its tables made or brought up to date.

    Raises:
        InputError: the URL is none, it cannot be reached, it belongs to another study, or it was
            made by a newer palate.
    """
    address = _address(study_dir, url)
    shown = address.render_as_string(hide_password=True)
    try:
        engine = _engine(address)
        with engine.begin() as connection:
            _migrate(connection)
            _check_study(connection, study, shown)
    except ModuleNotFoundError as error:
        raise InputError(
            f"the database {shown} needs {error.name}: pip install 'palate[annotate]'"
        ) from None
    except CommandError:
        raise InputError(
            f"the database {shown} was made by a newer palate; install that version, or name "
            "another database"
        ) from None
    except DBAPIError as error:
        reason = str(error.orig).strip().splitlines() or ["no reason given"]
        raise InputError(
            f"the database {shown} cannot be opened ({_without(address, reason[0])}); see that it "
            "exists and that you may write to it"
        ) from None
    return Database(engine)


def _address(study_dir: Path, url: str | None) -> URL:
    if url is None:
        return URL.create("sqlite", database=str(study_dir / FILE_NAME))
    try:
        address = make_url(re.sub(r"\Apostgres(ql)?:", "postgresql:", url))
        kind = address.get_backend_name()
    except (ArgumentError, NoSuchModuleError, ValueError):
        kind = ""
    if kind == "postgresql":
        return address.set(drivername="postgresql+psycopg")
    # With a query it may be one in memory, which ends with the process.
    in_memory = kind == "sqlite" and (address.database in (None, "", ":memory:") or address.query)
    if kind == "sqlite" and not in_memory:
        return address.set(drivername="sqlite")
    # Not quoted back: this is where people put passwords.
    raise InputError(
        "--database must be a file or a PostgreSQL: write sqlite:///FILE or "
        "postgresql://USER@HOST/NAME"
    )


def _engine(address: URL) -> Engine:
    if address.get_backend_name() == "sqlite":
        return _sqlite(address)
    width = WRITERS["postgresql"]
    # Errors hide what was to be stored: it is what people said, and errors are printed.
    return create_engine(
        address, pool_size=width, max_overflow=0, pool_pre_ping=True, hide_parameters=True
    )


def _sqlite(address: URL) -> Engine:
    # What people said in confidence is for the operator's account alone.
    with contextlib.suppress(OSError):  # SQLite itself says what is wrong with the path
        Path(str(address.database)).touch(mode=0o600)
    engine = create_engine(
        address, connect_args={"timeout": BUSY_S}, max_overflow=20, hide_parameters=True
    )

    @event.listens_for(engine, "connect")
    def set_up(connection: object, record: object) -> None:
        _set_up_sqlite(connection)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A writer asks for its place at once: SQLite would refuse it later rather than wait.
        reads = connection.get_execution_options().get("palate_reads")
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")

    return engine


def _set_up_sqlite(connection: object) -> None:
    connection.isolation_level = None  # type: ignore[attr-defined]  # transactions are begun above
    cursor = connection.cursor()  # type: ignore[attr-defined]
    for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        cursor.execute(f"PRAGMA {setting}")
    cursor.close()


def _migrate(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATING})
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _check_study(connection: Connection, study: str, shown: str) -> None:
    kept = connection.execute(select(studies.c.name)).scalar()
    if kept is None:
        connection.execute(insert(studies).values(name=study))
    elif kept != study:
        raise InputError(
            f"the database {shown} holds the ratings of the study {kept!r}, not of {study!r}; give "
            "each study a database of its own"
        )


def reason(error: SQLAlchemyError) -> str:
    """What the database said first; the rest of it quotes what people wrote."""
    said = str(getattr(error, "orig", None) or "").strip()
    return said.partition("\n")[0] or type(error).__name__


def _without(address: URL, said: str) -> str:
    """What a server said, without the password, should it repeat it."""
    password = str(address.password or "")
    return said.replace(password, "[password]") if password else said
