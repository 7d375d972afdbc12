"""The part of the cognitive loop that runs tools."""
