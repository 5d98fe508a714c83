"""`python -m tests.support.cut_off FILE COMMAND…`: a command in a network namespace of its own.

In there only the command itself answers.

`CUT` makes the namespace and starts this module in it, which brings the loopback up, runs the command, and writes into
FILE how often somebody in there tried to reach an address for which there is no route: every connect and every datagram
that would have left the machine, a question to a name server included. The kernel counts them (`OutNoRoutes` of
RFC 4293), so that what a program tries in vain and says nothing about is seen too.
"""

from __future__ import annotations

import fcntl
import shutil
import socket
import struct
import subprocess
import sys
from pathlib import Path

CUT = ("unshare", "--map-root-user", "--net")
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 0x1
_REQUEST = struct.Struct("16sh14x")


def can_cut() -> bool:
    """Whether this machine lets us have a network of our own."""
    return shutil.which(CUT[0]) is not None and subprocess.run([*CUT, "true"], check=False).returncode == 0


def loopback_up() -> None:
    """Bring up `lo`, which is down in a new namespace; brokers and clients of one machine talk over it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        said = fcntl.ioctl(any_socket, _GET_FLAGS, _REQUEST.pack(b"lo", 0))
        name, flags = _REQUEST.unpack(said)
        fcntl.ioctl(any_socket, _SET_FLAGS, _REQUEST.pack(name, flags | _UP))


def astray() -> int:
    """How often something in this namespace was to go where no route leads."""
    names, values = (
        line.split()
        for line in Path("/proc/self/net/snmp").read_text(encoding="ascii").splitlines()
        if line.startswith("Ip:")
    )
    count = int(values[names.index("OutNoRoutes")])
    of_ipv6 = Path("/proc/self/net/snmp6")
    if of_ipv6.is_file():
        pairs = (line.split() for line in of_ipv6.read_text(encoding="ascii").splitlines())
        count += sum(int(value) for name, value in pairs if name == "Ip6OutNoRoutes")
    return count


def main() -> int:
    """Run the command; its exit code."""
    counted, *command = sys.argv[1:]
    loopback_up()
    code = subprocess.run(command, check=False).returncode
    Path(counted).write_text(f"{astray()}\n", encoding="ascii")
    return code


if __name__ == "__main__":
    sys.exit(main())
