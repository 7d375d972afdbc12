//go:build cgo && !norocksdb

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// vaswani prints what the test of that name measures: a query over gRPC has no
// more than a hundred hits, and the measures look at a thousand, so that it
// searches in its own process.
func (b *memoryBench) vaswani(ctx context.Context) error {
	if b.data() == "" {
		b.say("LOOM_EVAL_DATA names no folder: left out")
		return nil
	}
	command := exec.CommandContext(ctx, "go", "test", "-count", "1", "-v", "-run", "^TestVaswani$", "./memory")
	out, err := command.CombinedOutput()
	fmt.Println("\nVaswani, 93 queries to a depth of 1000, in process (aim MAP ≥ .285, nDCG ≥ .610)")
	found := false
	for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); {
		if _, figures, ok := strings.Cut(lines.Text(), "expand "); ok {
			fmt.Println("expand", figures)
			found = true
		}
	}
	if err == nil && !found {
		err = errors.New("the test printed no figures")
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}
