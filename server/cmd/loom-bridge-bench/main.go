// Command loom-bridge-bench measures the server against the least that could do the same
// work, in one run on one machine, and prints a table of ratios.
//
// The floor is a bare grpc-go server that does nothing but write the same
// RocksDB batch, with a sync and its own commit for each call (and, for
// the tool, read the same file). The batches are captured beforehand from the
// real domain code, so that both servers write the same bytes. Floor and
// server are separate processes and are measured in turns, round by round;
// the table shows the median round of each. Steps that are recorded are measured
// call by call in turns instead, because a session does not stay early.
//
// Prompts have no floor: their table compares sessions of different lengths,
// right after a new step, with nothing new, and after the server was opened
// again.
//
// Memory is measured on separate stores: how much of the evidence for questions is found,
// compared with five other full-text search engines on the same texts (-only "memory
// peers"), and how fast it is saved, imported and found in scopes of several sizes. The
// conversations come from the evaluation data that LOOM_EVAL_DATA names (package sets);
// without it the speed is measured on made-up words, and what is found on made-up talks.
//
// The sub-command context replays recorded runs of agents under history policies; it
// needs no server and no store.
//
// The sub-command paths counts what a call of each hot path takes, and compares that with
// the figures that are committed. The other figures are for people.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/replays"
)

func main() {
	pgtest.Become()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := command(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// measureTables and measurePaths are nil in a build without what they measure: RocksDB, and
// Linux for paths.
var measureTables, measurePaths func(ctx context.Context, args []string) error

// command measures the server, or replays recorded runs with the sub-command context.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	measure := measureTables
	if len(args) > 0 && args[0] == "paths" {
		measure, args = measurePaths, args[1:]
	} else if len(args) > 0 && args[0] == "context" {
		return replay(ctx, args, stdout, stderr)
	}
	if measure == nil {
		return errors.New("bench: built without RocksDB, or not for Linux, where paths are measured; context works")
	}
	return measure(ctx, args)
}

func replay(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	root := &cobra.Command{Use: "loom-bridge-bench", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(replays.Command(stdout, stderr))
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}
