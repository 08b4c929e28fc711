"""Compile the .proto files of topoplace_hosts and compare them with the committed descriptors, or write these."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc

INTEGRATIONS = Path(__file__).parents[1] / "hosts" / "topoplace_hosts"


def compiled(proto: Path) -> bytes:
    """Return the descriptors in a .proto file, as a FileDescriptorSet."""
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "descriptor"
        if protoc.main(["protoc", f"-I{proto.parent}", f"--descriptor_set_out={out}", str(proto)]):
            sys.exit(f"{proto} does not compile")
        return out.read_bytes()


def main(arguments: list[str]) -> int:
    """Check the committed descriptors, or write them with --write; return 1 if one is stale, else 0."""
    stale = False
    for proto in sorted(INTEGRATIONS.rglob("*.proto")):
        kept, fresh = proto.with_suffix(".binpb"), compiled(proto)
        if "--write" in arguments:
            kept.write_bytes(fresh)
        elif not kept.exists() or kept.read_bytes() != fresh:
            print(f"{kept} is stale: run `make messages` and commit it")
            stale = True
    return int(stale)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
