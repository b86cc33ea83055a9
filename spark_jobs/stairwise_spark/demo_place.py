"""Where the demo is: a folder of its own, with an Airflow of its own, and what programs say there."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from stairwise.errors import UsageError
from stairwise_spark.errors import RunError

_SHOWN = 12  # lines of what a program said, where it fails
BESIDE = Path(sys.executable).parent
"""Where the programs of this Python are."""


@dataclass(frozen=True, slots=True)
class Place:
    """A folder for all of it.

    Attributes:
        folder: An absolute path.
        remote: The address of a Spark Connect server, where programs find Spark; None: each starts one of its own.
    """

    folder: Path
    remote: str | None = None

    @property
    def events(self) -> Path:
        """Where the trips are."""
        return self.folder / "lake" / "trips"

    @property
    def target(self) -> Path:
        """Where the tiers are."""
        return self.folder / "lake" / "rollups"

    @property
    def by_hand(self) -> Path:
        """Where the tables of the comparison are."""
        return self.folder / "lake" / "by_hand"

    @property
    def dags(self) -> Path:
        """Airflow's folder of DAGs."""
        return self.folder / "dags"

    @property
    def declaration(self) -> Path:
        """The declaration."""
        return self.dags / "rollups" / "demo.yaml"

    @property
    def picture(self) -> Path:
        """The plan, drawn."""
        return self.folder / "plan.svg"

    @property
    def log(self) -> Path:
        """What all programs said; that it is there tells a demo from other folders."""
        return self.folder / "demo.log"

    @property
    def home(self) -> Path:
        """Airflow's own folder."""
        return self.folder / "airflow"

    def environment(self) -> dict[str, str]:
        """What programs are started with: those beside this Python, an Airflow in the folder, Spark on this machine."""
        local = {"conn_type": "spark", "host": "local[*]"}
        spark = local if self.remote is None else {"conn_type": "spark_connect", "host": self.remote}
        settings = {
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.dags),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(self.home / "plugins"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__PARALLELISM": "4",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{self.home}/airflow.db",
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(spark),
            "PATH": os.pathsep.join([str(BESIDE), os.environ.get("PATH", "")]),
        }
        return os.environ | settings | ({} if self.remote is None else {"SPARK_REMOTE": self.remote})

    def check(self) -> None:
        """Refuse to begin where Airflow is missing, or where something else would be lost.

        Raises:
            UsageError: One of these.
        """
        if shutil.which("airflow", path=self.environment()["PATH"]) is None:
            raise UsageError(
                "the demo runs in Airflow, and there is no program 'airflow'.", hint="pip install 'stairwise[all]'."
            )
        if self.folder.exists() and not (self.log.exists() or self._is_empty()):
            raise UsageError(
                f"'{self.folder}' holds something else than a demo, which would be lost.",
                hint="name another folder with --dir.",
            )

    def clear(self) -> None:
        """Remove an earlier demo, and make the folder."""
        if self.folder.exists():
            shutil.rmtree(self.folder)
        for folder in (self.dags / "rollups", self.events):
            folder.mkdir(parents=True)
        self.log.touch()

    def run(self, *words: str) -> str:
        """What a program prints; all that it says goes to the log.

        Args:
            words: The program, as it is found beside this Python or on the path, and its arguments.

        Raises:
            RunError: It failed.
        """
        with self.log.open("a", encoding="utf-8") as said:
            print(f"$ {shlex.join(words)}", file=said, flush=True)
            done = subprocess.run(  # noqa: S603 - commands of our own making
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                cwd=self.folder,
                env=self.environment(),
                check=False,
            )
            said.write(done.stdout)
        if done.returncode:
            last = self.log.read_text(encoding="utf-8").splitlines()[-_SHOWN:]
            said_last = "\n".join(f"  {line}" for line in last)
            raise RunError(
                f"'{' '.join(words[:3])} ...' ended with {done.returncode}; the last that it said:\n{said_last}\n",
                hint=f"all of it is in {self.log}.",
            )
        return done.stdout

    def _is_empty(self) -> bool:
        return self.folder.is_dir() and next(self.folder.iterdir(), None) is None
