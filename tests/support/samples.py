"""Files that load generators really wrote; tests/readers/samples/README.md says how."""

from pathlib import Path

import zstandard

FOLDER = Path(__file__).resolve().parents[1] / "readers/samples"


def content(name: str) -> bytes:
    """A sample's bytes as the tool wrote them, whether it is kept compressed or not."""
    path = FOLDER / name
    if path.exists():
        return path.read_bytes()
    return zstandard.ZstdDecompressor().decompressobj().decompress(path.with_name(f"{name}.zst").read_bytes())
