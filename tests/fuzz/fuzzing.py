"""Contents that nobody chose: samples edited anywhere, and every content that once made something fail.

With LOADSTONE_FUZZ_S=60 in the environment each target is tried for so many seconds; `make test-long` takes 30. A
content that makes one fail is kept in tests/fuzz/corpus/<target>/, smallest form found; from then on it is tried first.
Commit it with what mends it.
"""

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

CORPUS = Path(__file__).with_name("corpus")
_DURATION_S = float(os.environ.get("LOADSTONE_FUZZ_S", "0"))

_TOKENS = ["\n", "\r", "\r\n", ",", ", ", " ", "\t", "\0", '"', "\\", "'", "[", "]", "{", "}", "(", ":", "=", "/", "%"]
_TOKENS += ["-", ".", "#[", "```", "~~~", "NaN", "Infinity", "null", "true", "-1", "1e999", "1,5", "h", "m", "ms"]
_TOKENS += ["9" * 30, "0" * 30, "9" * 5000, "\u00b5s", "\u2028", "\u0661", "\ufeff", "\\ud800", "█", "✓", "✗", "↳"]
_TOKENS += ["...: ", "\x1b[36m", "{" * 500, '"latencies": [', '"http_req_duration"', "http_req_duration,"]
_TOKENS += ["&a ", "*a", "!!python/object ", "? ", "- ", "<<: ", ": {}", ": []", ": null", "2024-04-09T20:14:12-04:00"]

_SHARES = st.floats(0, 1, exclude_max=True)
_INSERTED = st.sampled_from([token.encode() for token in _TOKENS]) | st.binary(max_size=8)
_EDITS = st.lists(
    st.tuples(_SHARES, st.sampled_from([0, 0, 1, 2, 20, 300, 10**9]), _INSERTED, st.integers(1, 3)), max_size=6
)


def _edited(content: bytes, edits: Sequence[tuple[float, int, bytes, int]]) -> bytes:
    """At each share of the content, so many bytes replaced by others, some times over."""
    for share, removed, inserted, times in edits:
        position = int(share * len(content))
        content = content[:position] + inserted * times + content[position + removed :]
    return content


def fuzz(target: str, samples: Sequence[bytes], try_one: Callable[[bytes], None], examples: int = 100) -> None:
    """Try the target's corpus, then its samples and their edits; what fails is kept, and fails the test.

    `target` names a folder of the corpus; `examples` is how many edits are tried at least.
    """
    folder = CORPUS / target
    kept = [path.read_bytes() for path in sorted(folder.glob("*"))]
    for content in [*kept, *samples]:
        try_one(content)
    failed = [b""]

    @settings(max_examples=examples, database=None)
    @given(st.sampled_from([*samples, *kept, b""]), _EDITS)
    def edit(content: bytes, edits: list[tuple[float, int, bytes, int]]) -> None:
        failed[0] = _edited(content, edits)
        try_one(failed[0])

    end = time.monotonic() + _DURATION_S
    try:
        edit()
        while time.monotonic() < end:
            edit()
    except Exception:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / hashlib.sha256(failed[0]).hexdigest()[:12]).write_bytes(failed[0])
        raise
