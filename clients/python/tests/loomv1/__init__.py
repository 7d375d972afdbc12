"""loom-py for tests, which cannot be installed from a package index.

`agent` and `cognitive` are a stand-in of its public interface, with its names, its
signatures and its order of calls, on a core in the test's own process. `raw` speaks
loom.v1 to a real server with stubs generated for the test.
"""
