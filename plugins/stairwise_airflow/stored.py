"""What Airflow's database knows: which DAGs have rollups, their declarations, and the reports that tasks have told."""

from __future__ import annotations

from collections.abc import Mapping

from airflow.models.asset import AssetModel, TaskOutletAssetReference
from airflow.models.serialized_dag import SerializedDagModel
from airflow.models.xcom import XComModel
from sqlalchemy import select
from sqlalchemy.orm import Session

from stairwise import Rollup
from stairwise.errors import StairwiseError
from stairwise_airflow.reports import is_document, is_list

_SCHEME = "stairwise://"


def dags_with_rollups(session: Session) -> list[tuple[str, tuple[str, ...]]]:
    """Each DAG that writes tiers, with the names of its rollups."""
    found: dict[str, set[str]] = {}
    query = (
        select(TaskOutletAssetReference.dag_id, AssetModel.uri)
        .join(AssetModel, TaskOutletAssetReference.asset_id == AssetModel.id)
        .where(AssetModel.uri.startswith(_SCHEME))
    )
    for dag_id, uri in session.execute(query):
        found.setdefault(dag_id, set()).add(uri.removeprefix(_SCHEME).partition("/")[0])
    return [(dag_id, tuple(sorted(names))) for dag_id, names in sorted(found.items())]


def rollups_of(dag_id: str, session: Session) -> list[Rollup] | None:
    """The declarations in a DAG; None: there is no such DAG."""
    stored = SerializedDagModel.get(dag_id, session=session)
    if stored is None:
        return None
    tasks = _tasks(stored.data)  # pyright: ignore[reportUnknownArgumentType]  # a plain dict, looked into there
    texts = dict.fromkeys(text for task in tasks if (text := _declaration(task)))
    found: list[Rollup] = []
    for text in texts:
        try:
            found.append(Rollup.from_yaml(text))
        except StairwiseError:
            continue  # a task of somebody else's that has YAML for documentation
    return found


def _tasks(data: object) -> list[Mapping[str, object]]:
    dag = data.get("dag") if is_document(data) else None
    tasks = dag.get("tasks") if is_document(dag) else None
    inner = (each.get("__var", each) for each in (tasks if is_list(tasks) else []) if is_document(each))
    return [each for each in inner if is_document(each)]


def _declaration(task: Mapping[str, object]) -> str:
    partial = task.get("partial_kwargs")
    for fields in (task, partial):
        if is_document(fields):
            text = fields.get("doc_yaml")
            if isinstance(text, str) and text.startswith("rollup:"):
                return text
    return ""


def told_reports(dag_id: str, session: Session, at_most: int) -> list[object]:
    """The newest reports that tasks of a DAG have told."""
    query = (
        select(XComModel)
        .where(XComModel.dag_id == dag_id, XComModel.key == "return_value")
        .order_by(XComModel.timestamp.desc())
        .limit(at_most)
    )
    return [document for told in session.scalars(query) if (document := _report(told)) is not None]


def engine_run(dag_id: str, run_id: str, session: Session) -> str:
    """The run of the engine that a run of a DAG was; empty: it has told none."""
    query = select(XComModel).where(
        XComModel.dag_id == dag_id, XComModel.run_id == run_id, XComModel.key == "return_value"
    )
    found = [document for told in session.scalars(query) if (document := _report(told)) is not None]
    return str(found[-1].get("run_id", "")) if found else ""


def _report(told: XComModel) -> Mapping[str, object] | None:
    value: object = XComModel.deserialize_value(told)
    return value if is_document(value) and value.get("schema") == "stairwise.run/1" else None
