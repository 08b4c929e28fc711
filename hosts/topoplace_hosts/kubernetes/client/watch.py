"""Follow all objects of one kind: list them, then watch, and resume after each cut."""

from __future__ import annotations

import http.client
import random
from collections.abc import Callable
from threading import Event, Thread
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from topoplace import _checks
from topoplace_hosts.kubernetes.client import api
from topoplace_hosts.kubernetes.client.access import Access
from topoplace_hosts.kubernetes.client.connection import ApiError, Connection, TooLargeError
from topoplace_hosts.kubernetes.client.decoding import decoded

Kind = Literal["pods", "nodes", "configmaps", "resourceslices", "deviceclasses", "resourceclaims"]
_CORE = ("pods", "nodes", "configmaps")
_PAGE = 500
_SERVER_S = 240
"""Seconds for which the server keeps a watch open."""
_SILENCE_S = 300.0
"""Seconds without data after which a watch counts as dead."""
_MOST_LINE = 8 << 20
_GONE = 410
_NOT_SERVED = (403, 404)
"""The server has no such kind, or we have no right to read it."""
_BACKOFF_S = (0.05, 0.1, 0.5, 1.0, 5.0, 10.0)


class News(NamedTuple):
    """An event about the objects of one kind."""

    kind: Kind
    type: str
    """How to read `value`. LISTED: the list of all objects. ADDED, MODIFIED, DELETED: the object. UNSERVED: why an
    optional kind has no objects. FAILED: the unreadable part of an answer; all objects are listed again."""
    value: Any


class Watcher:
    """A thread that passes on all events of one kind of objects in order, starting with a list.

    After a cut, the watch resumes at the last version seen. If the server no longer knows this version (410), or does
    not answer, all objects are listed again.
    """

    def __init__(
        self,
        access: Access,
        kind: Kind,
        tell: Callable[[News], None],
        *,
        namespace: str = "",
        labels: str = "",
    ) -> None:
        """tell: gets each event in the watcher's thread; may wait. namespace: "" for all. labels: a label selector."""
        self._connection = Connection(access, _SILENCE_S)
        self._kind: Kind = kind
        self._tell = tell
        within = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
        group = "/api/v1" if kind in _CORE else api.RESOURCE_API
        self._path = f"{group}{within}/{kind}"
        self._query = f"&labelSelector={quote(labels)}" if labels else ""
        self._stop = Event()
        self._thread = Thread(target=self._run, name=f"watch {kind}", daemon=True)
        self._version = ""
        self._limit = _PAGE
        self.num_lists = 0
        """The number of times that all objects were listed."""
        self.last_error = ""

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, and wait for it."""
        self._stop.set()
        self._connection.interrupt()
        self._thread.join(5.0)

    # ---- inside ----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        failures = 0
        while not self._stop.is_set():
            try:
                if not self._version:
                    self._list()
                if self._watch():
                    failures = 0
                else:
                    self._stop.wait(_BACKOFF_S[0])
                continue
            except ApiError as error:
                found = error
                if error.status in _NOT_SERVED and self._kind not in _CORE:
                    self._tell(News(self._kind, "UNSERVED", str(error)))
                if error.status == _GONE or (error.status and failures):
                    self._version = ""
            except Exception as error:  # a thread that ends without a word is worse than any of them
                found = ApiError(0, f"{type(error).__name__}: {_checks.shown(str(error), 200)}")
                self._version = ""
                self._tell(News(self._kind, "FAILED", str(found)))
            self.last_error = str(found)
            pause = max(found.retry_after_s, _BACKOFF_S[min(failures, len(_BACKOFF_S) - 1)])
            failures += 1
            self._stop.wait(pause * random.uniform(0.5, 1.0))
        self._connection.close()

    def _list(self) -> None:
        """Tell the list of all objects, and note its version."""
        found: list[Any] = []
        onward = ""
        while True:
            page = self._page(onward)
            found += page.get("items") or []
            metadata: dict[str, Any] = page.get("metadata") or {}
            if not metadata.get("continue"):
                break
            onward = f"&continue={quote(str(metadata['continue']))}"
        self.num_lists += 1
        self._tell(News(self._kind, "LISTED", found))
        self._version = str(metadata.get("resourceVersion", "0"))

    def _page(self, onward: str) -> dict[str, Any]:
        """Return the next objects of a list: fewer of them if they are so large that an answer cannot be read."""
        while True:
            try:
                path = f"{self._path}?limit={self._limit}{self._query}{onward}"
                page: dict[str, Any] = self._connection.call("GET", path)
            except TooLargeError:
                if self._limit == 1:
                    raise
                self._limit = max(1, self._limit // 4)
            else:
                return page

    def _watch(self) -> int:
        """Tell what happens after the version that was seen; return how many events came until the watch ended."""
        path = (
            f"{self._path}?watch=1&allowWatchBookmarks=true&timeoutSeconds={_SERVER_S}"
            f"&resourceVersion={quote(self._version)}{self._query}"
        )
        count = 0
        try:
            response = self._connection.open("GET", path)
            if response.status != 200:
                raise ApiError(response.status, f"watch {self._kind}: {response.reason}")
            while line := response.readline(_MOST_LINE):
                if len(line) == _MOST_LINE and not line.endswith(b"\n"):
                    raise ApiError(_GONE, f"watch {self._kind}: an event of more than {_MOST_LINE} bytes")
                if not line.endswith(b"\n"):
                    break  # cut within a line
                self._take(line)
                count += 1
        except (OSError, http.client.HTTPException) as error:
            raise ApiError(0, f"watch {self._kind}: {error!r}") from None
        finally:
            self._connection.close()
        return count

    def _take(self, line: bytes) -> None:
        """Tell one event, and note the version after it."""
        event = decoded(line)
        value, what = event["object"], event["type"]
        if what == "ERROR":
            raise ApiError(int(value.get("code") or 500), f"watch {self._kind}: {value.get('message')}")
        version = str(value["metadata"]["resourceVersion"])
        if what != "BOOKMARK":
            self._tell(News(self._kind, what, value))
        self._version = version
