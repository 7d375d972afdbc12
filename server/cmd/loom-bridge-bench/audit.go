//go:build cgo && !norocksdb

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	"github.com/loom-bridge/loom-bridge/server/compose"
)

const (
	// auditPairs are the calls that are measured with an audit, each paired with one
	// without, and auditTime how long that may take.
	auditPairs = 5000
	auditTime  = 40 * time.Second
	// auditAim is the most that the audit may add to a call.
	auditAim = 0.03
)

// auditTable measures what the audit adds to a call: pairs of calls of one hand with an
// audit and one without, on one store, the first of each pair in turns. It leaves the
// network out, so that its share is larger than a client sees.
func auditTable(ctx context.Context, dir string) error {
	workspace, err := makeWorkspace(dir)
	if err != nil {
		return err
	}
	folders, err := hand.OpenFolders(workspace, nil)
	if err != nil {
		return err
	}
	defer folders.Close()
	fmt.Fprintf(os.Stderr, "audit: %d pairs of calls, %v at most, for each durability\n", auditPairs, auditTime)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "audit of fs:read_file 4 KiB\tpairs\trecords\tp50 µs without\tp50 µs with\tmedian of differences µs\tshare\taim\t\n")
	for _, durability := range []rockskv.Durability{rockskv.Sync, rockskv.WAL} {
		engine, err := rockskv.Open(filepath.Join(dir, "audit-"+durability.String()), &rockskv.Options{Durability: durability})
		if err != nil {
			return err
		}
		defer engine.Close()
		parts, err := compose.Open(engine, folders, nil)
		if err != nil {
			return err
		}
		with, without, err := auditCalls(ctx, parts)
		if err := errors.Join(err, parts.Close()); err != nil {
			return err
		}
		kept, err := audit.Verify(ctx, engine, nil)
		if err != nil {
			return err
		}
		differences := make([]time.Duration, len(with))
		for i := range with {
			differences[i] = with[i] - without[i]
		}
		for _, all := range [][]time.Duration{with, without, differences} {
			slices.Sort(all)
		}
		half := len(with) / 2
		fmt.Fprintf(table, "durability %s\t%d\t%d\t%.0f\t%.0f\t%.1f\t%.1f %%\t≤ %.0f %%\t\n", durability, len(with), kept.Records+kept.Unsealed, micros(without[half]), micros(with[half]),
			micros(differences[half]), 100*float64(differences[half])/float64(without[half]), 100*auditAim)
	}
	return table.Flush()
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// auditCalls makes the pairs, and returns how long the calls took.
func auditCalls(ctx context.Context, parts *compose.Domain) (with, without []time.Duration, err error) {
	d := parts.Hand.Deps
	d.Audit = nil
	bare := hand.New(d, nil)
	defer bare.Close(ctx)
	call := func(h *hand.Hand, agent string, into *[]time.Duration) error {
		begin := time.Now()
		answer, err := h.Call(ctx, hand.Request{Scope: kv.AgentScope("default", agent), Name: "fs:read_file", Args: toolArguments()})
		if err := errors.Join(err, answer.RecordError); err != nil {
			return fmt.Errorf("bench: audit: %w", err)
		}
		*into = append(*into, time.Since(begin))
		return nil
	}
	for end, i := time.Now().Add(auditTime), 0; i < auditPairs && time.Now().Before(end); i++ {
		sides := []func() error{
			func() error { return call(parts.Hand, "with", &with) },
			func() error { return call(bare, "without", &without) },
		}
		if i%2 == 1 {
			slices.Reverse(sides)
		}
		if err := errors.Join(sides[0](), sides[1]()); err != nil {
			return nil, nil, err
		}
	}
	return with, without, nil
}
