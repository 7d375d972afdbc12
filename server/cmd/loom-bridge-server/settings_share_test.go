package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// twoTenants are flags and files of a server with the callers acme and umbrella.
func twoTenants(more ...string) (both []string, files map[string]string) {
	return append([]string{"--credentials", "$DIR/callers.toml"}, more...), map[string]string{"callers.toml": callersText("acme", "umbrella")}
}

// refusal is the reason of an error with what it says is shared, or OK.
func refusal(err error) string {
	reason, details := detailOf(err)
	if share := details["share"]; share != "" {
		return reason + ": " + share
	}
	return ended(err)
}

// hangingCalls makes calls of a tool that does not answer, and returns how the first
// of them ends that does.
func (s *stand) hangingCalls(n int) func() string {
	s.tb.Helper()
	provide(s.tb, s.ctx, s.conn, "hanging", "hanging:tool", func(*peerStream, pushed) {})
	errs := make(chan error, n)
	ctx, cancel := context.WithCancel(s.ctx)
	s.tb.Cleanup(cancel)
	for range n {
		go func() {
			_, err := s.bridge().Tool(ctx, &loombridgev1.ToolRequest{AgentId: "hanging", Name: "hanging:tool", Thought: strings.Repeat("x", 20_000)})
			errs <- err
		}()
	}
	return func() string {
		select {
		case err := <-errs:
			return refusal(err)
		default:
			return "all wait"
		}
	}
}

// manyCalls makes many calls at once and returns how the first ends that fails.
func manyCalls(ctx context.Context, call func(ctx context.Context) error) func() string {
	return func() string { return refusal(together(ctx, 64, call)) }
}

func (s *stand) saving() func(ctx context.Context) error { return saveAs(s.process, s.agent) }

// toolBesideAnother runs a tool while another one waits for the embedder.
func toolBesideAnother(s *stand) func() string {
	tool := func(ctx context.Context, name, arguments string) error {
		_, err := s.bridge().Tool(ctx, &loombridgev1.ToolRequest{
			AgentId: "a", Name: name, ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: arguments},
		})
		return err
	}
	s.model.hold()
	var first sync.WaitGroup
	first.Go(func() { _ = tool(s.ctx, "memory:query", `{"query":"x"}`) }) // ends with the server at the latest
	s.tb.Cleanup(func() {
		s.model.release()
		first.Wait()
	})
	return func() string {
		ctx, cancel := context.WithTimeout(s.ctx, 200*time.Millisecond)
		defer cancel()
		return status.Code(tool(ctx, "fs:list_dir", `{}`)).String()
	}
}

// storing emits as acme until that is refused, a few times at most.
func storing(s *stand) func() string {
	return func() string {
		payload := make([]byte, 1<<20)
		for range 4 {
			_, _ = rand.Read(payload) // never fails
			_, err := s.bridge().Emit(as(s.ctx, "acme"), &loombridgev1.EmitRequest{
				AgentId: "a", Topic: "large", PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: payload},
			})
			if err != nil {
				return refusal(err)
			}
		}
		return "OK"
	}
}

// sharingEffects are those of what tenants and agents share.
func sharingEffects() []effect {
	both, callers := twoTenants("--durability", "none")
	return []effect{
		{
			setting: "max-jobs", args: []string{"--max-jobs", "1"}, both: []string{"--workspace", "$DIR/work", "--shell-allow", "sleep"},
			files: map[string]string{"work/f": ""},
			see: func(s *stand) func() string {
				job := `{"command":"sleep","args":["1000"],"background":true}`
				s.tool("system:shell", job)
				_, err := s.bridge().Tool(s.ctx, &loombridgev1.ToolRequest{
					AgentId: "a", Name: "system:shell", ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: job},
				})
				return once(fmt.Sprint("refused: ", strings.Contains(fmt.Sprint(err), "background jobs")))
			},
			with: "refused: true", without: "refused: false",
		},
		{
			setting: "tool-limits", args: []string{"--tool-limits", "fs:list_dir 1/h"},
			see: func(s *stand) func() string {
				_, _ = callTool(s.tb, s.process, "fs:list_dir", `{}`)
				_, err := callTool(s.tb, s.process, "fs:list_dir", `{}`)
				return once(refusal(err))
			},
			with: "TOOL_LIMIT_REACHED", without: "OK",
		},
		{
			setting: "max-tools", args: []string{"--max-tools", "1"}, both: embedded(),
			see: toolBesideAnother, with: codes.DeadlineExceeded.String(), without: codes.OK.String(),
		},
		{
			setting: "max-message-bytes", args: []string{"--max-message-bytes", "100000"}, after: 200 * time.Millisecond,
			see:  func(s *stand) func() string { return s.hangingCalls(6) },
			with: "OVERLOADED: bytes of requests in memory", without: "all wait",
		},
		{
			setting: "max-store-bytes", args: []string{"--max-store-bytes", "10000000"}, both: both, files: callers, change: func(_ *stand, c *Config) { checkedOften(c) },
			see: storing, with: "QUOTA_EXCEEDED: bytes on disk", without: "OK",
		},
	}
}
