//go:build cgo && !norocksdb

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// shellRounds are the starts of each way that are measured, in turns, and shellTime
	// how long that may take.
	shellRounds = 300
	shellTime   = 20 * time.Second
	// shellPause is how long the next start is prepared, which the others must not feel.
	shellPause = 20 * time.Millisecond
	// shellCrowd are the starts at once, and shellStarts all of them.
	shellCrowd, shellStarts = 64, 500
)

// shellTable measures the start of a program, from before it to its result: bare, with
// limits alone, and in each tier that works here, with all layers and less some, and with the
// start prepared, as servers do it.
func shellTable(ctx context.Context, dir string) error {
	work := filepath.Join(dir, "work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(work)
	if err != nil {
		return err
	}
	defer root.Close()
	names, pauses := []string{"bare exec"}, []time.Duration{0}
	ways := []func() error{func() error { return exec.CommandContext(ctx, "/bin/true").Run() }}
	const none = -1
	for _, o := range []sandbox.Options{
		{Setting: sandbox.Off, Warm: none},
		{Tier: sandbox.TierNamespaces, Without: []string{"landlock", "seccomp"}, Warm: none},
		{Tier: sandbox.TierNamespaces, Without: []string{"net-namespace"}, Warm: none},
		{Tier: sandbox.TierNamespaces, Warm: none},
		{Tier: sandbox.TierNamespaces},
		{Tier: sandbox.TierLandlock, Without: []string{"supervisor"}, Warm: none},
		{Tier: sandbox.TierLandlock, Warm: none},
		{Tier: sandbox.TierLandlock},
	} {
		runner := sandbox.NewLocal(&o)
		defer runner.Close()
		c := runner.Describe(ctx)
		if c.Tier == "" {
			fmt.Println(c.Problems[0])
			continue
		}
		name := "tier " + c.Tier
		if len(o.Without) > 0 {
			name += " less " + strings.Join(o.Without, ", ")
		}
		pause := time.Duration(0)
		if o.Warm != none {
			name, pause = name+", prepared", shellPause
		}
		names, pauses = append(names, name), append(pauses, pause)
		ways = append(ways, func() error {
			out, err := runner.Run(ctx, sandbox.Job{Scope: kv.AgentScope("default", "bench"), Argv: []string{"/bin/true"}, Root: root}, sandbox.Streams{})
			if err == nil && out.Exit != 0 {
				err = fmt.Errorf("exit %d", out.Exit)
			}
			return err
		})
	}
	took := make([][]time.Duration, len(ways))
	rounds := 0
	for end := time.Now().Add(shellTime); rounds < shellRounds && (rounds < 20 || time.Now().Before(end)); rounds++ {
		for i, way := range ways {
			begin := time.Now()
			if err := way(); err != nil {
				return fmt.Errorf("%s: %w", names[i], err)
			}
			took[i] = append(took[i], time.Since(begin))
			time.Sleep(pauses[i])
		}
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "start of /bin/true\tp50\tp99\tadded p50\tadded p99\tx bare\tat once /s\tfailed\t\n")
	for i, name := range names {
		slices.Sort(took[i])
		half, most := took[i][rounds/2], took[i][rounds*99/100]
		rate, failed := crowd(ways[i])
		fmt.Fprintf(table, "%s\t%.2f ms\t%.2f ms\t%.2f ms\t%.2f ms\t%.1f\t%.0f\t%d\t\n", name, millis(half), millis(most),
			millis(half-took[0][rounds/2]), millis(most-took[0][rounds*99/100]), float64(half)/float64(took[0][rounds/2]),
			rate, failed)
	}
	return table.Flush()
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// crowd makes many starts at once, and returns how many there are in a second, and how
// many failed.
func crowd(way func() error) (rate float64, failed int64) {
	var left, bad atomic.Int64
	left.Store(shellStarts)
	var all sync.WaitGroup
	begin := time.Now()
	for range shellCrowd {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				if way() != nil {
					bad.Add(1)
				}
			}
		})
	}
	all.Wait()
	return shellStarts / time.Since(begin).Seconds(), bad.Load()
}
