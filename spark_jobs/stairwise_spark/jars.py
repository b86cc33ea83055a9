"""The JARs of Delta Lake: fetched once by their coordinates, checked, and kept in the user's cache.

``python -m stairwise_spark.jars`` fetches them ahead of the first session. ``STAIRWISE_MAVEN`` names another
repository than Maven Central.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from stairwise.errors import StairwiseError
from stairwise_spark.errors import RunError
from stairwise_spark.versions import DELTA_JARS

CENTRAL = "https://repo1.maven.org/maven2"
_SECONDS = 60  # without an answer


def cache_folder() -> Path:
    """Where files are kept that can be had again."""
    # A relative path is to be ignored, says the XDG base directory specification.
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (given if given.is_absolute() else Path.home() / ".cache") / "stairwise"


def delta_jars(digests: Mapping[str, str] = DELTA_JARS) -> tuple[Path, ...]:
    """The JARs on this machine, by coordinate and SHA-256; what is missing is fetched.

    Raises:
        RunError: One cannot be fetched or kept, or is not the one that was verified.
    """
    return tuple(_jar(coordinate, digest) for coordinate, digest in digests.items())


def _jar(coordinate: str, digest: str) -> Path:
    group, artifact, version = coordinate.split(":")
    name = f"{artifact}-{version}.jar"
    jar = cache_folder() / "jars" / name
    # Its name was given to it once its content was checked.
    if not jar.exists():
        repository = os.environ.get("STAIRWISE_MAVEN") or CENTRAL
        url = f"{repository.rstrip('/')}/{group.replace('.', '/')}/{artifact}/{version}/{name}"
        keep(_fetched(url, digest, jar), jar)
    return jar


def _fetched(url: str, digest: str, jar: Path) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS) as answer:  # noqa: S310 - the user may name a file: mirror
            content = bytes(answer.read())
    except (OSError, ValueError) as error:
        raise RunError(
            f"Delta Lake cannot be fetched from {url} ({error}).",
            hint=f"go online once, name a mirror in STAIRWISE_MAVEN, or put the file at {jar}.",
            url=url,
        ) from error
    found = hashlib.sha256(content).hexdigest()
    if found != digest:
        raise RunError(
            f"{url} is not the file that was verified: its SHA-256 is {found}, not {digest}.",
            hint="name a repository in STAIRWISE_MAVEN that has the file unchanged.",
            url=url,
        )
    return content


def keep(content: bytes, place: Path) -> None:
    """Put a file in its place whole: other processes may look for it, or bring it too.

    Raises:
        RunError: It cannot be written.
    """
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=place.parent, prefix=f".{place.name}.", delete=False) as file:
            draft = Path(file.name)
            try:
                file.write(content)
            except OSError:
                draft.unlink()
                raise
        draft.chmod(0o644)
        draft.replace(place)
    except OSError as error:
        raise RunError(
            f"{place} cannot be written ({error.strerror}).", hint="name a folder for caches in XDG_CACHE_HOME."
        ) from error


def main() -> int:
    """Fetch what is missing; the exit code says whether all is there."""
    try:
        delta_jars()
    except StairwiseError as error:
        print(f"stairwise: {error}", file=sys.stderr)  # noqa: T201 - a command line prints
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
