"""What block lists kept out, for Prometheus."""

from tamias.features.service.http.health import _lines, blocked_counter
from tamias.filters.blocked import Blocked


def test_each_list_is_a_label():
    lines = list(_lines(blocked_counter([Blocked('my "list"', 3, 0), Blocked("other", 1, 0)])))
    assert lines[-2:] == [
        'tamias_blocked_total{list="my \\"list\\""} 3',
        'tamias_blocked_total{list="other"} 1',
    ]
