"""The page in a browser, beside ``make ui``: ``python -m tests.plugins.look http://localhost:8080 --axe axe.min.js``.

Light and dark, wide and narrow: a picture of each, what the console says, whether anything sticks out, and what
axe-core finds, of which ``npm pack axe-core`` brings the file. No test runs it: neither a browser nor axe-core is in
the lock.
"""

from __future__ import annotations

import argparse
import base64
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count, product
from pathlib import Path
from typing import Any  # noqa: TID251 - what JSON holds

from websockets.sync.client import ClientConnection, connect

WIDTHS, THEMES = (400, 1_000, 2_000), ("light", "dark")
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_LONGEST = 60.0
_SETTLED = 1.5  # seconds without a word of the browser
_WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
_AXE = """axe.run(document, {resultTypes: ["violations"]}).then(found => found.violations.map(each =>
    each.id + " (" + each.impact + "): " + each.nodes.map(node => node.target + " " +
        node.any.concat(node.all, node.none).map(check => check.message).join("; ")).join(" | ")))"""


class _Given(argparse.Namespace):
    address: str
    dag: str
    axe: Path | None
    into: Path


@dataclass(slots=True)
class Tab:
    """A tab of a browser.

    Attributes:
        socket: To the browser.
        session: Names the tab.
        wrong: What the console said that is an error.
    """

    socket: ClientConnection
    session: str = ""
    wrong: list[str] = field(default_factory=list[str])
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def ask(self, method: str, **parameters: object) -> Any:  # noqa: ANN401 - what the browser answers
        """What the browser answers."""
        number = next(self._numbers)
        message: dict[str, object] = {"id": number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        while True:
            said = json.loads(self.socket.recv(_LONGEST))
            if said.get("id") == number:
                assert "error" not in said, (method, said["error"])
                return said["result"]
            self._hear(said)

    def evaluated(self, script: str) -> Any:  # noqa: ANN401 - what a script gives
        """What a script in the page gives."""
        said = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in said, said["exceptionDetails"]
        return said["result"].get("value")

    def go(self, address: str) -> None:
        """The page is there, and does nothing any more."""
        self.ask("Page.navigate", url=address)
        until = time.monotonic() + _LONGEST
        while time.monotonic() < until:
            try:
                self._hear(json.loads(self.socket.recv(_SETTLED)))
            except TimeoutError:
                if self.evaluated("document.readyState") == "complete":
                    return
        raise AssertionError(f"{address} does not come to rest")

    def picture(self, file: Path) -> None:
        """All of the page is in a file."""
        shot = self.ask("Page.captureScreenshot", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(shot["data"]))

    def _hear(self, said: Any) -> None:  # noqa: ANN401 - as above
        told = said.get("params", {})
        match said.get("method"):
            case "Runtime.exceptionThrown":
                self.wrong.append(str(told["exceptionDetails"].get("exception", told)))
            case "Runtime.consoleAPICalled" if told["type"] in {"error", "assert"}:
                self.wrong.append(str([each.get("value") or each.get("description") for each in told["args"]]))
            case "Log.entryAdded" if told["entry"]["level"] == "error":
                self.wrong.append(f"{told['entry']['text']} {told['entry'].get('url', '')}")
            case _:
                pass


@contextmanager
def browser() -> Generator[Tab]:
    """A tab of a browser that nobody sees."""
    program = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if program is None:
        sys.exit(f"There is none of {', '.join(_BROWSERS)} on the path.")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                   "--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank"]  # fmt: skip
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            port = Path(profile, "DevToolsActivePort")
            until = time.monotonic() + _LONGEST
            while not (port.exists() and len(port.read_text().split()) == 2):
                assert time.monotonic() < until, f"{program} does not start"
                time.sleep(0.1)
            number, path = port.read_text().split()
            with connect(f"ws://127.0.0.1:{number}{path}", max_size=None) as socket:
                tab = Tab(socket)
                target = tab.ask("Target.createTarget", url="about:blank")["targetId"]
                tab.session = tab.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
                for domain in ("Page", "Runtime", "Log"):
                    tab.ask(f"{domain}.enable")
                yield tab
        finally:
            process.kill()
            process.wait()


def looked(tab: Tab, address: str, dag: str, axe: str, into: Path) -> Iterator[str]:
    """What is wrong with the page, in words."""
    own, framed = f"{address}/stairwise/dags/{dag}", f"{address}/dags/{dag}/plugin/rollups_dag"
    places = {"list": f"{address}/stairwise/rollups", "page": own, "asked": f"{own}?tier=1h&at=2026-03-01T07:30Z#why"}
    tab.go(address)  # whoever comes is let in
    yield from _said(tab, "Airflow's first page")
    for width, theme in product(WIDTHS, THEMES):
        tab.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        tab.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        for name, place in (places | {"framed": framed}).items():
            where = f"{name}, {theme}, {width} wide"
            tab.go(place)
            if name != "framed":
                tab.evaluated("document.querySelectorAll('details').forEach(each => each.open = true)")
                yield from (f"{where}: {each} pixels stick out" for each in [tab.evaluated(_WIDER)] if each > 0)
                if axe:
                    tab.evaluated(f"{axe}; undefined")
                    yield from (f"{where}: {each}" for each in tab.evaluated(_AXE))
            tab.picture(into / f"{name}-{theme}-{width}.png")
            yield from _said(tab, where)


def _said(tab: Tab, where: str) -> Iterator[str]:
    yield from (f"{where}: the console says {each}" for each in tab.wrong)
    tab.wrong.clear()


def main() -> int:
    """Whether nothing is wrong."""
    parser = argparse.ArgumentParser(description="Look at the page of a DAG's rollups in a browser.")
    parser.add_argument("address", help="of Airflow, whose users are all admins, as make ui has them")
    parser.add_argument("--dag", default="stairwise_demo", help="which DAG (default: that of the demo)")
    parser.add_argument("--axe", type=Path, help="axe.min.js; without it, rules of accessibility are not looked at")
    parser.add_argument("--into", type=Path, default=Path("target/look"), help="where pictures go")
    given = parser.parse_args(namespace=_Given())
    given.into.mkdir(parents=True, exist_ok=True)
    axe = given.axe.read_text(encoding="utf-8") if given.axe else ""
    with browser() as tab:
        wrong = [*looked(tab, given.address, given.dag, axe, given.into)]
    print("\n".join([*wrong, f"{len(wrong)} findings; pictures in {given.into}"]))  # noqa: T201
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
