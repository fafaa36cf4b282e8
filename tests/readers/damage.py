"""Content that no reader may trip over, whatever the format."""

HOSTILE: dict[str, bytes] = {
    "a line feed": b"\n",
    "a carriage return": b"\r\n",
    "zeros": bytes(1000),
    "text": b"hello\nworld\n",
    "blank lines": b"\n \r\n\n",
    "no UTF-8": b"\xff\xfe\xfd" * 100 + b"\n",
    "an object": b"{}\n",
    "an array": b"[1, 2]\n",
    "null": b"null\n",
    "a number": b"1,5\n",
    "deep arrays": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "vegeta's JSON": b'{"attack":"","seq":0,"code":200,"timestamp":"2026-11-21T11:00:00Z","latency":1,"bytes_out":0}\n',
    "vegeta's report": b"Requests      [total, rate, throughput]  100, 10.10, 10.10\n",
    "markup": b"<script>alert(1)</script>\n" * 10,
    "a long line": b"x" * 3_000_000,
}


def cuts(content: bytes, count: int = 60) -> list[bytes]:
    """The content cut off at so many places, spread over all of it."""
    return [content[: len(content) * place // count] for place in range(count)]
