"""The directory of the key that signs requests, where verifiers look for it."""

from starlette.requests import Request
from starlette.responses import Response

from tamias.features.service.http.endpoints import EndpointTable, ResponseSpec
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.service import Service
from tamias.features.signatures.keys import DIRECTORY_PATH, DIRECTORY_TYPE, read_key
from tamias.features.signatures.settings import SignaturesSettings
from tamias.features.signatures.signer import DIRECTORY_TAG, signature_headers

ENDPOINTS = EndpointTable()


@ENDPOINTS.get(
    DIRECTORY_PATH, ResponseSpec("The public key, as a JSON Web Key Set", media_types=(DIRECTORY_TYPE,))
)
async def key_directory(request: Request, service: Service) -> Response:
    """The key that signs the requests of this crawler."""
    own = service.settings.of_feature("signatures", SignaturesSettings)
    if not own.key:
        raise HttpProblem(404, "requests are not signed; 'tamias key make' makes a key")
    key = read_key(own.key)
    authority = (request.headers.get("host") or "").lower()
    headers = signature_headers(key, {'"@authority";req': authority}, DIRECTORY_TAG)
    return Response(key.directory(), media_type=DIRECTORY_TYPE, headers=headers)
