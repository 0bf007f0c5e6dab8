"""AWS Glue's schema registry, as far as its API is documented: JSON 1.1 with signed requests.

https://docs.aws.amazon.com/glue/latest/webapi/API_GetSchemaVersion.html
"""

from __future__ import annotations

import json
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID

from streamer.testing.embedded import HOST
from tests.support.registries import Threaded

REGION = "eu-west-1"
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": "/nowhere",
    "AWS_SHARED_CREDENTIALS_FILE": "/nowhere",
}
_TARGET = "AWSGlue.GetSchemaVersion"


def glue_wire(version: UUID, payload: bytes, *, is_compressed: bool = False) -> bytes:
    """A value as AWS Glue's serializers write it."""
    head = bytes([3, 5 if is_compressed else 0]) + version.bytes
    return head + (zlib.compress(payload) if is_compressed else payload)


class PlainGlue(Threaded):
    """Keeps versions of schemas in memory. ``errors``: status, code and message of the next
    answers, whatever they are asked for; ``asked``: the versions that were."""

    def __init__(self) -> None:
        self.versions: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.signed: list[str] = []
        self.errors: list[tuple[int, str, str]] = []
        glue = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                assert self.headers["X-Amz-Target"] == _TARGET
                glue.signed.append(self.headers.get("Authorization", ""))
                status, document = glue.answer(body["SchemaVersionId"])
                text = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/x-amz-json-1.1")
                self.send_header("x-amzn-RequestId", "11111111-2222-3333-4444-555555555555")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer((HOST, 0), Handler)
        self.environment = {
            **ENVIRONMENT,
            "AWS_ENDPOINT_URL_GLUE": f"http://{HOST}:{self.server.server_port}",
        }

    def register(self, text: str, data_format: str) -> UUID:
        """The version of a schema that it is given."""
        version = UUID(int=(0xB7B4A7F0 << 96) + len(self.versions) + 1)
        self.versions[str(version)] = {
            "SchemaVersionId": str(version),
            "SchemaDefinition": text,
            "DataFormat": data_format,
            "SchemaArn": f"arn:aws:glue:{REGION}:123456789012:schema/shop/web",
            "VersionNumber": len(self.versions) + 1,
            "Status": "AVAILABLE",
            "CreatedTime": "2026-09-21T14:15:00Z",
        }
        return version

    def answer(self, version: str) -> tuple[int, dict[str, Any]]:
        self.asked.append(version)
        if self.errors:
            status, code, message = self.errors.pop(0)
            return status, {"__type": code, "Message": message}
        if found := self.versions.get(version):
            return 200, found
        message = f"Schema version is not found. SchemaVersionId: {version}"
        return 400, {"__type": "EntityNotFoundException", "Message": message}
