"""The cluster's API as a pod finds it, by Python's own library: the official client takes a second to load."""

from __future__ import annotations

import email.utils
import http.client
import json
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from errors import RefusedError, SilentError, UserError

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
ACCOUNT_VARIABLE = "PERFCAST_SERVICE_ACCOUNT"
"""Names another folder with a token, ca.crt and namespace."""
_PASSING = {429, 500, 502, 503, 504}


class Api:
    """One namespace of the cluster that this pod is in; `now` is the cluster's time at its last answer."""

    def __init__(self, environment: Mapping[str, str], *, tries: int, timeout: float = 10) -> None:
        folder = Path(environment.get(ACCOUNT_VARIABLE, ACCOUNT))
        self._tries, self._timeout = tries, timeout
        self._connection: http.client.HTTPSConnection | None = None
        self._token = folder / "token"
        self.now = time.time()
        try:
            self._host = environment["KUBERNETES_SERVICE_HOST"]
            self._port = int(environment["KUBERNETES_SERVICE_PORT"])
            self.namespace = (folder / "namespace").read_text().strip()
            self._trust = ssl.create_default_context(cafile=str(folder / "ca.crt"))
            self._token.read_bytes()
        except (KeyError, ValueError, OSError) as error:
            fact = f"{error.args[0]} is not set" if isinstance(error, KeyError) else str(error)
            raise UserError(
                "the profile kubernetes must be used in a pod with a service account", fact,
                "start it by kubectl apply -f workflow/kubernetes/jobs.yaml",
            )  # fmt: skip

    def jobs(self, name: str = "") -> str:
        """Return the address of a job, or of all."""
        return f"/apis/batch/v1/namespaces/{quote(self.namespace)}/jobs" + (f"/{quote(name, safe='')}" if name else "")

    def pods(self, name: str = "") -> str:
        """Return the address of a pod, or of all."""
        return f"/api/v1/namespaces/{quote(self.namespace)}/pods" + (f"/{quote(name, safe='')}" if name else "")

    def ask(self, method: str, path: str, body: Any = None, **query: str) -> dict[str, Any]:
        """Ask until there is an answer. Raises: RefusedError; SilentError after the last try."""
        wait, said = 1.0, ""
        for last in [False] * (self._tries - 1) + [True]:
            try:
                return self._ask(method, path + (f"?{urlencode(query)}" if query else ""), body)
            except RefusedError as refused:
                if refused.status not in _PASSING:
                    raise
                said = f"{refused.status} {refused}"
            except (OSError, http.client.HTTPException, ValueError) as error:
                said = f"{type(error).__name__}: {error}"
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            if not last:
                time.sleep(wait)
                wait *= 2
        raise SilentError(said)

    def _ask(self, method: str, path: str, body: Any) -> dict[str, Any]:
        if self._connection is None:
            self._connection = http.client.HTTPSConnection(
                self._host, self._port, timeout=self._timeout, context=self._trust
            )
        # the token is another one every hour
        headers = {"Authorization": f"Bearer {self._token.read_text().strip()}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = self._connection.getresponse()
        given = answer.read()
        told = email.utils.parsedate_tz(answer.getheader("Date") or "")
        self.now = email.utils.mktime_tz(told) if told else time.time()
        if answer.status >= 300:
            raise RefusedError(answer.status, _message(given) or answer.reason)
        read = json.loads(given)
        if not isinstance(read, dict):
            raise ValueError("an answer that is no object")
        return read


def _message(given: bytes) -> str:
    """Return what an answer says, or its beginning where it is none of the API's."""
    try:
        return str(json.loads(given)["message"])
    except (ValueError, TypeError, KeyError):
        return given[:200].decode(errors="replace")
