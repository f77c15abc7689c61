"""Where Tamias's processor time goes, step by step, and what was done about the largest costs. Pure."""

from collections.abc import Iterator

from benchmarks.dataweb.report.blocks import Block, Points, TableBlock, TextBlock
from benchmarks.dataweb.trial import TrialOutcome
from benchmarks.measuring.budget import DATABASE

NAMED = 3
REST = "start, end and the rest"
MEANINGS = {
    "fetch and loop": "requests and answers, the event loop, robots rules, the record of each fetch",
    "analyse": "what a document is, its statements, its links, all written as N-Quads",
    "admit": "links resolved and filtered, those known already left out",
    "put": "new URLs sent to the frontier",
    "lease": "hosts and their best URLs lent by the frontier",
    "finish": "outcomes and records of fetches sent to the database",
    "sync": "segments of quads made durable",
    "score": "scores of links by a strategy",
    "database": "PostgreSQL, all its processes",
    REST: "the supervisor, start and end of all processes, what no step claims",
}
DONE = {
    "fetch and loop": "libcurl does the protocol, its sockets in one epoll that uvloop watches, which costs "
    "a third less than a callback for each socket; handles and connections are used again; a process for "
    "each core, and no change of threads until the commit",
    "analyse": "one native parse and one native write for each document, names of graphs and blank nodes "
    "changed in the text; for small documents 150 µs became 92 by asking the parser once instead of eight "
    "times and by working out the names of blank nodes and sites only where there are any",
    "database": "links known to a worker never reach it; URLs are put in batches sent as binary arrays; all "
    "that became true of many visits is one transaction",
    "admit": "one native call for each link, a memory of known links before all filters",
    "put": "binary columns instead of rows, statements prepared once",
    "finish": "binary columns instead of rows, hundreds of visits in one transaction",
    "lease": "up to a hundred hosts with ten URLs each are lent at once, and more asked for only when all of "
    "them came, or hosts were given back: 29 % fewer calls",
    "sync": "one sync for all documents of a commit",
    REST: "parts are imported only where they are used",
}


def spent(outcome: TrialOutcome) -> dict[str, float]:
    """Processor seconds by step, the largest first; all that the whole tree used."""
    claimed = {**outcome.steps, "database": outcome.measured.cpu_by_name.get(DATABASE, 0.0)}
    claimed[REST] = max(0.0, outcome.measured.cpu_seconds - sum(claimed.values()))
    return dict(sorted(claimed.items(), key=lambda pair: -pair[1]))


def profile(outcome: TrialOutcome) -> Iterator[Block]:
    """The table of steps, if Tamias was asked for it."""
    if not outcome.steps:
        return
    steps, count = spent(outcome), max(1, outcome.account.resources)
    whole = sum(steps.values()) or 1.0
    yield TextBlock("Where Tamias's processor time went (`--profile`):")
    rows = [(step, MEANINGS.get(step, ""), f"{used:.2f}", f"{1000 * used / count:.3f}", f"{used / whole:.0%}")
            for step, used in steps.items()]  # fmt: skip
    yield TableBlock([("step", "what it is", "CPU s", "ms/resource", "share"), *rows])


def largest(outcome: TrialOutcome) -> Iterator[Block]:
    """The three largest costs, and what was done about them."""
    if not outcome.steps:
        return
    steps, whole = spent(outcome), outcome.measured.cpu_seconds or 1.0
    yield TextBlock("The largest costs, and what was done about them:")
    named = [step for step in steps if step != REST][:NAMED]
    yield Points(
        [f"**{step}** ({steps[step] / whole:.0%}): {DONE.get(step, 'nothing yet')}." for step in named]
    )
