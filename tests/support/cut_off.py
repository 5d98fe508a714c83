"""`python -m tests.support.cut_off FILE COMMAND…`: a command in a network namespace of its own.

No other host can be reached from it.

`CUT` makes the namespace and starts this module in it. The module brings the loopback up and runs the command. Then it
writes into FILE how often a program in the namespace tried to reach an address without a route: every connect and every
datagram that would have left the machine, also to a name server. The kernel counts them (`OutNoRoutes` of RFC 4293), so
failed attempts that a program does not report are counted too.
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
    """Whether this machine allows a network namespace."""
    return shutil.which(CUT[0]) is not None and subprocess.run([*CUT, "true"], check=False).returncode == 0


def loopback_up() -> None:
    """Bring up `lo`, which is down in a new namespace and connects brokers and clients."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        said = fcntl.ioctl(any_socket, _GET_FLAGS, _REQUEST.pack(b"lo", 0))
        name, flags = _REQUEST.unpack(said)
        fcntl.ioctl(any_socket, _SET_FLAGS, _REQUEST.pack(name, flags | _UP))


def astray() -> int:
    """The number of packets in this namespace that had no route."""
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
