"""Client of `warm_server`: a command that runs in a process of the server, with the files and variables of this one.

Arguments: the address of the server, the Python that jobs of the command use, and the command. It imports next to
nothing.
"""

import os
import signal
import sys
from array import array
from json import dumps
from socket import AF_UNIX, SCM_RIGHTS, SOL_SOCKET, socket


def main() -> None:
    """Run the command and end as it ends."""
    address, python, program, *arguments = sys.argv[1:]
    connection = socket(AF_UNIX)
    connection.connect(address)
    folder = os.getcwd()  # noqa: PTH109 - an import of pathlib would cost more than all else
    request = {"folder": folder, "variables": dict(os.environ), "python": python}
    message = dumps(request | {"program": program, "arguments": arguments}).encode() + b"\0"
    files = array("i", [0, 1, 2])
    sent = connection.sendmsg([message], [(SOL_SOCKET, SCM_RIGHTS, files)])
    connection.sendall(message[sent:])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: connection.send(bytes([number])))
    code = int(connection.recv(16))
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


main()
