"""Stands in for CrewAI, which brings too much for every run of the tests."""
