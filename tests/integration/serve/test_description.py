"""The OpenAPI document: a fuzzer that believes it finds no server error and no answer but those described."""

import os
from contextlib import nullcontext, suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable

from tamias.features.service.app import all_endpoints

SECRET = "open sesame"
EXAMPLES, HEADS = (12, 3) if os.environ.get("TAMIAS_NIGHTLY") else (3, 1)
NOT_FUZZED = {"/api/v1/events"}
"""A stream that never ends."""
FUZZED = [(each.method, each.path) for each in all_endpoints() if each.path not in NOT_FUZZED]


def test_the_description_is_served_and_names_every_route(client):
    told = client.get("/openapi.json").json()
    assert told["openapi"].startswith("3.1")
    assert {
        "/api/v1/stats/basic", "/api/v1/get/dataset/{URL}", "/api/v1/get/datasets/{domain}",
        "/api/v1/get/dataset/type/{TYPE}", "/api/v1/get/file/{URL}", "/api/v1/get/file/id/{ID}",
        "/api/v1/get/files/type/{TYPE}", "/api/v1/post/resource", "/api/v1/post/resources", "/api/v1/crawl",
        "/api/v1/resources", "/api/v1/versions", "/api/v1/changes", "/api/v1/hosts", "/timegate/{URL}",
        "/timemap/{form}/{URL}", "/memento/{time}/{URL}", "/cdx", "/metrics", "/healthz",
    } <= set(told["paths"])  # fmt: skip


@pytest.fixture(scope="module")
def described(served):
    import schemathesis  # takes seconds to load, so not while tests are collected

    schema = schemathesis.openapi.from_url(f"{served.address}/openapi.json")
    return {(each.ok().method.upper(), each.ok().path): each.ok() for each in schema.get_all_operations()}


def test_everything_that_is_described_is_fuzzed(described):
    heads = {("HEAD", path) for method, path in FUZZED if method == "GET"}
    assert {each for each in described if each[1] not in NOT_FUZZED} == {*FUZZED, *heads}


@pytest.mark.parametrize("mode", ["positive", "negative"], ids=["fit", "unfit"])
@pytest.mark.parametrize(("method", "path"), FUZZED)
def test_a_fuzzer_finds_no_fault(described, method, path, mode):
    fuzz = fuzzing(described[method, path], mode, EXAMPLES)
    # Some routes take every text: nothing is unfit for them.
    with suppress(Unsatisfiable) if mode == "negative" else nullcontext():
        fuzz()


@pytest.mark.parametrize("path", [path for method, path in FUZZED if method == "GET"])
def test_a_fuzzer_that_asks_for_heads_finds_no_fault(described, path):
    fuzzing(described["HEAD", path], "positive", HEADS)()


def fuzzing(operation, mode, examples):
    """Calls an operation so many times, and checks the answers."""
    from schemathesis import GenerationMode
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    checked = [
        not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    ]

    @given(case=operation.as_strategy(generation_mode=GenerationMode(mode)))
    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    def fuzz(case):
        case.call_and_validate(headers={"Authorization": f"Bearer {SECRET}"}, checks=checked)

    return fuzz
