package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Each setting of what is shared bounds what it says.
func TestSharingSettings(t *testing.T) {
	hang := func(tb testing.TB, p *process, n int) (errs chan error) {
		tb.Helper()
		var waiting atomic.Int64
		provide(tb, tb.Context(), p.conn, "hanging", "hanging:tool", func(*peerStream, pushed) { waiting.Add(1) })
		errs = make(chan error, n)
		for range n {
			go func() {
				_, err := p.bridge().Tool(tb.Context(), &loombridgev1.ToolRequest{AgentId: "hanging", Name: "hanging:tool", Thought: strings.Repeat("x", 20_000)})
				if tb.Context().Err() == nil {
					errs <- err
				}
			}()
		}
		return errs
	}
	refusedWith := func(tb testing.TB, err error, share, setting string) {
		tb.Helper()
		reason, details := detailOf(err)
		if reason != "OVERLOADED" || details["share"] != share || !strings.Contains(err.Error(), setting) {
			tb.Errorf("got %v, %v, want the share of %s", err, details, share)
		}
	}
	t.Run("max-relayed-calls", func(t *testing.T) {
		p := MustRun(t, t.TempDir(), "--log-level", "off", "--max-relayed-calls", "8")
		refusedWith(t, <-hang(t, p, 9), "calls that wait for agents", "--max-relayed-calls")
	})
	t.Run("max-request-bytes", func(t *testing.T) {
		p := MustRun(t, t.TempDir(), "--log-level", "off", "--max-request-bytes", "100000")
		refusedWith(t, <-hang(t, p, 6), "bytes of requests in memory", "--max-request-bytes")
		works(t, t.Context(), p.conn, "neighbour")
	})
	t.Run("max-waiting-calls", func(t *testing.T) {
		p := MustRun(t, t.TempDir(), "--log-level", "off", "--max-calls", "1", "--max-waiting-calls", "1")
		refusedWith(t, together(t.Context(), 64, saveAs(p, "a")), "calls in flight", "--max-calls")
		works(t, t.Context(), p.conn, "a")
	})
	t.Run("max-searches", func(t *testing.T) {
		p := MustRun(t, t.TempDir(), "--log-level", "off", "--max-searches", "1", "--max-waiting-calls", "1")
		for i := range 200 {
			save(t, p, strings.Repeat(fmt.Sprint("word", i, " "), 300))
		}
		refusedWith(t, together(t.Context(), 64, func(ctx context.Context) error {
			_, err := p.bridge().MemoryQuery(ctx, &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: strings.Repeat("word1 word2 word3 ", 50)})
			return err
		}), "running queries", "--max-searches")
	})
	t.Run("contended-calls", func(t *testing.T) {
		for limit, refused := range map[string]bool{"1": true, "64": false} {
			dir := t.TempDir()
			p := MustRun(t, dir, "--credentials", MustCallers(t, dir, "acme", "umbrella"), "--log-level", "off",
				"--contended-calls", limit, "--max-waiting-calls", "1")
			works(t, as(t.Context(), "umbrella"), p.conn, "a") // so that both are there
			time.Sleep(150 * time.Millisecond)                 // and were counted
			var err error
			for range 5 {
				must(t, saveAs(p, "a")(as(t.Context(), "umbrella")))
				if err = together(as(t.Context(), "acme"), 16, saveAs(p, "a")); err != nil {
					break
				}
			}
			if (err != nil) != refused {
				t.Errorf("--contended-calls %s: %v", limit, err)
			}
		}
	})
	t.Run("contended-event-bytes", func(t *testing.T) {
		dir := t.TempDir()
		p := MustRun(t, dir, "--credentials", MustCallers(t, dir, "acme", "umbrella"), "--log-level", "off", "--contended-event-bytes", "400000")
		acme, umbrella := as(t.Context(), "acme"), as(t.Context(), "umbrella")
		emits(t, acme, p.conn, "alone", 10, 100_000, 1) // as fast as it likes
		emits(t, umbrella, p.conn, "other", 1, 1, 1)
		time.Sleep(150 * time.Millisecond)
		emits(t, umbrella, p.conn, "other", 1, 1, 1)
		began := time.Now()
		emits(t, acme, p.conn, "beside", 2, 100_000, 1)
		if took := time.Since(began); took < 500*time.Millisecond {
			t.Errorf("half of 400,000 bytes a second: 200,000 took %v", took)
		}
	})
	t.Run("max-tools", func(t *testing.T) {
		hangs := make(chan struct{})
		embedder := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hangs }))
		defer embedder.Close()
		defer close(hangs)
		p := MustRun(t, t.TempDir(), "--log-level", "off", "--max-tools", "1", "--embedder-url", embedder.URL, "--embedder-model", "m", "--embedder-dimensions", "3")
		tool := func(ctx context.Context, name string) error {
			_, err := p.bridge().Tool(ctx, &loombridgev1.ToolRequest{
				AgentId: "a", Name: name, ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{"query":"x"}`},
			})
			return err
		}
		go func() { _ = tool(t.Context(), "memory:query") }() // waits for the embedder
		for deadline := time.Now().Add(10 * time.Second); ; {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			err := tool(ctx, "fs:list_dir")
			cancel()
			if status.Code(err) == codes.DeadlineExceeded {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("a second tool ran: %v", err)
			}
		}
	})
	t.Run("max-agent-tool-bytes and max-tenant-tool-bytes", func(t *testing.T) {
		for setting, reason := range map[string]string{"--max-agent-tool-bytes": "INVALID_REQUEST", "--max-tenant-tool-bytes": "QUOTA_EXCEEDED"} {
			p := MustRun(t, t.TempDir(), "--log-level", "off", setting, "50")
			_, err := (&peer{id: "a", tool: "a:tool"}).open(t.Context(), p.conn)
			if got, _ := detailOf(err); got != reason || !strings.Contains(err.Error(), setting) {
				t.Errorf("%s: %v", setting, err)
			}
		}
	})
	t.Run("max-store-bytes and store-check-interval", func(t *testing.T) {
		dir := t.TempDir()
		p := MustRun(t, dir, "--credentials", MustCallers(t, dir, "acme", "umbrella"), "--log-level", "off", "--durability", "none",
			"--max-store-bytes", "10000000", "--store-check-interval", "20ms")
		var err error
		for i := 0; err == nil && i < 300; i++ {
			payload := make([]byte, 1<<20)
			_, _ = rand.Read(payload) // never fails
			_, err = p.bridge().Emit(as(t.Context(), "acme"), &loombridgev1.EmitRequest{
				AgentId: "a", Topic: "large", PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: payload},
			})
		}
		if reason, details := detailOf(err); reason != "QUOTA_EXCEEDED" || details["share"] != "bytes on disk" {
			t.Errorf("got %v", err)
		}
		works(t, as(t.Context(), "umbrella"), p.conn, "stranger")
	})
}
