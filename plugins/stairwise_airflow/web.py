"""What the web server answers below ``/stairwise``: every route is for users who may see the DAG in question."""

from __future__ import annotations

import time
from secrets import token_urlsafe
from typing import Annotated

from airflow.api_fastapi.app import get_auth_manager  # pyright: ignore[reportUnknownVariableType]  # of any user
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from fastapi import Depends, FastAPI, HTTPException, Query
from fastapi.responses import HTMLResponse

from stairwise_airflow.history import history
from stairwise_airflow.markup import element
from stairwise_airflow.page import SPANS, View, document, index, rollup_section
from stairwise_airflow.stored import dags_with_rollups, engine_run, rollups_of, told_reports
from stairwise_airflow.why import Question

_MOST_TOLD = 500
_MAY_SEE = [
    Depends(requires_access_dag("GET")),
    Depends(requires_access_dag("GET", DagAccessEntity.RUN)),
    Depends(requires_access_dag("GET", DagAccessEntity.XCOM)),
]
# Nothing is loaded, sent or shown elsewhere; the style and the script of the page itself, and lengths, are let in.
_POLICY = (
    "default-src 'none'; script-src 'nonce-{0}'; style-src-elem 'nonce-{0}'; style-src-attr 'unsafe-inline'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
)
_Text = Annotated[str, Query(max_length=300)]

# Descriptions of the routes would be there for everyone.
app = FastAPI(title="Stairwise", docs_url=None, redoc_url=None, openapi_url=None)


@app.get("/rollups", response_class=HTMLResponse)
def show_all(user: GetUserDep, session: SessionDep) -> HTMLResponse:
    """The DAGs with rollups that the user may see."""
    nonce = token_urlsafe()
    found = dags_with_rollups(session)
    may_see = get_auth_manager().get_authorized_dag_ids(user=user)
    return _page(index([each for each in found if each[0] in may_see], nonce), nonce)


@app.get("/dags/{dag_id}", response_class=HTMLResponse, dependencies=_MAY_SEE)
def show_dag(dag_id: str, session: SessionDep, span: _Text = "all", tier: _Text = "", at: _Text = "") -> HTMLResponse:
    """The rollups of a DAG."""
    return _shown(dag_id, "", session, View(span=_known_span(span), question=_question(tier, at), now=_now()))


@app.get("/dags/{dag_id}/runs/{run_id}", response_class=HTMLResponse, dependencies=_MAY_SEE)
def show_run(
    dag_id: str, run_id: str, session: SessionDep, span: _Text = "all", tier: _Text = "", at: _Text = ""
) -> HTMLResponse:
    """The rollups of a DAG, and among the runs of the engine the one that a run of the DAG was."""
    view = View(
        span=_known_span(span), question=_question(tier, at), now=_now(), run=engine_run(dag_id, run_id, session)
    )
    return _shown(dag_id, run_id, session, view)


def _shown(dag_id: str, run_id: str, session: SessionDep, view: View) -> HTMLResponse:
    rollups = rollups_of(dag_id, session)
    if rollups is None:
        raise HTTPException(404, "There is no such DAG.")
    nonce = token_urlsafe()
    told = told_reports(dag_id, session, _MOST_TOLD)
    sections: list[str] = [rollup_section(history(rollup, told), view) for rollup in dict.fromkeys(rollups)]
    title = f"Rollups of {dag_id}" + (f", run {run_id}" if run_id else "")
    none = element("p", "This DAG has no rollup. To declare one: RollupOperator(task_id=..., rollup=...).")
    return _page(document(title, *(sections or [none]), nonce=nonce), nonce)


def _page(text: str, nonce: str) -> HTMLResponse:
    headers = {"Content-Security-Policy": _POLICY.format(nonce), "X-Content-Type-Options": "nosniff"}
    return HTMLResponse(text, headers=headers | {"Referrer-Policy": "same-origin", "Cache-Control": "no-store"})


def _known_span(span: str) -> str:
    return span if span in SPANS else "all"


def _question(tier: str, at: str) -> Question | None:
    return Question(tier, at.strip()) if tier else None


def _now() -> int:
    return int(time.time())
