"""The Spark session that everything runs in: an existing one, one behind Spark Connect, or one of our own."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol

from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession

from stairwise.errors import UsageError
from stairwise_spark.connecting import check_listening
from stairwise_spark.errors import RunError, translating
from stairwise_spark.jars import cache_folder, delta_jars, keep
from stairwise_spark.versions import OLDEST_JAVA

# Under spark-submit, or with settings of Hadoop's or Spark's own, a path may be one of another file system.
_OTHERWISE = ("PYSPARK_GATEWAY_PORT", "HADOOP_CONF_DIR", "SPARK_CONF_DIR")
_ZONE, _ANSI = "spark.sql.session.timeZone", "spark.sql.ansi.enabled"
_SEMANTICS = {_ZONE: "UTC", _ANSI: "true"}
# Delta works out the state of a table in 50 tasks by default, does it again for the checksum of a commit, which takes
# as long as to make a table, and VACUUM lists its files in 10,000 tasks. To describe the plan of each query in full
# takes as long as to find it.
_LITTLE_ADO = {
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.allFilesInCrc.enabled": "false",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
    "spark.sql.ui.explainMode": "simple",
}
# Spark's own choice for instants is a type that others read wrongly far from today, and that has no statistics; and it
# sorts what goes to several files, where a task has as many as it has of ours.
_PLAIN_FILES = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.maxConcurrentOutputFileWriters": "100",
}
_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
# Spark's own choice is 200 pieces, each a file of its own in every task before: too many for one machine.
_TASKS_A_CORE = 4
_TASKS, _SPARKS_OWN = "spark.sql.shuffle.partitions", 200
_ADAPTIVE = "spark.sql.adaptive.enabled"
# To open a file of this machine takes less than a millisecond: of Spark's own choice, made for stores elsewhere, come
# tasks of 32 small files each, and of ten thousand files hundreds of tasks.
_OPENING = {"spark.sql.files.openCostInBytes": "65536"}
# Twenty tables have more stages than the hundred whose code Spark keeps.
_COMPILED = {"spark.sql.codegen.cache.maxEntries": "2000"}
# Else its launcher says so, with a stack.
_MASTERS = re.compile(r"local(-cluster)?(\[.*\])?|yarn|(spark|k8s)://.+")
_QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
# Without its second compiler the JVM keeps 48 MB for code, which Spark fills within minutes.
_QUICK_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
# As Spark's own, but errors only, from the first line on; and not what is raised here anyway, with its stack. The level
# of the shell's logger becomes that of all.
_RAISED_ANYWAY = (
    "org.apache.spark.executor.Executor",
    "org.apache.spark.scheduler.TaskSetManager",
    "org.apache.spark.sql.delta.files.DeltaFileFormatWriter",
    "org.apache.spark.sql.execution.datasources.FileFormatWriter",
    "org.apache.spark.util.Utils",
)
_PYTHON_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n
logger.shell.name = org.apache.spark.api.python.PythonGatewayServer
logger.shell.level = error
""" + "".join(f"logger.{i}.name = {name}\nlogger.{i}.level = off\n" for i, name in enumerate(_RAISED_ANYWAY))


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """What the user says of the session.

    Attributes:
        master: The cluster; None is the one that ``spark-submit`` names, else this machine.
        remote: A Spark Connect server, ``sc://host``; None is none.
        conf: Settings of Spark, which win over ours.
        quick: Whether the JVM is to start fast rather than to run fast: for less than some ten seconds of work.
    """

    master: str | None = None
    remote: str | None = None
    conf: tuple[tuple[str, str], ...] = ()
    quick: bool = False

    def __post_init__(self) -> None:
        """Refuse two places, one that is none, and settings under which instants or overflows mean something else."""
        if self.master is not None and self.remote is not None:
            raise UsageError(
                f"master {self.master!r} and remote {self.remote!r}: a session is at one of them.", hint="keep one."
            )
        if self.master is not None and not _MASTERS.fullmatch(self.master):
            raise UsageError(
                f"master {self.master!r}: Spark knows no such address.",
                hint="try local[*], spark://HOST:7077, k8s://https://HOST:PORT or yarn.",
            )
        if self.remote is not None and not self.remote.startswith("sc://"):
            raise UsageError(f"remote {self.remote!r}: it is not sc://HOST.", hint=f"try sc://{self.remote}.")
        given = dict(self.conf)
        for key, needed in _SEMANTICS.items():
            if problem := _problem(key, given.get(key, needed)):
                raise UsageError(problem, hint="leave it out.")

    @property
    def server(self) -> str | None:
        """The Spark Connect server, as somebody asks for it here or in the environment; None: there is none."""
        return self.remote or (None if self.master else os.environ.get("SPARK_REMOTE"))

    @property
    def is_still_to_start_here(self) -> bool:
        """Whether Java is not running yet, and will be on this machine, so that a path is one of its files for sure."""
        is_elsewhere = self.server is not None or any(name in os.environ for name in _OTHERWISE)
        is_other = any(key.endswith("fs.defaultFS") for key, _ in self.conf)
        is_local = (self.master or "local").startswith("local")
        return is_local and not is_elsewhere and not is_other and SparkSession.getActiveSession() is None


def open_session(options: SessionOptions) -> SparkSession:
    """The active session if there is one, else one as the options say; in UTC, and ANSI mode.

    Raises:
        RunError: There is no Java, Delta Lake cannot be had, the session does not start, or the existing one has
            another zone or mode.
    """
    with translating():
        session = _opened(options)
        if is_connect(session):
            # Without it, a commit that lost a race is an error like any other there.
            import_module("delta.connect.exceptions")
        found = {key: session.conf.get(key) or "" for key in _SEMANTICS}
    for key, needed in _SEMANTICS.items():
        if problem := _problem(key, found[key]):
            raise RunError(problem, hint=f"spark.conf.set({key!r}, {needed!r}) before the run.")
    return session


def is_connect(session: SparkSession) -> bool:
    """Whether a session is the thin client of a server."""
    return type(session).__module__.startswith("pyspark.sql.connect")


class HasSql(Protocol):
    """What :func:`sql` needs of a session, typed through and through, as PySpark's own signature is not."""

    def sql(self, statement: str, /) -> DataFrame:
        """As of SparkSession."""
        ...


def sql(session: HasSql, statement: str) -> DataFrame:
    """What a statement of Spark SQL gives; a command is carried out at once."""
    return session.sql(statement)


def shuffle_tasks(session: SparkSession) -> int:
    """In how many tasks rows go on that have been moved: more than the cluster, or the machine, does side by side."""
    setting = session.conf.get(_TASKS, "")
    return int(setting) if setting and setting.isdigit() else _SPARKS_OWN


@contextmanager
def having(session: SparkSession, settings: Mapping[str, str]) -> Generator[None]:
    """Within it, the session has these settings."""
    before = {key: session.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        session.conf.set(key, value)
    try:
        yield
    finally:
        for key, known in before.items():
            if known is None:
                session.conf.unset(key)
            else:
                session.conf.set(key, known)


def planned_once(session: SparkSession, tasks: int | None = None) -> AbstractContextManager[None]:
    """Within it, what Spark keeps in memory is planned once and for all, with rows moved to at most so many tasks.

    By itself Spark plans a frame anew after each of its stages, and describes it as it was and as it is; so does all
    that is made of it. Of ten kept frames, each made of the one before, such a description had gigabytes. But without
    it, Spark does not see either that rows are too few for as many tasks as there may be.
    """
    most = shuffle_tasks(session)
    return having(session, {_ADAPTIVE: "false", _TASKS: str(most if tasks is None else min(tasks, most))})


def own_settings(options: SessionOptions) -> dict[str, str]:
    """The settings with which our own JVM starts."""
    check_java()
    # Spark's own choice is the python3 of the path, which may lack what this one has.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if options.quick:
        os.environ.setdefault("SPARK_LAUNCHER_OPTS", _QUICK_JVM)
    master = options.master or "local[*]"
    jars = [str(jar) for jar in delta_jars()]
    # Delta checks its state at each commit of a JVM whose zone is not called UTC.
    java = f"-Duser.timezone=UTC -Dlog4j2.configurationFile={_logging_file().as_uri()}"
    settings = {
        "spark.master": master,
        "spark.app.name": "stairwise",
        "spark.driver.extraJavaOptions": f"{java} {_QUICK_JVM}" if options.quick else java,
        **_DELTA,
        **_COMPILED,
        **_QUIET,
    }
    if not re.fullmatch(r"local(\[.*\])?", master):
        return settings | {"spark.jars": ",".join(jars)}
    settings[_TASKS] = "2" if options.quick else str(_TASKS_A_CORE * _cores(master))
    return settings | _LOOPBACK | _OPENING | {"spark.driver.extraClassPath": os.pathsep.join(jars)}


def _opened(options: SessionOptions) -> SparkSession:
    active = SparkSession.getActiveSession()
    if active is not None:
        for key, setting in options.conf:
            active.conf.set(key, setting)
        return active
    for name in _PYTHON_LOGGERS:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    builder = SparkSession.Builder()
    settings = _SEMANTICS | _LITTLE_ADO | _PLAIN_FILES
    if options.server is not None:
        check_listening(options.server)
        builder = builder.remote(options.server)
    elif "PYSPARK_GATEWAY_PORT" in os.environ:
        # Under spark-submit, which has started the JVM with settings of its own.
        settings |= {"spark.master": options.master} if options.master else {}
    else:
        settings |= own_settings(options)
    for key, setting in (settings | dict(options.conf)).items():
        builder = builder.config(key, setting)
    return builder.getOrCreate()


def _cores(master: str) -> int:
    """How many cores a master on this machine uses.

    >>> _cores("local"), _cores("local[3]"), _cores("local[3, 2]"), _cores("local[*]") == os.cpu_count()
    (1, 3, 3, True)
    """
    named = re.match(r"local\[\s*(\d+|\*)", master)
    if named is None:
        return 1
    return (os.cpu_count() or 1) if named[1] == "*" else int(named[1])


def _logging_file() -> Path:
    file = cache_folder() / "log4j2.properties"
    if not (file.exists() and file.read_text(encoding="utf-8") == _LOGGING):
        keep(_LOGGING.encode(), file)
    return file


def check_java() -> None:
    """Refuse what Spark cannot start on, before it prints a stack trace.

    Raises:
        RunError: There is no Java, or it is too old.
    """
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else "java"
    hint = f"install Java {OLDEST_JAVA} or newer, or set JAVA_HOME to where it is."
    if shutil.which(java) is None:
        where = f"at {java}, where JAVA_HOME says" if home else "on the path"
        raise RunError(f"Spark needs Java, and there is none {where}.", hint=hint)
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603 - as Spark does
    found = re.search(r'version "((?:1\.)?(\d+)[^"]*)"', said.stderr)
    if found is None:
        raise RunError(f"Spark needs Java, and {java} does not say its version.", hint=hint)
    if int(found[2]) < OLDEST_JAVA:
        raise RunError(f"Spark needs Java {OLDEST_JAVA} or newer, and {java} is {found[1]}.", hint=hint)


def _problem(key: str, setting: str) -> str:
    """Why a setting is not the one that is needed; empty if it is."""
    if setting in {"UTC", "Etc/UTC"} if key == _ZONE else setting.lower() == _SEMANTICS[key]:
        return ""
    why = "windows begin at instants of UTC" if key == _ZONE else "an overflow must fail, not wrap"
    return f"{key} is {setting}, where {_SEMANTICS[key]} is needed: {why}."
