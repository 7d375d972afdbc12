package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// SIGTERM while calls compute for longer than a stop may take: the process ends in
// time and with success, and what was acknowledged is there afterwards.
func TestStopUnderHeavySearches(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "long.txt"), []byte(strings.Repeat(strings.Repeat("x", 2000)+"!\n", 3000)), 0o600))
	c := MustStartChild(t, dir)
	p := &process{conn: MustDial(t, c.Address)}
	save(t, p, "kept well")
	stored, err := p.bridge().Tool(t.Context(), &loombridgev1.ToolRequest{
		AgentId: "a", SessionId: "s", Name: "fs:read_file", ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{"path":"long.txt"}`},
	})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var searching sync.WaitGroup
	for range 2 {
		searching.Go(func() {
			stream, err := p.context().SearchBlobs(ctx, &loombridgev1.SearchBlobsRequest{
				AgentId: "a", Name: stored.GetStep().GetId(),
				Pattern: &loombridgev1.SearchBlobsRequest_Regexp{Regexp: `([a-z]{1,9}[0-9]?){1,40}[!?]`},
			})
			for err == nil {
				_, err = stream.Recv()
			}
		})
	}
	time.Sleep(500 * time.Millisecond) // until they are at it
	began := time.Now()
	must(t, c.Process.Signal(syscall.SIGTERM))
	err = c.Wait()
	if took := time.Since(began); err != nil || took > stopLimit {
		t.Errorf("stopped after %v: %v", took, err)
	}
	cancel()
	searching.Wait()
	if n := hits(t, MustRun(t, dir), "kept"); n != 1 {
		t.Errorf("%d hits afterwards", n)
	}
}
