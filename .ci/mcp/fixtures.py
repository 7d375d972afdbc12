"""Writes the fixture tools of the conformance suite as a file of package mcp.

They are those of the protocol's library, in the version of go.mod, so that the
suite tests our face and not our copy of what it asks for.

Usage: fixtures.py DIRECTORY_OF_THE_LIBRARY > fixtures_conformance.go
"""

import re
import sys
from pathlib import Path

source = Path(sys.argv[1], "conformance/everything-server/main.go").read_text()
head = source.index("var (\n\thttpAddr")
tail = source.index("const watchedResourceURI")
source = source[:head] + source[tail:]
main = source.index("func main() {")
source = source[:main] + source[source.index("// watchedResourceUpdater sends") :]
for name in ("flag", "log", "net/http", "os"):
    source = source.replace(f'\t"{name}"\n', "", 1)
source = re.sub(r"^package main$", "package mcp", source, count=1, flags=re.MULTILINE)
source += """
func fixtureOptions(o *mcp.ServerOptions) {
	o.CompletionHandler, o.Capabilities = completionHandler, nil
	o.SubscribeHandler, o.UnsubscribeHandler = subscribeHandler, unsubscribeHandler
}

func addFixtures(server *mcp.Server) {
	registerTools(server)
	registerResources(server)
	registerPrompts(server)
	go watchedResourceUpdater(context.Background(), server)
}
"""
sys.stdout.write("//go:build mcpconformance\n\n" + source)
