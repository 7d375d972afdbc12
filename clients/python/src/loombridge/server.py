"""Run the server: `python -m loombridge.server [flags]`, in the place of this process."""

import os
import sys

from loombridge import _local


def main() -> None:
    """Become the server, with the arguments of this process."""
    try:
        binary = _local.find_binary()
    except _local.ServerError as err:
        sys.exit(str(err))
    os.execv(binary, [_local.BINARY_NAME, *sys.argv[1:]])  # noqa: S606  there is no shell


if __name__ == "__main__":
    main()
