package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

func main() {
	// A reader of our output that went away must not end the server.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal drains; a second one finds the default, which kills.
	context.AfterFunc(ctx, stop)
	err := start(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "loom-bridge-server:", err)
		os.Exit(1)
	}
}

// gcPercent is how much the heap grows until garbage is collected, unless GOGC says
// otherwise. Most of it are caches, and calls leave little behind: half of Go's
// default saves some fifty megabytes of memory, and costs no time that shows.
const gcPercent = 50

// start runs the program in the environment of the process.
func start(ctx context.Context) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("current directory: %w", err)
	}
	return run(ctx, os.Args[1:], processEnvironment(os.Environ(), dir), os.Stdout, os.Stderr)
}
