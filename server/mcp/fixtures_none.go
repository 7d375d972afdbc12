//go:build !mcpconformance

package mcp

import sdk "github.com/modelcontextprotocol/go-sdk/mcp"

// addFixtures adds nothing: only a build for the conformance suite has its tools.
func addFixtures(*sdk.Server) {}
