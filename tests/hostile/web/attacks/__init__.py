"""The attacks H1 to H29, by what they aim at."""

from tests.hostile.web.attack import Attack
from tests.hostile.web.attacks import (
    addresses,
    amplifier,
    markup,
    meanings,
    packed,
    service,
    texts,
    traps,
    wires,
)

ATTACKS: tuple[Attack, ...] = (
    *addresses.ATTACKS,
    *packed.ATTACKS,
    *markup.ATTACKS,
    *wires.ATTACKS,
    *traps.ATTACKS,
    *meanings.ATTACKS,
    *texts.ATTACKS,
    *service.ATTACKS,
    *amplifier.ATTACKS,
)
