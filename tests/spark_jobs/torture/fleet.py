"""The processes that are killed: a Spark Connect server, and drivers, each of them the command line of Stairwise.

A JVM takes ten seconds of processor time to start, so one server serves many drivers, and a driver is forked from a
process that has imported everything: it starts in a tenth of a second, and its death is that of any driver.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pyspark

from stairwise.cli import main
from stairwise_spark.jars import delta_jars
from stairwise_spark.session import SessionOptions, open_session, sql

HERE = "127.0.0.1"
_HOME = Path(pyspark.__file__).parent
_QUICK_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -Duser.timezone=UTC"
_LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
"""
_LONGEST = 900.0  # seconds, on a machine that is busy with other things
_SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    # Of a hundred rows, to compile a query takes longer than to carry it out; the engine's other tests compile.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.driver.host": HERE,
    "spark.driver.bindAddress": HERE,
    "spark.connect.grpc.binding.address": HERE,
    # Hundreds of drivers come; what the dead ones leave is not kept for an hour.
    "spark.connect.session.manager.defaultSessionTimeout": "5m",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
_IMPORTED = [
    "pytest",
    "pyspark.sql.connect.session",
    "pyspark.sql.connect.functions.builtin",
    "stairwise_spark.commands",
    "stairwise_spark.engine",
    "tests.spark_jobs.torture.fleet",
]


def environment(folder: Path) -> dict[str, str]:
    """What processes of Spark find around them: nothing of a session that this process has."""
    known = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
    return known | {
        "SPARK_HOME": str(_HOME),
        "SPARK_LOCAL_IP": HERE,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_LAUNCHER_OPTS": _QUICK_JVM,
        "PYSPARK_PYTHON": sys.executable,
    }


def kill(pid: int) -> bool:
    """Whether there was such a process; now there is none."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def is_alive(pid: int) -> bool:
    """Whether there is such a process that has not ended."""
    return Path(f"/proc/{pid}").exists() and ") Z " not in _read(Path(f"/proc/{pid}/stat"))


def children(pid: int) -> Iterator[int]:
    """The processes below a process."""
    for task in _tasks(pid):
        text = _read(task / "children")
        for child in map(int, text.split()):
            yield child
            yield from children(child)


@dataclass(slots=True)
class Server:
    """A Spark Connect server, which keeps its port if it dies and is started again.

    Attributes:
        folder: For its log and what it needs while it runs.
    """

    folder: Path
    port: int = 0
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _command: list[str] = field(default_factory=list[str], repr=False)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"sc://{HERE}:{self.port}"

    @property
    def pid(self) -> int:
        """The JVM."""
        assert self._process is not None
        return self._process.pid

    def choose_port(self) -> None:
        """It is known where it is going to listen."""
        with socket.socket() as probe:
            probe.bind((HERE, 0))
            self.port = int(probe.getsockname()[1])

    def start(self) -> None:
        """It answers."""
        if not self.port:
            self.choose_port()
        log = self.folder / "server.log"
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                self._command or self._first_command(),
                stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                env=environment(self.folder), cwd=self.folder, start_new_session=True,
            )  # fmt: skip
        until = time.monotonic() + _LONGEST
        while not self._answers():
            is_late = self._process.poll() is not None or time.monotonic() > until
            assert not is_late, log.read_text(errors="replace")
            time.sleep(0.1)
        # The next one is started as the script has started this one, without a JVM that only finds out how.
        self._command = Path(f"/proc/{self.pid}/cmdline").read_text(encoding="utf-8").split("\0")[:-1]

    def kill(self) -> None:
        """It is dead, and so are its workers."""
        if self._process is not None:
            below = [*children(self.pid)]
            for pid in (self.pid, *below):
                kill(pid)
            self._process.wait()

    def revive(self) -> None:
        """It answers, also if it died of what was done to its workers."""
        if self._process is None or self._process.poll() is not None or not self._answers():
            self.kill()
            self.start()

    def is_busy(self) -> bool:
        """Whether it still carries out what a driver has asked for, be that driver alive or dead."""
        return any(_read(task / "comm").startswith("SparkConnectExe") for task in _tasks(self.pid))

    def settle(self) -> None:
        """What dead drivers have asked for has come to its end."""
        until = time.monotonic() + _LONGEST
        while self.is_busy():
            assert time.monotonic() < until, "the server does not come to rest"
            time.sleep(0.05)

    def workers(self) -> list[int]:
        """Its Python workers."""
        return [pid for pid in children(self.pid) if "pyspark" in _read(Path(f"/proc/{pid}/cmdline"))]

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((HERE, self.port)) == 0

    def _first_command(self) -> list[str]:
        logging = self.folder / "log4j2.properties"
        logging.write_text(_LOGGING, encoding="utf-8")
        settings = _SETTINGS | {
            "spark.connect.grpc.binding.port": str(self.port),
            "spark.driver.extraJavaOptions": f"{_QUICK_JVM} -Dlog4j2.configurationFile={logging.as_uri()}",
            "spark.driver.extraClassPath": os.pathsep.join(map(str, delta_jars())),
        }
        return [
            str(_HOME / "bin" / "spark-submit"),
            *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]"),
            *(part for key, value in settings.items() for part in ("--conf", f"{key}={value}")),
            "spark-internal",
        ]


@dataclass(slots=True)
class Driver:
    """A process that runs one command of Stairwise.

    Attributes:
        arguments: The command.
        log: What it printed.
    """

    arguments: Sequence[str]
    log: Path
    process: ForkServerProcess

    @classmethod
    def started(cls, arguments: Sequence[str], log: Path, around: Mapping[str, str]) -> Driver:
        """It is under way."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_IMPORTED)
        process = context.Process(target=_drive, args=(list(arguments), str(log), dict(around)))
        process.start()
        return cls(arguments, log, process)

    @property
    def pid(self) -> int:
        """Its number."""
        assert self.process.pid is not None
        return self.process.pid

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.process.exitcode is None

    def kill(self) -> bool:
        """Whether it was killed: it may have been faster."""
        if self.is_running:
            kill(self.pid)
        return self.ended() == -signal.SIGKILL

    def ended(self, longest: float = _LONGEST) -> int:
        """Its exit code."""
        self.process.join(longest)
        code = self.process.exitcode
        assert code is not None, f"{self} does not end"
        return code

    def __str__(self) -> str:
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        return f"stairwise {' '.join(self.arguments)}: {self.process.exitcode}\n{text[-3000:]}"


def _drive(arguments: list[str], log: str, around: dict[str, str]) -> None:
    """What a driver does."""
    os.setpgid(0, 0)
    os.environ.clear()
    os.environ.update(around)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(file, stream)
    code = _maintain(*arguments[1:]) if arguments[0] == "sql" else main(arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _maintain(statement: str, url: str) -> int:
    """What somebody else does to the tables."""
    sql(open_session(SessionOptions(remote=url)), statement)
    return 0


def _tasks(pid: int) -> list[Path]:
    try:
        return [*Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
