//go:build cgo && !norocksdb

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// shellRounds are the starts of each way that are measured, in turns.
	shellRounds = 300
	// shellCrowd are the starts at once, and shellStarts all of them.
	shellCrowd, shellStarts = 64, 2000
)

// shellTable measures the start of a program, from before it to its result: bare, with
// limits alone, and in each tier that works here.
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
	names := []string{"bare exec"}
	ways := []func() error{func() error { return exec.CommandContext(ctx, "/bin/true").Run() }}
	for _, o := range []sandbox.Options{{Setting: sandbox.Off}, {Tier: sandbox.TierNamespaces}, {Tier: sandbox.TierLandlock}} {
		runner := sandbox.NewLocal(&o)
		defer runner.Close()
		c := runner.Describe(ctx)
		if c.Tier == "" {
			fmt.Println(c.Problems[0])
			continue
		}
		names = append(names, "tier "+c.Tier)
		ways = append(ways, func() error {
			out, err := runner.Run(ctx, sandbox.Job{Scope: kv.AgentScope("default", "bench"), Argv: []string{"/bin/true"}, Root: root}, sandbox.Streams{})
			if err == nil && out.Exit != 0 {
				err = fmt.Errorf("exit %d", out.Exit)
			}
			return err
		})
	}
	took, worked := make([][]time.Duration, len(ways)), make([]time.Duration, len(ways))
	for range shellRounds {
		for i, way := range ways {
			begin, before := time.Now(), processorTime()
			if err := way(); err != nil {
				return fmt.Errorf("%s: %w", names[i], err)
			}
			took[i] = append(took[i], time.Since(begin))
			worked[i] += processorTime() - before
		}
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "start of /bin/true\tp50\tp99\tadded p50\tadded p99\tx bare\tprocessor\tx bare\tat once /s\tfailed\t\n")
	for i, name := range names {
		slices.Sort(took[i])
		half, most := took[i][shellRounds/2], took[i][shellRounds*99/100]
		rate, failed := crowd(ways[i])
		fmt.Fprintf(table, "%s\t%.2f ms\t%.2f ms\t%.2f ms\t%.2f ms\t%.1f\t%.2f ms\t%.1f\t%.0f\t%d\t\n", name, millis(half), millis(most),
			millis(half-took[0][shellRounds/2]), millis(most-took[0][shellRounds*99/100]), float64(half)/float64(took[0][shellRounds/2]),
			millis(worked[i]/shellRounds), float64(worked[i])/float64(worked[0]), rate, failed)
	}
	return table.Flush()
}

// processorTime is what this process and those it has waited for have taken. It does not
// grow with what else the machine does.
func processorTime() (sum time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var used syscall.Rusage
		if err := syscall.Getrusage(who, &used); err == nil {
			sum += time.Duration(used.Utime.Nano() + used.Stime.Nano())
		}
	}
	return sum
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
