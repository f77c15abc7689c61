"""The description of the API, made from the table of its endpoints."""

from collections.abc import Sequence
from typing import Any

import msgspec

from tamias import __version__
from tamias.features.service.http.endpoints import Endpoint, Parameter, ResponseSpec
from tamias.features.service.http.problems import MEDIA_TYPE, ProblemDocument

_REFERENCES = "#/components/schemas/{name}"


def describe_api(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """An OpenAPI 3.1 document."""
    schemas, components = msgspec.json.schema_components(_forms(endpoints), ref_template=_REFERENCES)
    known = dict(zip((str(form) for form in _forms(endpoints)), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        spec = _operation(endpoint, known)
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = spec
        if endpoint.method == "GET":
            head = {"operationId": f"head{spec['operationId'][3:]}", "responses": _bare(spec["responses"])}
            paths[endpoint.path]["head"] = {**spec, **head}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tamias",
            "version": __version__,
            "summary": "An archive of the Web of Data: every version of every watched resource.",
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": _SECURITY},
    }


_SECURITY = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "secret": {"type": "apiKey", "in": "query", "name": "secret"},
}


def _forms(endpoints: Sequence[Endpoint]) -> list[Any]:
    """Return each type that an endpoint takes or gives, once."""
    given = [answer.form for each in endpoints for answer in each.answers.values() if answer.form is not None]
    taken = [each.body for each in endpoints if each.body is not None]
    return list({str(form): form for form in [ProblemDocument, *given, *taken]}.values())


def _operation(endpoint: Endpoint, known: dict[str, Any]) -> dict[str, Any]:
    problem = {
        "description": "What went wrong",
        "content": {MEDIA_TYPE: {"schema": known[str(ProblemDocument)]}},
    }
    operation: dict[str, Any] = {
        "operationId": f"{endpoint.method.lower()} {endpoint.path}",
        "summary": endpoint.about,
        "parameters": [_parameter(each) for each in endpoint.parameters],
        "responses": {
            **{str(status): _response(answer, known) for status, answer in endpoint.answers.items()},
            "default": problem,
        },
    }
    if endpoint.body is not None:
        content = {"application/json": {"schema": known[str(endpoint.body)]}}
        operation["requestBody"] = {"required": True, "content": content}
    if endpoint.secret:
        operation["security"] = [{"bearer": [endpoint.scope]}, {"secret": []}]
    return operation


def _bare(responses: dict[str, Any]) -> dict[str, Any]:
    return {status: {"description": response["description"]} for status, response in responses.items()}


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": parameter.where,
        "required": parameter.required,
        "description": parameter.about,
        "schema": parameter.schema,
    }


def _response(answer: ResponseSpec, known: dict[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {"description": answer.about}
    content: dict[str, Any] = {}
    if answer.form is not None:
        content["application/json"] = {"schema": known[str(answer.form)]}
    content |= {media_type: {} for media_type in answer.media_types}
    return {**described, "content": content} if content else described
