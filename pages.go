// Package loombridge holds the pages of this tree, which the server shows.
package loombridge

import "embed"

// Pages are the texts, and the pictures in them, by their paths in the tree.
//
//go:embed README.md CHANGELOG.md ARCHITECTURE.md CONTRIBUTING.md SECURITY.md server/docs server/mcp/README.md
//go:embed clients/python/README.md clients/python/examples/README.md clients/typescript/README.md
//go:embed bridge/sandbox/THREATS.md memory/FORMAT.md memory/kv/pgkv/*.md memory/kv/rockskv/README.md
var Pages embed.FS
