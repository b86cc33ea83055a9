"""What fails a task, in words; errors that no retry mends fail it for good."""

from __future__ import annotations

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from stairwise_airflow.reports import Document

# Kinds of the document ``stairwise.error/1`` that are the same in the next attempt.
_MEND_FIRST = frozenset(
    {"aggregate", "codec", "declaration", "duration", "not_yet", "rollup", "source", "usage", "window", "zone"}
)


def refusal(message: str, hint: str) -> AirflowFailException:
    """The task cannot be meant as it is: it fails, and is not tried again."""
    return AirflowFailException(f"{message} Hint: {hint}")


def failure(document: Document) -> AirflowException:
    """What the document of an error says."""
    text, hint = str(document.get("message")), document.get("hint")
    said = f"{text} Hint: {hint}" if hint else text
    return AirflowFailException(said) if document.get("kind") in _MEND_FIRST else AirflowException(said)


def unanswered(command: str) -> AirflowFailException:
    """What was done cannot be judged, for its answer is out of sight."""
    return refusal(f"the answer of '{command}' cannot be seen from here.", "name a folder for it with reports=.")
