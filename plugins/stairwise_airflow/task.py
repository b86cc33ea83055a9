"""What every task of ours does, whichever operator submits it: a command of the engine for a declaration."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar  # noqa: TID251 - as Airflow's operators have it

from airflow.sdk import BaseOperator, Context, ObjectStoragePath
from airflow.sdk.exceptions import AirflowException

from stairwise import Rollup
from stairwise_airflow.application import Application, launcher, packed
from stairwise_airflow.declarations import Declared, declared
from stairwise_airflow.errors import failure
from stairwise_airflow.listening import Listener, document_in
from stairwise_airflow.reports import Document
from stairwise_airflow.settings import Settings

_ERROR = "stairwise.error/1"
_SHOWN_NOISE = 100


class RollupTask(BaseOperator):
    """A command of the engine for a declaration; the operator that submits it is the other base of a subclass.

    Args:
        rollup: A :class:`stairwise.Rollup`, its file, or its YAML; a relative path begins in the DAG's folder.
        program: The file that Spark runs; None: as configured.
        reports: The folder where runs leave their reports; None: as configured.
        options: More options of the engine's command, such as ``["--spark-conf", "K=V"]``.
        kwargs: What the submitting operator takes.
    """

    command: ClassVar[str]
    ui_color = "#e8f4ea"

    def __init__(
        self,
        *,
        rollup: Declared,
        program: str | None = None,
        reports: str | None = None,
        options: Sequence[str] = (),
        **kwargs: Any,  # noqa: ANN401 - whatever the user's operator takes
    ) -> None:
        found = declared(rollup)
        # Airflow keeps this text with the DAG, shows it, and the page reads it from there.
        kwargs.setdefault("doc_yaml", found.to_yaml())
        super().__init__(**kwargs)
        self.declaration: Rollup = found
        self.program = program
        self.reports = reports
        self.options = tuple(options)
        self.listener = Listener(self._say)

    def place(self, application: Application) -> None:
        """Put the program and its arguments where the submitting operator takes them."""
        raise NotImplementedError

    def submit(self, context: Context) -> object:
        """Let the submitting operator do its work."""
        return super().execute(context)

    def prepare(self, context: Context, arguments: Sequence[str]) -> str:
        """The submitting operator has its program and arguments; what comes back is the report's place, or nothing."""
        settings = Settings.read()
        folder = settings.reports if self.reports is None else self.reports
        place = f"{folder.rstrip('/')}/{_file_name(context)}" if folder else ""
        told = ("--report", place) if place else ()
        self.listener = Listener(self._say)
        self.place(
            Application(
                file=self.program or settings.application or launcher(),
                arguments=(self.command, packed(self.declaration), *arguments, *told, *self.options),
            )
        )
        return place

    def answered(self, context: Context, arguments: Sequence[str]) -> Document | None:
        """What the command answers to these arguments; None: it was done, but nobody here sees the answer.

        Raises:
            AirflowException: It failed; for good if no retry would mend it.
        """
        place = self.prepare(context, arguments)
        try:
            returned = self.submit(context)
        except AirflowException as error:
            answer = self.listener.answer
            if answer is None or answer.get("schema") == _ERROR:
                self._show_noise()
            if answer is None:
                raise
            if answer.get("schema") == _ERROR:
                raise failure(answer) from error
            return answer
        return self.heard(returned, place)

    def heard(self, returned: object, place: str) -> Document | None:
        """The answer, wherever it is: it was printed, the operator returned it, or the report lies in its place."""
        answer = self.listener.answer or _returned(returned) or (_read(place) if place else None)
        if answer is None:
            self.log.warning("The report cannot be seen from here; name a folder for it with reports=.")
        return answer

    def _say(self, line: str) -> None:
        self.log.info("%s", line)

    def _show_noise(self) -> None:
        for line in list(self.listener.noise)[-_SHOWN_NOISE:]:
            self.log.info("%s", line)


def _returned(value: object) -> Document | None:
    """The answer of an operator that returns what its program printed, such as Bash's."""
    lines = value.strip().splitlines() if isinstance(value, str) else []
    return document_in(lines[-1]) if lines else None


def _read(place: str) -> Document | None:
    """The answer in a folder that Spark has written."""
    folder = ObjectStoragePath(place) if "://" in place else ObjectStoragePath(f"file://{Path(place).absolute()}")
    for part in folder.iterdir() if folder.exists() else ():
        if part.name.startswith("part-"):
            return document_in(part.read_bytes().decode().strip())
    return None


def _file_name(context: Context) -> str:
    """A name for the report of one try of one task instance."""
    instance = context["ti"]
    parts = (instance.dag_id, instance.task_id, instance.run_id, instance.map_index, instance.try_number)
    return re.sub(r"[^\w.~-]", "_", "~".join(map(str, parts)))
