"""The routes of files, over each person's shelf. Knows no reply."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Literal

from anyio import CapacityLimiter, to_thread
from fastapi import Query
from starlette.requests import Request
from starlette.responses import Response

from chatbot.api.bodies import Incoming
from chatbot.api.errors import ApiError, bad
from chatbot.api.files import Shelf
from chatbot.api.gate import Gate, json_answer
from chatbot.api.schema import FileDeleted, FileList, FileObject
from chatbot.api.waiting import WaitingFiles
from chatbot.errors import ChatbotError
from chatbot.persons import Persons

log = logging.getLogger(__name__)

READERS = 2
"""Files that are read at a time; each is parsed in a process of its own."""


class FileRoutes:
    """Owns the shelves of all persons and the threads that read their files."""

    def __init__(
        self,
        persons: Persons,
        gate: Gate,
        *,
        incoming: Path,
        max_bytes: int,
        limiter: CapacityLimiter,
    ) -> None:
        """`incoming` is the folder of files that are not read yet, of `max_bytes` each; `limiter`
        bounds the threads in which shelves are asked. What an ended program left is read."""
        self._persons = persons
        self._gate = gate
        self._waiting = WaitingFiles(incoming)
        self._incoming = Incoming(self._waiting, max_bytes)
        self._limiter = limiter
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="api-file")
        self._lock = threading.Lock()
        self._shelves: dict[str, Shelf] = {}
        for user in self._waiting.users_left:
            self._readers.submit(self._resume, user)

    def shelf(self, user: str) -> Shelf:
        """The files of a person."""
        services = self._persons.of(user)
        with self._lock:
            if user not in self._shelves:
                shelf = Shelf(services.library, services.store, self._readers, self._waiting)
                for file in self._waiting.take_left(user):
                    shelf.add(file)
                self._shelves[user] = shelf
            return self._shelves[user]

    def close(self) -> None:
        """Give up what is not read yet. Idempotent."""
        for shelf in list(self._shelves.values()):
            shelf.close()
        self._readers.shutdown(wait=True, cancel_futures=True)
        self._waiting.close()

    async def upload(self, request: Request) -> Response:
        """Take a file and read it in the background; ask for its status until it is processed."""
        with self._gate.request(request) as key:
            shelf = await to_thread.run_sync(self.shelf, key.user, limiter=self._limiter)
            if shelf.is_full:
                sentence = "Too many files wait to be read; wait for some of them."
                raise ApiError.too_many(sentence, "rate_limit_exceeded", 5.0)
            sent = await self._incoming.receive(request, key.user)
            info = await to_thread.run_sync(shelf.add, sent, limiter=self._limiter)
            return json_answer(FileObject.of(info))

    async def files(
        self,
        request: Request,
        limit: Annotated[int, Query(ge=1, le=10_000)] = 10_000,
        order: Literal["asc", "desc"] = "desc",
        after: str | None = None,
        purpose: str | None = None,
    ) -> Response:
        """The files of the key's person, those of the page among them."""
        with self._gate.request(request) as key:
            shelf = await to_thread.run_sync(self.shelf, key.user, limiter=self._limiter)
            found = await to_thread.run_sync(shelf.all, limiter=self._limiter)
        if order == "desc":
            found = found[::-1]
        if after is not None:
            ids = [info.id for info in found]
            if after not in ids:
                raise bad(f"There is no file {after[:100]!r} to go on after.", "after")
            found = found[ids.index(after) + 1 :]
        if purpose not in (None, "user_data", "assistants"):
            found = []
        page = [FileObject.of(info) for info in found[:limit]]
        return json_answer(
            FileList(
                data=page,
                has_more=len(found) > limit,
                first_id=page[0].id if page else None,
                last_id=page[-1].id if page else None,
            )
        )

    async def file(self, request: Request, file_id: str) -> Response:
        """One file, with its status."""
        with self._gate.request(request) as key:
            shelf = await to_thread.run_sync(self.shelf, key.user, limiter=self._limiter)
            info = await to_thread.run_sync(shelf.get, file_id, limiter=self._limiter)
            return json_answer(FileObject.of(info))

    async def delete_file(self, request: Request, file_id: str) -> Response:
        """Remove a file from the library and from all conversations."""
        with self._gate.request(request) as key:
            shelf = await to_thread.run_sync(self.shelf, key.user, limiter=self._limiter)
            await to_thread.run_sync(shelf.delete, file_id, limiter=self._limiter)
            return json_answer(FileDeleted(id=file_id))

    def _resume(self, user: str) -> None:
        """Go on with the files of a person; where that cannot be, they are when they come."""
        try:
            self.shelf(user)
        except ChatbotError as error:
            log.info("Files that wait cannot be read yet: %s", error)
