"""The declarations beside the example DAGs are ones that Stairwise takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from stairwise import Rollup

DECLARATIONS = sorted((Path(__file__).parent.parent.parent / "dags").rglob("*.yaml"))


@pytest.mark.parametrize("declaration", DECLARATIONS, ids=lambda file: file.stem)
def test_the_declaration_is_legal_and_named_like_its_file(declaration: Path) -> None:
    rollup = Rollup.from_yaml(declaration.read_text(encoding="utf-8"))
    assert rollup.name == declaration.stem
    assert Rollup.from_yaml(rollup.to_yaml()) == rollup
