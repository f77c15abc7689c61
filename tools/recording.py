"""Records docs/recording.svg, a first session in a terminal with its real output: `make recording`."""

import os
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from html import escape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TARGET = Path(__file__).resolve().parents[1] / "docs" / "recording.svg"
WIDTH, LINE, LETTER, SECONDS = 100, 19, 8.4, 20
PEOPLE = """@prefix foaf: <http://xmlns.com/foaf/0.1/> .
<#ada> a foaf:Person ; foaf:name "Ada" ; foaf:knows <grace.ttl#grace> .
"""
GRACE = """@prefix foaf: <http://xmlns.com/foaf/0.1/> .
<#grace> a foaf:Person ; foaf:name "Grace" .
"""
NAMES = "SELECT ?name WHERE { ?person <http://xmlns.com/foaf/0.1/name> ?name }"


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder without a log."""

    def log_message(self, *args: object) -> None:
        """Write nothing."""


def main() -> None:
    """Run the session against a small web on loopback, and draw it."""
    with tempfile.TemporaryDirectory() as folder:
        web = Path(folder, "web")
        web.mkdir()
        (web / "ada.ttl").write_text(PEOPLE)
        (web / "grace.ttl").write_text(GRACE)
        prices = web / "prices.csv"
        prices.write_text("id,product,price\n1,apples,2.10\n2,pears,2.90\n")
        server = ThreadingHTTPServer(("127.0.0.1", 8000), partial(Quiet, directory=web))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        os.environ.update(
            TAMIAS_PERMIT__ALLOW_PRIVATE="true",
            TAMIAS_FETCH__DELAY="0",
            TAMIAS_FETCH__CONTACT="https://example.org/about-my-crawler",
            COLUMNS=str(WIDTH),
        )
        began, lines = time.monotonic(), []
        for words, before in (
            (["crawl", "http://127.0.0.1:8000/ada.ttl", "--scope", "host"], None),
            (["query", NAMES], None),
            (["add", "http://127.0.0.1:8000/prices.csv"], None),
            (["crawl", "--recrawl"], None),
            (["crawl", "--recrawl", "http://127.0.0.1:8000/prices.csv"], partial(raise_a_price, prices)),
            (["diff", "http://127.0.0.1:8000/prices.csv"], None),
        ):
            if before:
                before()
            lines += record(words, folder, began)
        server.shutdown()
    TARGET.write_text(drawn(lines), encoding="utf-8")


def raise_a_price(prices: Path) -> None:
    """Write the second version of the file: one row changed, one added."""
    prices.write_text("id,product,price\n1,apples,2.10\n2,pears,3.20\n3,plums,4.00\n")


def record(words: list[str], folder: str, began: float) -> list[tuple[float, str]]:
    """Run one command; return its lines with the seconds at which they appeared."""
    shown = " ".join(f"'{word}'" if " " in word else word for word in words)
    lines = [(time.monotonic() - began, f"$ tamias {shown}")]
    command = [str(Path(sys.executable).with_name("tamias")), *words]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        # The line of progress is written again and again in a terminal.
        output = (line.rstrip("\n") for line in running.stdout if not line.startswith("done "))
        lines += [(time.monotonic() - began, line) for line in output]
    if running.returncode:
        sys.exit(f"{shown}: exit {running.returncode}: {lines}")
    return lines


def drawn(lines: list[tuple[float, str]]) -> str:
    """Return a picture in which each line appears when it did, in 20 seconds in all, again and again."""
    whole = lines[-1][0] * 1.25
    texts, rules = [], []
    for number, (at, line) in enumerate(lines):
        share = 100 * at / whole
        rules.append(
            f"@keyframes l{number}{{0%,{share:.2f}%{{opacity:0}}{share + 0.01:.2f}%,100%{{opacity:1}}}}"
        )
        kind = " class='c'" if line.startswith("$ ") else ""
        style = f"animation:l{number} {SECONDS}s infinite"
        texts.append(
            f"<text x='14' y='{LINE * (number + 1) + 8}'{kind} style='{style}' xml:space='preserve'>"
            f"{escape(line[:WIDTH])}</text>"
        )
    width, height = int(WIDTH * LETTER) + 28, LINE * (len(lines) + 1) + 12
    still = "@media (prefers-reduced-motion:reduce){text{animation:none!important}}"
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' role='img'"
        f" aria-label='A first session with Tamias in a terminal'>\n"
        f"<style>text{{font:14px ui-monospace,monospace;fill:#dde}}.c{{fill:#8fd18f;font-weight:bold}}"
        f"{''.join(rules)}{still}</style>\n"
        f"<rect width='100%' height='100%' rx='8' fill='#16181d'/>\n" + "\n".join(texts) + "\n</svg>\n"
    )


if __name__ == "__main__":
    main()
