"""S3-compatible storage through pyarrow. Credentials are the environment's or a profile's, as with Amazon's tools.

pyarrow is installed anyway and can set content types and cache headers. It has no conditional writes, so a publication
looks at the mark a second time before it leads readers anywhere, and a push writes its claim before it looks for
others. It completes an object of several parts even if one was lost; so an object of the archive is written by one
request, or gets its name by a copy of a complete one.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pyarrow import fs

_AT_ONCE = 8
_DENIED = ("ACCESS_DENIED", "INVALID_ACCESS_KEY", "SIGNATURE", "UNRECOGNIZED_CLIENT", "INVALID_CLIENT_TOKEN")
_CREDENTIALS = (
    "Credentials are taken from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or from the profile in ~/.aws that "
    "AWS_PROFILE names"
)


@contextmanager
def connected(endpoint: str | None, region: str | None, *, single: bool = False) -> Iterator["fs.S3FileSystem"]:
    """A client of the storage at `endpoint`, an address; without one it is Amazon's. An OSError says what to do.

    `single`: an object of less than 10 MiB is written by one request, so it appears whole or not at all. (Servers may
    tell readers that such an object is encoded, which no browser understands.)
    """
    from pyarrow import fs  # noqa: PLC0415 - few jobs need it

    address: dict[str, Any] = {"region": region} if region else {}
    if endpoint:
        parts = urlsplit(endpoint)
        # Without a region the library would ask Amazon for it.
        address = {"region": "us-east-1", "scheme": parts.scheme, "endpoint_override": parts.netloc} | address
    waits = {"request_timeout": 60, "connect_timeout": 10}
    try:
        yield fs.S3FileSystem(**address, **waits, background_writes=False, allow_delayed_open=single)
    except OSError as error:
        if error.errno is not None:  # this machine's, with the name of a file
            raise
        raise OSError(_explained(str(error))) from None


def each(do: Callable[[Any], object], items: Iterable[Any]) -> None:
    """Several at once; the first failure is raised once those under way have ended."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        waiting = [pool.submit(do, item) for item in items]
        try:
            for one in waiting:
                one.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _explained(text: str) -> str:
    text = text.strip().rstrip(".")
    return f"{text}. {_CREDENTIALS}" if any(word in text.upper() for word in _DENIED) else text
