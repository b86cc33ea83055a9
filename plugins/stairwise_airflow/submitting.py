"""A task whose command goes to ``spark-submit``, or to a Spark Connect server, as its connection says."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any  # noqa: TID251 - as Airflow's operators have it

from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowException

from stairwise_airflow.application import Application
from stairwise_airflow.connection import CONNECT, checked_connection
from stairwise_airflow.listening import QuietSparkSubmitHook
from stairwise_airflow.settings import Settings
from stairwise_airflow.spark_settings import Submission, completed
from stairwise_airflow.task import RollupTask

_FAREWELL = 3.0  # seconds


class SparkTask(RollupTask, SparkSubmitOperator):
    """Submits as Airflow's operator does, quietly and with Delta Lake; or runs the thin client of Spark Connect.

    Args:
        conn_id: A connection of the type spark or spark_connect; None: as configured.
        kwargs: What SparkSubmitOperator takes, passed through: ``conf``, ``packages``, ``jars``, ``env_vars``, ...
    """

    template_fields: Sequence[str] = SparkSubmitOperator.template_fields
    conf: dict[Any, Any] | None
    packages: str | None
    driver_class_path: str | None
    env_vars: dict[str, Any] | None

    def __init__(
        self,
        *,
        conn_id: str | None = None,
        **kwargs: Any,  # noqa: ANN401 - what SparkSubmitOperator takes
    ) -> None:
        kwargs.setdefault("name", "stairwise")
        super().__init__(conn_id=Settings.read().conn_id if conn_id is None else conn_id, **kwargs)
        self._client: subprocess.Popen[str] | None = None

    def place(self, application: Application) -> None:
        """The program and its arguments are where Airflow's operator takes them."""
        self.application = application.file
        self.application_args = list(application.arguments)
        self._hook = None  # one of an earlier call has the arguments of that

    def submit(self, context: Context) -> object:
        """The program has run, on the Spark of the connection."""
        connection = checked_connection(self._conn_id)
        if connection.conn_type == CONNECT:
            self._run_client()
            return None
        self._complete()
        return super().submit(context)

    def execute(self, context: Context) -> Any:  # noqa: ANN401 - Airflow's operator returns nothing, and ours answers
        """What the subclasses do, each with an answer of its own."""
        raise NotImplementedError

    def on_kill(self) -> None:
        """Nothing runs any more."""
        if self._client is None:
            super().on_kill()
            return
        # It takes along what the server does for it; Airflow itself waits five seconds before it kills.
        self._client.terminate()
        try:
            self._client.wait(_FAREWELL)
        except subprocess.TimeoutExpired:
            self._client.kill()

    def _complete(self) -> None:
        """What the user left out is set, once the address of Spark is known."""
        resolved = super()._get_hook()._connection  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001 - only the hook knows how it reads a connection
        found = completed(
            Submission(
                conf=_texts(self.conf),
                packages=self.packages,
                jars=self.jars,
                driver_class_path=self.driver_class_path,
                env_vars=_texts(self.env_vars),
            ),
            str(resolved["master"]),
            is_cluster_mode=resolved["deploy_mode"] == "cluster",
        )
        self.conf, self.packages = dict(found.conf), found.packages
        self.driver_class_path, self.env_vars = found.driver_class_path, dict(found.env_vars)

    def _get_hook(self) -> SparkSubmitHook:
        return QuietSparkSubmitHook.of(self.listener, super()._get_hook(), is_verbose=self._verbose)

    def _run_client(self) -> None:
        """The program has run in a Python of its own, and its queries on the server."""
        environment = {
            **os.environ,
            **_texts(self.env_vars),
            # Not as an argument, for it may hold a token.
            "SPARK_REMOTE": SparkConnectHook(self._conn_id).get_connection_url(),
        }
        settings = [word for key, value in _texts(self.conf).items() for word in ("--spark-conf", f"{key}={value}")]
        command = [sys.executable, self.application, *(self.application_args or []), *settings]
        with subprocess.Popen(  # noqa: S603 - the program of this package, or the one that is configured
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        ) as self._client:
            for line in self._client.stdout or ():
                self.listener.hear(line)
        if self._client.returncode:
            raise AirflowException(f"the program of Stairwise ended with {self._client.returncode}.")


def _texts(values: Mapping[Any, Any] | None) -> dict[str, str]:
    """What a user gave, as Spark takes it."""
    return {str(key): str(value) for key, value in (values or {}).items()}
