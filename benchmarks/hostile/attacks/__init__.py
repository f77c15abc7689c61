"""The attacks H1 to H29, by what they aim at."""

from benchmarks.hostile.attack import Attack
from benchmarks.hostile.attacks import (
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
