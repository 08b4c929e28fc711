"""Compile the .proto files of topoplace_hosts and compare them with the committed descriptors, or write these."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc

INTEGRATIONS = Path(__file__).parents[1] / "hosts" / "topoplace_hosts"
BYTES_PER_LINE = 50


def compiled(proto: Path) -> str:
    """Return the module with the descriptor of a .proto file."""
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "descriptor"
        if protoc.main(["protoc", f"-I{proto.parent}", f"--descriptor_set_out={out}", str(proto)]):
            sys.exit(f"{proto} does not compile")
        data = out.read_bytes()
    lines = [data[i : i + BYTES_PER_LINE].hex() for i in range(0, len(data), BYTES_PER_LINE)]
    quoted = "\n".join(f'    "{line}"' for line in lines)
    return f'''"""The descriptors in {proto.name}, as a FileDescriptorSet; `make messages` wrote them."""

from __future__ import annotations

from typing import Final

SERIALISED: Final = bytes.fromhex(
{quoted}
)
'''


def main(arguments: list[str]) -> int:
    """Check the committed modules, or write them with --write; return 1 if one is stale, else 0."""
    stale = False
    for proto in sorted(INTEGRATIONS.rglob("*.proto")):
        module, fresh = proto.with_name("_descriptor.py"), compiled(proto)
        if "--write" in arguments:
            module.write_text(fresh, "utf-8")
        elif not module.exists() or module.read_text("utf-8") != fresh:
            print(f"{module} is stale: run `make messages` and commit it")
            stale = True
    return int(stale)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
