"""Every way to change something needs a scope: a new route, form, call or tool without one fails here."""

import ast
import inspect

from tamias.features.mcp.tools import TOOLS
from tamias.features.pages.crawl.crawl import crawl_form
from tamias.features.pages.datasets.forms import dataset_form
from tamias.features.pages.routes import FORMS
from tamias.features.remote_workers.grpc import connection
from tamias.features.service.app import all_endpoints
from tamias.features.urlfrontier.server import CALL_SCOPES, NOTED_CALLS, SERVICES

READ_BY_POST = {"/sparql", "/mcp", "/oai"}
"""Queries are sent as bodies; none can change anything (SPARQL updates are refused, tools only read)."""
READING_TOOLS = {"search", "versions", "diff", "read", "sparql"}
OPEN_FORMS = {"/sign-in", "/sign-out"}
"""They change nothing that is stored."""


def test_every_writing_route_has_a_scope():
    writing = [each for each in all_endpoints() if each.method != "GET"]
    assert writing
    assert [each.path for each in writing if each.scope is None and each.path not in READ_BY_POST] == []


def test_every_route_that_says_it_checks_bounds_does():
    bounded = [each for each in all_endpoints() if each.bounded]
    assert bounded
    for each in bounded:
        module = inspect.getmodule(each.handle)
        assert "check_targets" in calls(module, each.handle.__name__), each.path


def test_every_form_checks_who_sends_it_and_what_they_may():
    for path, make in FORMS.items():
        found = calls(inspect.getmodule(make), make.__name__)
        for shared in (dataset_form, crawl_form):
            if shared.__name__ in found:
                found |= calls(inspect.getmodule(shared), shared.__name__)
        assert found & {"form_caller", "sent_form"} or path == "/sign-in", path
        assert "check_form" in found or path in OPEN_FORMS, path


def test_every_call_of_the_frontier_service_has_a_scope():
    methods = {
        f"/{service}/{name}"
        for service in SERVICES
        for name in connection.method_types(service.replace("v1alpha", "v1"))
    }
    assert methods == set(CALL_SCOPES)
    assert set(CALL_SCOPES) >= NOTED_CALLS


def test_every_tool_for_assistants_only_reads():
    assert set(TOOLS) == READING_TOOLS, "a tool that writes needs a scope"


def calls(module, name):
    """The names that a function of a module calls, and those that these call in turn."""
    tree = ast.parse(inspect.getsource(module))
    functions = {
        node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    found, todo = set(), [name]
    while todo:
        node = functions.get(todo.pop())
        if node is None:
            continue
        called = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        todo += [each for each in called - found if each in functions]
        found |= called
    return found
