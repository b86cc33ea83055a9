"""What a submitted program says: its progress is shown, its answer kept, and Spark's noise too until it is needed."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any  # noqa: TID251 - as Airflow's hook has it

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

from stairwise_airflow.reports import Document, is_document

_ANSWER = '{"schema": "stairwise.'
_PROGRESS = re.compile(r"chunk \d+ of \d+: ")
_MOST_LINES = 400

Say = Callable[[str], None]


class Listener:
    """Takes the lines that a program prints.

    Args:
        say: Is told of the progress.
    """

    def __init__(self, say: Say) -> None:
        self._say = say
        self.answer: Document | None = None
        self.noise: deque[str] = deque(maxlen=_MOST_LINES)

    def hear(self, raw: str) -> None:
        """Take a line."""
        line = raw.rstrip()
        found = document_in(line)
        if found is not None:
            self.answer = found
        elif _PROGRESS.match(line):
            self._say(line)
        elif line:
            self.noise.append(line)


def document_in(text: str) -> Document | None:
    """The document that a line is; None: it is none of ours."""
    if not text.startswith(_ANSWER):
        return None
    try:
        document: object = json.loads(text)
    except ValueError:
        return None
    return document if is_document(document) else None


def _warnings_alone() -> logging.Logger:
    """A logger for the hook, which says the command and each line that comes, all as information."""
    logger = logging.getLogger(f"{__name__}.quiet")
    logger.setLevel(logging.WARNING)
    return logger


class QuietSparkSubmitHook(SparkSubmitHook):
    """Airflow's hook, but that the lines of ``spark-submit`` go to a listener instead of the task's log."""

    listener: Listener

    @classmethod
    def of(cls, listener: Listener, hook: SparkSubmitHook, *, is_verbose: bool) -> QuietSparkSubmitHook:
        """The same hook, quiet unless all is to be seen."""
        quiet = cls.__new__(cls)
        # Its logger is where Airflow's mixin keeps it.
        quiet.__dict__.update(hook.__dict__ if is_verbose else {**hook.__dict__, "_log": _warnings_alone()})
        quiet.listener = listener
        return quiet

    def submit(self, application: str = "", **kwargs: Any) -> str | None:  # noqa: ANN401 - as Airflow's hook has it
        """As Airflow's hook, in a group of processes of its own."""
        try:
            return super().submit(application, process_group=0, **kwargs)
        finally:
            if self._submit_sp is not None:
                self._submit_sp.stdout.close()

    def on_kill(self) -> None:
        """Nothing runs any more: not the JVM, nor what it has started, such as the Python of the driver."""
        super().on_kill()
        if self._submit_sp is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._submit_sp.pid, signal.SIGKILL)

    def _process_spark_submit_log(self, itr: Iterator[Any]) -> None:
        super()._process_spark_submit_log(self._heard(itr))

    def _heard(self, lines: Iterator[str]) -> Iterator[str]:
        for line in lines:
            self.listener.hear(line)
            yield line
