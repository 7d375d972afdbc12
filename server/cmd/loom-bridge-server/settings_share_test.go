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

// longAnswer reads back a record of 6 kB.
func longAnswer(s *stand) func() string {
	_, err := s.bridge().MemorySave(s.ctx, &loombridgev1.MemorySaveRequest{AgentId: "a", Key: "long", Text: strings.Repeat("x", 6000)})
	must(s.tb, err)
	return once(func() string {
		_, err := loombridgev1.NewMemoryServiceClient(s.conn).GetRecord(s.ctx, &loombridgev1.GetRecordRequest{AgentId: "a", Name: &loombridgev1.GetRecordRequest_Key{Key: "long"}})
		return refusal(err)
	}())
}

// manyCalls makes many calls at once and returns how the first ends that fails.
func manyCalls(ctx context.Context, call func(ctx context.Context) error) func() string {
	return func() string { return refusal(together(ctx, 64, call)) }
}

func (s *stand) saving() func(ctx context.Context) error { return saveAs(s.process, s.agent) }

// asking is a query that takes a while.
func (s *stand) asking() func(ctx context.Context) error {
	for i := range 200 {
		save(s.tb, s.process, strings.Repeat(fmt.Sprint("word", i, " "), 300))
	}
	return func(ctx context.Context) error {
		_, err := s.bridge().MemoryQuery(ctx, &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: strings.Repeat("word1 word2 word3 ", 50)})
		return err
	}
}

// crowdBesideAnother makes many saves of a tenant while another one is there, too.
func crowdBesideAnother(s *stand) func() string {
	umbrella, acme := as(s.ctx, "umbrella"), as(s.ctx, "acme")
	return func() string {
		must(s.tb, s.saving()(umbrella))
		return refusal(together(acme, 4, s.saving()))
	}
}

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

// provides attaches an agent with a tool and returns how that ends.
func (s *stand) provides() func() string {
	_, err := (&peer{id: "a", tool: "a:tool"}).open(s.ctx, s.conn)
	return once(refusal(err))
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

// unread emits volatile events for a reader that takes none, and tells whether it is
// cut off.
func unread(s *stand) func() string {
	stream, err := loombridgev1.NewEventServiceClient(s.conn).Subscribe(s.ctx, &loombridgev1.SubscribeRequest{
		AgentId: "a", Topics: []*loombridgev1.TopicPosition{{Topic: "much"}},
	})
	must(s.tb, err)
	_, err = stream.Recv()
	must(s.tb, err)
	for range 200 {
		_, err := s.bridge().Emit(s.ctx, &loombridgev1.EmitRequest{
			AgentId: "a", Topic: "much", Delivery: loombridgev1.Delivery_DELIVERY_VOLATILE, PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: make([]byte, 8<<10)},
		})
		must(s.tb, err)
	}
	var once sync.Once
	seen := ""
	return func() string {
		once.Do(func() {
			for range 200 {
				if _, err := stream.Recv(); err != nil {
					seen = ended(err)
					return
				}
			}
			seen = "all came"
		})
		return seen
	}
}

// emitsBesideAnother tells whether events of a tenant are slowed down while another
// one is there, too.
func emitsBesideAnother(s *stand) func() string {
	acme, umbrella := as(s.ctx, "acme"), as(s.ctx, "umbrella")
	return func() string {
		emits(s.tb, umbrella, s.conn, "other", 1, 1, 1)
		began := time.Now()
		emits(s.tb, acme, s.conn, "beside", 2, 100_000, 1)
		return fmt.Sprint(time.Since(began) > 500*time.Millisecond)
	}
}

// sharingEffects are those of what tenants and agents share.
func sharingEffects() []effect {
	credentials, callers := twoTenants()
	fewWaiting, _ := twoTenants("--max-waiting-calls", "2")
	smallStore, _ := twoTenants("--max-store-bytes", "10000000", "--durability", "none")
	return []effect{
		{
			setting: "max-waiting-calls", args: []string{"--max-waiting-calls", "1"}, both: []string{"--max-calls", "1"},
			see:  func(s *stand) func() string { return manyCalls(s.ctx, s.saving()) },
			with: "OVERLOADED: calls in flight", without: "OK",
		},
		{
			setting: "contended-calls", args: []string{"--contended-calls", "1"}, both: fewWaiting, files: callers,
			see: crowdBesideAnother, with: "OVERLOADED: calls in flight", without: "OK",
		},
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
			setting: "max-relayed-calls", args: []string{"--max-relayed-calls", "8"}, after: 200 * time.Millisecond,
			see:  func(s *stand) func() string { return s.hangingCalls(9) },
			with: "OVERLOADED: calls that wait for agents", without: "all wait",
		},
		{
			setting: "max-searches", args: []string{"--max-searches", "1"}, both: []string{"--max-waiting-calls", "1"},
			see:  func(s *stand) func() string { return manyCalls(s.ctx, s.asking()) },
			with: "OVERLOADED: running queries", without: "OK",
		},
		{
			setting: "max-request-bytes", args: []string{"--max-request-bytes", "100000"}, after: 200 * time.Millisecond,
			see:  func(s *stand) func() string { return s.hangingCalls(6) },
			with: "OVERLOADED: bytes of requests in memory", without: "all wait",
		},
		{
			setting: "max-answer-bytes", args: []string{"--max-answer-bytes", "5000"},
			see: longAnswer, with: "OVERLOADED: bytes of answers that wait for their readers", without: "OK",
		},
		{
			setting: "max-queued-event-bytes", args: []string{"--max-queued-event-bytes", "64KiB"},
			see: unread, with: "SLOW_CONSUMER", without: "all came",
		},
		{
			setting: "contended-event-bytes", args: []string{"--contended-event-bytes", "400000"}, both: credentials, files: callers,
			see: emitsBesideAnother, with: "true", without: "false",
		},
		{
			setting: "max-agent-tool-bytes", args: []string{"--max-agent-tool-bytes", "50"},
			see: (*stand).provides, with: "INVALID_REQUEST", without: "OK",
		},
		{
			setting: "max-tenant-tool-bytes", args: []string{"--max-tenant-tool-bytes", "50"},
			see: (*stand).provides, with: "QUOTA_EXCEEDED: bytes of agents' tools", without: "OK",
		},
		{
			setting: "max-store-bytes", args: []string{"--max-store-bytes", "10000000"}, both: append(credentials, "--store-check-interval", "20ms", "--durability", "none"), files: callers,
			see: storing, with: "QUOTA_EXCEEDED: bytes on disk", without: "OK",
		},
		{
			setting: "store-check-interval", args: []string{"--store-check-interval", "20ms"}, both: smallStore, files: callers,
			see: storing, with: "QUOTA_EXCEEDED: bytes on disk", without: "OK",
		},
	}
}
