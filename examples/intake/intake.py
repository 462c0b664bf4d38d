"""An intake: devices POST reports, and an inbox gets segments of them.

    python intake.py inbox/ --published work/published/trips-asked/

A report is on disk before it is answered with 204. Nothing is written but reports: no address, no time, no log. Reports that
arrive together are shuffled. The run that reads the inbox decides which of them count.
"""

import argparse
import asyncio
import contextlib
import fcntl
import json
import os
import random
import time
from collections.abc import AsyncIterator
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

MOST_BODY, PATIENCE, CONNECTIONS = (
    2**18,
    10.0,
    1_000,
)  # bytes of a request, its seconds, and how many there are at once
FIELDS = {"protocol", "round", "id", "report"}


class Inbox:
    """A folder of segments. Each is `.part` while it is written, and `.jsonl` from when it is closed."""

    def __init__(self, folder: Path, size: int, seconds: float) -> None:
        self.folder, self.size, self.seconds = folder, size, seconds
        self.waiting: asyncio.Queue[tuple[list[bytes], asyncio.Future[None]]] = asyncio.Queue()
        self.directory, self.segment, self.written, self.end = os.open(folder, os.O_DIRECTORY), -1, 0, 0.0
        fcntl.flock(
            self.directory, fcntl.LOCK_EX | fcntl.LOCK_NB
        )  # another intake that writes here is an error
        self.close()  # what an intake left that was killed: its last line may be torn, and was not acknowledged

    async def keep(self, lines: list[bytes]) -> None:
        """Return when these lines are on disk. Raises OSError where they are not."""
        kept: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        await self.waiting.put((lines, kept))
        await kept

    async def write(self) -> None:
        """Write what waits, group by group, until this is cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                left = None if self.segment < 0 else max(0.0, self.end - time.monotonic())
                group = [await asyncio.wait_for(self.waiting.get(), left)]
                while not self.waiting.empty():
                    group.append(self.waiting.get_nowait())
                fault = await asyncio.to_thread(self.append, [line for lines, _ in group for line in lines])
                for _, kept in group:
                    if not kept.done():  # who waited may have gone
                        kept.set_exception(fault) if fault else kept.set_result(None)
            if self.segment >= 0 and (self.written >= self.size or time.monotonic() >= self.end):
                self.close()

    def append(self, lines: list[bytes]) -> OSError | None:
        """Bring lines to the disk, in any order, and return what went wrong: then they may be there in part."""
        random.SystemRandom().shuffle(lines)
        content = b"\n" + b"".join(line + b"\n" for line in lines)  # whatever is torn before ends here
        try:
            if self.segment < 0:
                numbers = [int(path.stem) for path in self.folder.glob("*.jsonl") if path.stem.isdigit()]
                part = self.folder / f"{max(numbers, default=0) + 1:08}.part"
                self.segment = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
                self.written, self.end = 0, time.monotonic() + self.seconds
                os.fsync(self.directory)
            written = os.write(self.segment, content)
            self.written += written
            os.fsync(self.segment)
        except OSError as fault:
            return fault
        return None if written == len(content) else OSError("the disk is full")

    def close(self) -> None:
        """Close the segment that is written."""
        if self.segment >= 0:
            os.close(self.segment)
        for part in self.folder.glob("*.part"):
            part.rename(part.with_suffix(".jsonl"))
        self.segment = -1


def lines_of(body: bytes) -> list[bytes]:
    """The reports of a request. Raises ValueError where a line is none."""
    lines = [line for line in body.splitlines() if line]
    for line in lines:
        report = json.loads(line.decode())
        if not isinstance(report, dict) or not report.keys() >= FIELDS:
            raise ValueError
    if not lines:
        raise ValueError
    return lines


def intake(inbox: Inbox, published: Path | None) -> Starlette:
    """The server: POST /reports, and the folder that is published, if it is to be served here."""

    async def take(request: Request) -> Response:
        body = b""
        try:
            async with asyncio.timeout(PATIENCE):
                async for part in request.stream():
                    body += part
                    if len(body) > MOST_BODY:
                        return Response(status_code=413)
            await inbox.keep(lines_of(body))
        except (TimeoutError, ClientDisconnect):
            return Response(status_code=408)
        except (ValueError, RecursionError):
            return Response(status_code=400)
        except OSError:
            return Response(status_code=500)  # the device keeps its report
        return Response(status_code=204)

    @contextlib.asynccontextmanager
    async def writing(_: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(inbox.write())
        yield
        task.cancel()
        inbox.close()

    static = [Mount("/", StaticFiles(directory=published))] if published else []
    return Starlette(routes=[Route("/reports", take, methods=["POST"]), *static], lifespan=writing)


if __name__ == "__main__":
    words = argparse.ArgumentParser(
        description="Take reports of devices, and leave segments of them in an inbox."
    )
    words.add_argument(
        "inbox", type=Path, help="the folder of [collection] inbox; no other program writes there"
    )
    words.add_argument("--published", type=Path, help="a folder to serve too, work/published/NAME")
    words.add_argument("--port", type=int, default=8000)
    words.add_argument("--size", type=int, default=2**26, help="bytes after which a segment is closed")
    words.add_argument(
        "--seconds", type=float, default=3600, help="after which it is closed, however small it is"
    )
    given = words.parse_args()
    if given.published is not None and not given.published.is_dir():
        words.error(f"--published {given.published}: no such folder. Publish first, by ldptree run.")
    try:
        app = intake(Inbox(given.inbox, given.size, given.seconds), given.published)
    except BlockingIOError:
        words.error(f"{given.inbox}: another intake writes there. Give each an inbox of its own.")
    except OSError as fault:
        words.error(f"{given.inbox}: {fault.strerror}. Make the folder where reports are to arrive.")
    uvicorn.run(
        app,
        port=given.port,
        access_log=False,
        log_level="warning",
        limit_concurrency=CONNECTIONS,
        server_header=False,
    )
