// The helper of the sandbox: the program of both stages, which release builds carry
// inside the server (tag embedhelper).
package main

import "github.com/loom-bridge/loom-bridge/bridge/sandbox/inner"

func main() { inner.Main() }
