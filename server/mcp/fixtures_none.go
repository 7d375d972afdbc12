//go:build !mcpconformance

package mcp

import sdk "github.com/modelcontextprotocol/go-sdk/mcp"

// fixtureOptions and addFixtures do nothing: only the build that the conformance suite
// is run against has its tools (.ci/mcp/run).
func fixtureOptions(*sdk.ServerOptions) {}

func addFixtures(*sdk.Server) {}
