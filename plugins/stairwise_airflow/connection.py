"""The Spark connection of a task, checked before anything is submitted.

Airflow's hook submits to YARN where a connection is missing or cannot be read, and says so in one line of the log.
"""

from __future__ import annotations

import re
from importlib.util import find_spec

from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowException

from stairwise_airflow.errors import refusal

CONNECT = "spark_connect"
_LOCAL = re.compile(r"local(\[.*\])?")
_SUBMITTING = frozenset({"spark", "k8s", "yarn", "mesos"})


def checked_connection(conn_id: str) -> Connection:
    """The connection, if Spark can be found by it.

    Raises:
        AirflowFailException: It is not there, is of another kind, or names no Spark.
    """
    variable = f"AIRFLOW_CONN_{conn_id.upper()}"
    example = f"""{variable}='{{"conn_type":"spark","host":"local[*]"}}'"""
    try:
        connection = BaseHook.get_connection(conn_id)
    except (AirflowException, ValueError) as error:
        raise refusal(
            f"the connection '{conn_id}' is not there or cannot be read ({_line(error)}).",
            hint=f"add it in Airflow, or set {example}.",
        ) from error
    if connection.conn_type == "local":
        raise refusal(f"the connection '{conn_id}': local:// is no address of Spark.", hint=f"set {example}.")
    if connection.conn_type not in {*_SUBMITTING, CONNECT}:
        raise refusal(
            f"the connection '{conn_id}' is of the type '{connection.conn_type}', not spark or spark_connect.",
            hint="name another one with conn_id=.",
        )
    if connection.conn_type in {"spark", CONNECT} and not connection.host:
        raise refusal(f"the connection '{conn_id}' names no host.", hint=f"set {example}.")
    _check_kubernetes(connection)
    return connection


def is_local(master: str) -> bool:
    """Whether Spark runs in the worker itself.

    >>> is_local("local[*]"), is_local("local"), is_local("spark://local:7077")
    (True, True, False)
    """
    return _LOCAL.fullmatch(master) is not None


def _check_kubernetes(connection: Connection) -> None:
    is_kubernetes = connection.conn_type == "k8s" or str(connection.host).startswith("k8s://")
    if is_kubernetes and not _is_there("airflow.providers.cncf.kubernetes"):
        raise refusal(
            f"the connection '{connection.conn_id}' names Kubernetes, and its provider is not installed.",
            hint="pip install apache-airflow-providers-cncf-kubernetes.",
        )


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].removesuffix(".") if lines else type(error).__name__
