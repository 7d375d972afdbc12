"""The cognitive loop: it asks a model what to do, and does it by tools."""
