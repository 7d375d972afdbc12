"""Local servers as strict as the providers of models: what one takes, a provider takes.

Each module has `check`, which raises `RefusedError` for a request that its provider refuses,
and `answer`, which makes a response. `serve` puts both behind an address.
"""

from providers.rules import RefusedError
from providers.serving import Provider, serve

__all__ = ["Provider", "RefusedError", "serve"]
