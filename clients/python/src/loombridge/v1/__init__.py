"""Messages and stubs generated from `proto/loombridge/v1`. Do not edit."""
