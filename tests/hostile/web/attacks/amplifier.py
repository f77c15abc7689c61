"""H29: many hosts that make the crawler ask one victim, all at once."""

from tests.hostile.web.attack import Attack, AttackEvidence, every, read
from tests.hostile.web.wire import redirect, whole

HOSTS = 30
VICTIM = "amplified.test"
_LEAST_SECONDS = 0.05 * (HOSTS - 1)
"""For all of them: half of what the delay takes, since a busy server notes late that it was asked."""


def _host(number: int) -> str:
    return f"amplifying{number}.test"


def one_by_one(evidence: AttackEvidence) -> str | None:
    """The victim was asked for each file once, in its own turn."""
    asked = sorted((each for each in evidence.log if each.host == VICTIM), key=lambda each: each.at)
    wanted = {f"/rules?{number}" for number in range(HOSTS)}
    if {each.target for each in asked} - {"/robots.txt"} != wanted:
        return f"{VICTIM} was asked for {len(asked)} files, not for {HOSTS}"
    seconds = asked[-1].at - asked[0].at
    if len(asked) > HOSTS + 1 or seconds < _LEAST_SECONDS:
        return f"{VICTIM} was asked {len(asked)} times in {seconds:.2f} s"
    return None


ATTACKS = (
    Attack(
        number="H29",
        name="amplifier",
        what=f"{HOSTS} hosts whose robots.txt redirects to one victim",
        limit="the gate: a redirect into another queue is requested when that queue's turn comes",
        seeds=tuple(f"http://{_host(number)}/" for number in range(HOSTS)),
        more={
            VICTIM: {"/rules": whole("User-agent: *\nDisallow: /shut\n", "text/plain")},
            **{
                _host(number): {
                    "/robots.txt": redirect(f"http://{VICTIM}/rules?{number}"),
                    "/": whole('<> <#says> "page" .'),
                }
                for number in range(HOSTS)
            },
        },
        holds=every(one_by_one, *(read(f"http://{_host(number)}/") for number in range(HOSTS))),
    ),
)
