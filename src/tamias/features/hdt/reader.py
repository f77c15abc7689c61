"""Reads an HDT file: its terms as strings, its triples in batches of their numbers."""

from collections.abc import Iterator
from itertools import pairwise

import msgspec
import numpy as np

from tamias.features.hdt.layout import (
    BITMAP_TRIPLES,
    BY_SUBJECT,
    DICTIONARY,
    FOUR_SECTIONS,
    GLOBAL,
    HEADER,
    TRIPLES,
    VERSION_1,
    Numbers,
)
from tamias.features.hdt.parts import Bitmap, Control, Cursor, HdtError, LogArray, Strings


class Terms(msgspec.Struct, frozen=True):
    """The terms of one position, by their numbers from 1: first those it shares with another."""

    shared: Strings
    own: Strings

    @property
    def count(self) -> int:
        """Return the number of terms."""
        return self.shared.count + self.own.count

    def strings(self, numbers: Numbers) -> list[bytes]:
        """The terms of these numbers, which must ascend."""
        first = int(np.searchsorted(numbers, self.shared.count, side="right"))
        return [
            *_slices(self.shared, numbers[:first]),
            *_slices(self.own, numbers[first:] - self.shared.count),
        ]


class Triples(msgspec.Struct, frozen=True):
    """The numbers of subject, predicate and object of some triples, in order."""

    subjects: Numbers
    predicates: Numbers
    objects: Numbers


class Hdt:
    """An open file. Raises `HdtError` where it is damaged, `HdtTooLarge` for `most` bytes of terms."""

    def __init__(self, data: bytes, most: int) -> None:
        cursor = Cursor(data)
        _expect(cursor.control(GLOBAL), VERSION_1)
        cursor.take(_length(cursor.control(HEADER)))
        _expect(cursor.control(DICTIONARY), FOUR_SECTIONS)
        sections: list[Strings] = []
        for _ in range(4):
            sections.append(cursor.strings(most))
            most -= len(sections[-1].text)
        shared, subjects, predicates, objects = sections
        self.subjects = Terms(shared, subjects)
        self.predicates = Terms(_NONE, predicates)
        self.objects = Terms(shared, objects)
        self._read_triples(cursor)

    def _read_triples(self, cursor: Cursor) -> None:
        control = cursor.control(TRIPLES)
        _expect(control, BITMAP_TRIPLES)
        if control.properties.get("order", BY_SUBJECT) != BY_SUBJECT:
            raise HdtError(f"triples in order {control.properties['order']}, of which only 1 is read")
        self._last_pairs, self._last_objects = cursor.bitmap(), cursor.bitmap()
        self._predicates, self._objects = cursor.log_array(), cursor.log_array()
        _expect_fit(self._last_pairs, self._predicates)
        _expect_fit(self._last_objects, self._objects)

    @property
    def count(self) -> int:
        """Return the number of triples."""
        return self._objects.count

    def batches(self, size: int) -> Iterator[Triples]:
        """Yield all triples in order, `size` at a time."""
        pair, subject = 0, 1
        for start, stop in pairwise([*range(0, self.count, size), self.count]):
            ends = self._last_objects.bits(start, stop)
            pairs = np.cumsum(ends) - ends
            pair_stop = min(pair + int(pairs[-1]) + 1, self._predicates.count)
            pair_ends = self._last_pairs.bits(pair, pair_stop)
            subjects = subject + np.cumsum(pair_ends) - pair_ends
            predicates = self._predicates.numbers(pair, pair_stop)
            if len(predicates) <= int(pairs[-1]):
                raise HdtError(f"triple {stop} belongs to a predicate that is not there")
            triples = Triples(subjects[pairs], predicates[pairs], self._objects.numbers(start, stop))
            _expect_known(triples.subjects, self.subjects, "subject")
            _expect_known(triples.predicates, self.predicates, "predicate")
            _expect_known(triples.objects, self.objects, "object")
            yield triples
            done = int(ends.sum())
            subject += int(pair_ends[:done].sum())
            pair += done


_NONE = Strings(b"", np.zeros(1, dtype=np.int64))


def _slices(strings: Strings, numbers: Numbers) -> list[bytes]:
    text = strings.text
    starts, ends = strings.ends[numbers - 1].tolist(), strings.ends[numbers].tolist()
    return [text[start:end] for start, end in zip(starts, ends, strict=True)]


def _length(control: Control) -> int:
    try:
        return max(0, int(control.properties.get("length", "")))
    except ValueError:
        raise HdtError("header without a length") from None


def _expect(control: Control, form: str) -> None:
    if control.form != form:
        raise HdtError(f"{control.form[:200]} is not read, only {form}")


def _expect_fit(bits: Bitmap, numbers: LogArray) -> None:
    if bits.count != numbers.count:
        raise HdtError(f"{numbers.count} numbers for {bits.count} bits")


def _expect_known(numbers: Numbers, terms: Terms, word: str) -> None:
    if int(numbers.min(initial=1)) < 1 or int(numbers.max(initial=1)) > terms.count:
        raise HdtError(f"{word} {int(numbers.max())} of {terms.count}")
