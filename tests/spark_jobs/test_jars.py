"""The JARs of Delta Lake: fetched once, checked, kept whole."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from stairwise_spark import jars
from stairwise_spark.errors import RunError

COORDINATE = "org.example:lake_2.13:1.0"
CONTENT = b"the classes"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("STAIRWISE_MAVEN", (tmp_path / "maven").as_uri() + "/")
    return tmp_path / "cache" / "stairwise" / "jars"


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """The JAR in a repository."""
    jar = tmp_path / "maven" / "org" / "example" / "lake_2.13" / "1.0" / "lake_2.13-1.0.jar"
    jar.parent.mkdir(parents=True)
    jar.write_bytes(CONTENT)
    return jar


def test_it_is_fetched_once(published: Path, cache: Path) -> None:
    expected = (cache / "lake_2.13-1.0.jar",)
    assert jars.delta_jars({COORDINATE: DIGEST}) == expected
    assert expected[0].read_bytes() == CONTENT
    published.unlink()
    assert jars.delta_jars({COORDINATE: DIGEST}) == expected
    assert [file.name for file in cache.iterdir()] == ["lake_2.13-1.0.jar"]


def test_a_changed_file_is_refused_and_not_kept(published: Path, cache: Path) -> None:
    published.write_bytes(b"other classes")
    found = hashlib.sha256(b"other classes").hexdigest()
    with pytest.raises(RunError) as raised:
        jars.delta_jars({COORDINATE: DIGEST})
    assert str(raised.value) == (
        f"{published.as_uri()} is not the file that was verified: its SHA-256 is {found}, not {DIGEST}. "
        "Hint: name a repository in STAIRWISE_MAVEN that has the file unchanged."
    )
    assert not cache.exists()


def test_offline(tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "maven" / "io" / "delta" / "delta-spark_4.2_2.13" / "4.4.0"
    jar = "delta-spark_4.2_2.13-4.4.0.jar"
    assert jars.main() == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == (
        f"stairwise: Delta Lake cannot be fetched from {(folder / jar).as_uri()} "
        f"(<urlopen error [Errno 2] No such file or directory: '{folder / jar}'>). "
        f"Hint: go online once, name a mirror in STAIRWISE_MAVEN, or put the file at {cache / jar}.\n"
    )


@pytest.mark.usefixtures("published")
def test_a_cache_that_cannot_be_written(cache: Path) -> None:
    cache.parent.parent.mkdir()
    cache.parent.write_text("no folder")
    with pytest.raises(RunError) as raised:
        jars.delta_jars({COORDINATE: DIGEST})
    assert str(raised.value) == (
        f"{cache / 'lake_2.13-1.0.jar'} cannot be written (Not a directory). "
        "Hint: name a folder for caches in XDG_CACHE_HOME."
    )


def test_a_relative_cache_folder_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert jars.cache_folder() == tmp_path / ".cache" / "stairwise"
