"""The service checks tables against their schemas, and the page of a dataset says what broke them."""

import json
import time

import httpx

from .conftest import Filled

PACKAGE = {"resources": [{"path": "a.csv", "schema": {"fields": [{"name": "date", "type": "date"}]}}]}


def test_the_page_of_a_dataset_says_which_version_broke_its_schema(tmp_path, starting):
    filled = Filled(tmp_path)
    filled.put(
        "http://a.example/datapackage.json", json.dumps(PACKAGE).encode(), media_type="application/json"
    )
    good, bad = b"date\n2026-05-01\n2026-05-02\n", b"date\n2026-05-01\nsoon\n"
    named = filled.put("http://a.example/a.csv", good, bad)
    filled.close()
    address = starting(filled.data).address
    wanted = "broke its schema on 2026-01-02: column date, row 3"
    until = time.monotonic() + 120
    while wanted not in (
        page := httpx.get(f"{address}/dataset/{named}", headers={"accept": "text/html"}).text
    ):
        assert time.monotonic() < until, page
        time.sleep(0.5)
    first, second = httpx.get(f"{address}/dataset/{named}.json").json()["versions"][::-1]
    assert "notes" not in first
    assert [each.startswith(wanted) for each in second["notes"]] == [True]
