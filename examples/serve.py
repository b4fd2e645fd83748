"""A model as a web service, on Python's own server: ``python serve.py MODEL [PORT]``.

POST {"rows": [{"column": value, …}, …]} to /predict; the answer is {"predictions": […]}, or {"error": "…"}.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import spinney

MOST_BYTES = 1_000_000


def answer(model: Any, body: bytes) -> tuple[int, dict[str, Any]]:
    """Predict the rows of a request."""
    try:
        rows = json.loads(body)["rows"]
        found = [model.predict_one(row) for row in rows]
    except (KeyError, TypeError, ValueError) as error:
        return 400, {"error": str(error)}
    return 200, {"predictions": [value.tolist() if hasattr(value, "tolist") else value for value in found]}


def handler_of(model: Any) -> type[BaseHTTPRequestHandler]:
    """Create the request handler of a model."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # connections stay open
        wbufsize = -1  # header and body of an answer are sent together
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            if self.path != "/predict" or not 0 < length <= MOST_BYTES:
                self.close_connection = True  # the body is not read, and would be taken for the next request
                self.send_json(404, {"error": "POST rows to /predict."})
                return
            self.send_json(*answer(model, self.rfile.read(length)))

        def send_json(self, status: int, content: dict[str, Any]) -> None:
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Do not log requests."""

    return Handler


def main() -> None:
    """Serve a model file."""
    model = spinney.load_predictor(sys.argv[1])
    port = int(sys.argv[2]) if len(sys.argv) > 2 else 8000
    with ThreadingHTTPServer(("127.0.0.1", port), handler_of(model)) as server:
        print(f"http://127.0.0.1:{server.server_address[1]}/predict", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
