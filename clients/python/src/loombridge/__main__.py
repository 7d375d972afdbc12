"""Which version this is, and whether a server answers.

    python -m loombridge [address]

Ends with 0 when a server answers, with 1 when none does or it refuses, and with 2 when
the address is none.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Sequence

import loombridge

TOKEN_VARIABLE = "LOOM_BRIDGE_TOKEN"  # noqa: S105  the name of a variable
"""The environment's word on the token, as an argument would show in the process list."""

AGENT = "ping"
"""The agent that looks: nothing is read or written in its name."""


async def ping(address: str | None) -> str:
    """Return the status of the server at an address.

    Raises:
        LoomBridgeError: none answers, or it refuses.
        ValueError: the address is none.
    """
    token = os.environ.get(TOKEN_VARIABLE)
    connecting = loombridge.connect(address, agent_id=AGENT, token=token, timeout=5, wait=0)
    async with connecting as ctx:
        begun = time.perf_counter()
        status = await ctx.status()
        took = (time.perf_counter() - begun) * 1000
    return (
        f"server {status.version} answers in {took:.1f} ms: {status.tools} tools, "
        f"durability {status.durability}, up since {status.start_time:%Y-%m-%d %H:%M} UTC"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the version and what the server says; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m loombridge",
        description="Print the client's version and ask a server whether it is there.",
        epilog=f"A server with credentials is shown the token in {TOKEN_VARIABLE}.",
    )
    parser.add_argument(
        "address",
        nargs="?",
        help="host:port or unix:/path; default: LOOM_BRIDGE_ADDR, or else 127.0.0.1:50051",
    )
    parser.add_argument("--version", action="version", version=loombridge.__version__)
    given = parser.parse_args(arguments)
    print(f"loombridge {loombridge.__version__}", flush=True)
    try:
        print(asyncio.run(ping(given.address)))
    except ValueError as err:
        print(err, file=sys.stderr)
        return 2
    except loombridge.UnauthenticatedError as err:
        print(f"{err}; set {TOKEN_VARIABLE} to a token that the server knows", file=sys.stderr)
        return 1
    except loombridge.LoomBridgeError as err:
        print(err, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
