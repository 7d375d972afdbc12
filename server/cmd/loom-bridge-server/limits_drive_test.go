package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// random is so many bytes that can't be compressed.
func random(bytes int) []byte {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails
	return b
}

// decided waits until each of so many calls at once was either taken or refused, and returns
// how many were taken.
func (s *stand) decided(n int, taken, refused func() int) float64 {
	for taken()+refused() < n {
		if s.ctx.Err() != nil {
			s.tb.Fatal(s.ctx.Err())
		}
		time.Sleep(2 * time.Millisecond)
	}
	return float64(taken())
}

// largest is the largest of some sizes around a limit that is taken.
func largest(most float64, taken func(size int) bool) (reached float64) {
	for _, part := range []float64{0.5, 0.9, 0.97, 1, 1.001, 1.03, 1.1, mostOver, 1.3, 2, 4} {
		if size := int(part * most); taken(size) {
			reached = float64(size)
		}
	}
	return reached
}

// untilRefused counts what is taken before something is refused, far over the limit at most.
func untilRefused(most float64, take func(i int) error) (taken float64) {
	for i := range int(4*most) + 4 {
		if take(i) != nil {
			break
		}
		taken++
	}
	return taken
}

// atOnce makes calls at once that end with the test, and counts those that are refused.
func (s *stand) atOnce(n int, call func(ctx context.Context, i int) error) (refused *atomic.Int64) {
	refused = &atomic.Int64{}
	ctx, cancel := context.WithCancel(s.ctx)
	s.tb.Cleanup(cancel)
	for i := range n {
		go func() {
			if err := call(ctx, i); err != nil && ctx.Err() == nil {
				refused.Add(1)
			}
		}()
	}
	return refused
}

// count reads a counter.
func count(of *atomic.Int64) func() int {
	return func() int { return int(of.Load()) }
}

// atModel counts the questions that the embedder was asked.
func (s *stand) atModel() int {
	s.model.mu.Lock()
	defer s.model.mu.Unlock()
	return len(s.model.asked)
}

func (s *stand) memories() loombridgev1.MemoryServiceClient {
	return loombridgev1.NewMemoryServiceClient(s.conn)
}

// list counts records that a filter lets through.
func (s *stand) list(filter string) float64 {
	got, err := s.memories().ListRecords(s.ctx, &loombridgev1.ListRecordsRequest{AgentId: s.agent, Filter: filter, PageSize: 500})
	must(s.tb, err)
	return float64(len(got.GetRecords()))
}

// compressed is what CompressResult shows of a result.
func (s *stand) compressed(tool, content string) *loombridgev1.CompressResultResponse {
	got, err := s.contexts().CompressResult(s.ctx, &loombridgev1.CompressResultRequest{
		AgentId: s.agent, SessionId: "s", ToolName: tool, ToolCallId: fmt.Sprint("c", len(content)), Content: content,
	})
	must(s.tb, err)
	return got
}

// emitted emits an event with some bytes.
func (s *stand) emitted(topic string, bytes int, how loombridgev1.Delivery) error {
	_, err := s.bridge().Emit(s.ctx, &loombridgev1.EmitRequest{
		AgentId: s.agent, Topic: topic, Delivery: how, PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: random(bytes)},
	})
	return err
}

// drivenLimits are the limits that a started server is driven to, by server.
func drivenLimits() []limits {
	return slices.Concat(sizeLimits(), countLimits(), callLimits(), timeLimits())
}

func sizeLimits() []limits {
	return []limits{
		{rows: []limit{
			{"max-receive-bytes", "64KiB", 64 << 10, "bytes", "longer and longer records", func(s *stand) float64 {
				return largest(64<<10, func(size int) bool {
					_, err := s.bridge().MemorySave(s.ctx, &loombridgev1.MemorySaveRequest{AgentId: "a", Text: strings.Repeat("x", size-10)})
					return err == nil
				})
			}},
			{"max-result-bytes", "20000", 20000, "bytes", "longer and longer uploads", func(s *stand) float64 {
				return largest(20000, func(size int) bool {
					g := &given{form: loombridgev1.ResultForm_RESULT_FORM_BYTES, data: random(size)}
					_, err := g.upload(s.ctx, s.contexts(), &loombridgev1.RecordStepRequest{AgentId: "uploads", ToolName: "my:tool", Success: true})
					return err == nil
				})
			}},
			{"blob-max-bytes", "300000", 300000, "bytes", "results of 10,000 bytes", func(s *stand) float64 {
				return 10000 * untilRefused(30, func(int) error {
					g := &given{form: loombridgev1.ResultForm_RESULT_FORM_BYTES, data: random(10000)}
					_, err := g.upload(s.ctx, s.contexts(), &loombridgev1.RecordStepRequest{AgentId: "hoards", ToolName: "my:tool", Success: true})
					return err
				})
			}},
		}},
		{rows: []limit{
			{"tool-result-max-tokens", "50", 50, "tokens", "CompressResult of 290 words", func(s *stand) float64 {
				return float64(strings.Count(s.compressed("my:tool", strings.Repeat("word ", 290)).GetContent(), "word"))
			}},
		}},
		{change: func(_ *stand, c *Config) { checkedOften(c) }, rows: []limit{
			{"max-store-bytes", "20000000", 20e6, "bytes", "events of 200,000 bytes until one is refused", func(s *stand) float64 {
				return 200_000 * untilRefused(100, func(int) error { return s.emitted("large", 200_000, loombridgev1.Delivery_DELIVERY_DURABLE) })
			}},
		}},
		{change: func(_ *stand, c *Config) { c.Retention.Every = 20 * time.Millisecond }, rows: []limit{
			{"events-max-bytes", "30000", 30000, "bytes", "100 events more on each of two topics", func(s *stand) float64 {
				s.keptEvents(30000, "one")
				return s.keptEvents(30000, "two", "one")
			}},
		}},
	}
}

// keptEvents emits 100 events and returns how many bytes of topics the server keeps, once
// that is within the limit.
func (s *stand) keptEvents(most float64, topics ...string) (bytes float64) {
	const events, size = 100, 1000
	for range events {
		must(s.tb, s.emitted(topics[0], size, loombridgev1.Delivery_DELIVERY_DURABLE))
	}
	for end := time.Now().Add(waitTime); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		bytes = 0
		for _, topic := range topics {
			bytes += size * (events - s.gone(topic))
		}
		if bytes <= most {
			break
		}
	}
	return bytes
}

// gone counts the events of a topic that are not kept any more.
func (s *stand) gone(topic string) float64 {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	stream, err := loombridgev1.NewEventServiceClient(s.conn).Subscribe(ctx, &loombridgev1.SubscribeRequest{
		AgentId: s.agent, Topics: []*loombridgev1.TopicPosition{{Topic: topic, AfterSequence: new(int64)}},
	})
	must(s.tb, err)
	ready, err := stream.Recv()
	must(s.tb, err)
	return float64(ready.GetReady().GetPositions()[0].GetAfterSequence())
}

func countLimits() []limits {
	return []limits{
		{rows: []limit{
			{"memory-limit", "20", 20, "records", "60 records that are saved", func(s *stand) float64 {
				for i := range 60 {
					save(s.tb, s.process, fmt.Sprint("record ", i))
				}
				return s.list("archived = false")
			}},
			{"archive-limit", "10", 10, "records", "those that the limit archives", func(s *stand) float64 { return s.list("archived = true") }},
			{"max-versions", "3", 3, "versions", "ten updates of a record", func(s *stand) float64 {
				saved, err := s.bridge().MemorySave(s.ctx, &loombridgev1.MemorySaveRequest{AgentId: "v", Text: "v"})
				must(s.tb, err)
				for i := range 10 {
					_, err := s.memories().UpdateRecord(s.ctx, &loombridgev1.UpdateRecordRequest{
						AgentId: "v", Name: &loombridgev1.UpdateRecordRequest_Id{Id: saved.GetId()}, Record: &loombridgev1.MemorySaveRequest{Text: fmt.Sprint("v", i)},
					})
					must(s.tb, err)
				}
				got, err := s.memories().ListRecords(s.ctx, &loombridgev1.ListRecordsRequest{AgentId: "v", Name: &loombridgev1.ListRecordsRequest_Id{Id: saved.GetId()}})
				must(s.tb, err)
				return float64(len(got.GetRecords()) - 1) // the last is no earlier one
			}},
			{"tool-limits", "fs:list_dir 3/h", 3, "calls", "calls until one is refused", func(s *stand) float64 {
				return untilRefused(3, func(int) error {
					_, err := callTool(s.tb, s.process, "fs:list_dir", `{}`)
					return err
				})
			}},
			{"max-streams", "8", 8, "streams", "subscriptions until one is refused", func(s *stand) float64 {
				return untilRefused(8, func(int) error { return s.listen() })
			}},
		}},
		{rows: []limit{{"max-connections", "4", 4, "connections", "16 clients", func(s *stand) float64 {
			must(s.tb, s.listen())
			return 1 + s.listening(15, func() *process { return &process{conn: MustDial(s.tb, s.Address)} })
		}}}},
		{both: []string{"--workspace", "$DIR/work", "--backup-dir", "$DIR/backups", "--backup-interval", "0", "--shell-allow", "sleep"}, files: map[string]string{"work/f": ""}, rows: []limit{
			{"backup-keep", "2", 2, "backups", "six backups", func(s *stand) float64 {
				admin := loombridgev1.NewAdminServiceClient(s.conn)
				for i := range 6 {
					save(s.tb, s.process, fmt.Sprint("record ", i))
					stream, err := admin.CreateBackup(s.ctx, &loombridgev1.CreateBackupRequest{})
					for err == nil {
						_, err = stream.Recv()
					}
					if !errors.Is(err, io.EOF) {
						s.tb.Fatal(err)
					}
				}
				got, err := admin.ListBackups(s.ctx, &loombridgev1.ListBackupsRequest{})
				must(s.tb, err)
				return float64(len(got.GetBackups()))
			}},
			{"max-jobs", "8", 8, "jobs", "jobs until one is refused", func(s *stand) float64 {
				return untilRefused(8, func(int) error {
					_, err := callTool(s.tb, s.process, "system:shell", `{"command":"sleep","args":["1000"],"background":true}`)
					return err
				})
			}},
		}},
	}
}

// listening counts the subscriptions that begin, of so many at once.
func (s *stand) listening(n int, of func() *process) float64 {
	var begun, refused atomic.Int64
	for range n {
		on := *s
		on.process = of()
		go func() {
			if on.listen() != nil {
				refused.Add(1)
			} else {
				begun.Add(1)
			}
		}()
	}
	return s.decided(n, count(&begun), count(&refused))
}

func callLimits() []limits {
	both := []string{"--workspace", "$DIR/work", "--shell-allow", "sh"}
	files := map[string]string{"work/f": ""}
	return []limits{
		{both: both, files: files, rows: []limit{
			{"max-calls", "8", 8, "calls", "24 programs that do not end", func(s *stand) float64 { return s.programs(24) }},
		}},
		{both: both, files: files, rows: []limit{{"max-tools", "8", 8, "tools", "24 programs that take turns", (*stand).turns}}},
		{rows: []limit{{"max-message-bytes", "200000", 200000, "bytes", "32 calls of 20,000 bytes that are not answered", func(s *stand) float64 { return 20000 * s.hanging(32, 20000) }}}},
	}
}

// programs starts programs at once that do not end, and counts those that run.
func (s *stand) programs(n int) float64 {
	refused := s.atOnce(n, func(ctx context.Context, i int) error {
		_, err := s.bridge().Tool(ctx, &loombridgev1.ToolRequest{
			AgentId: "a", Name: "system:shell", ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{
				ArgumentsJson: fmt.Sprintf(`{"command":"sh","args":["-c","touch run%d; sleep 1000"]}`, i),
			},
		})
		return err
	})
	return s.decided(n, s.begun, count(refused))
}

// turns starts more programs at once than may run, and returns how many were seen to run
// side by side. Each looks when it begins, and all wait until the first have looked.
func (s *stand) turns() float64 {
	const n, first = 24, 6
	var over atomic.Int64
	s.atOnce(n, func(ctx context.Context, i int) error {
		_, err := s.bridge().Tool(ctx, &loombridgev1.ToolRequest{
			AgentId: "a", Name: "system:shell", ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{
				ArgumentsJson: fmt.Sprintf(`{"command":"sh","args":["-c","touch run%d; ls | grep -c run > seen%d; while [ ! -e go ]; do sleep 0.01; done; sleep 0.1; rm run%d"]}`, i, i, i),
			},
		})
		over.Add(1)
		return err
	})
	s.decided(first, s.begun, func() int { return 0 })
	must(s.tb, os.WriteFile(filepath.Join(s.dir, "work", "go"), nil, 0o600))
	s.decided(n, count(&over), func() int { return 0 })
	seen, err := filepath.Glob(filepath.Join(s.dir, "work", "seen*"))
	must(s.tb, err)
	most := 0
	for _, file := range seen {
		text, err := os.ReadFile(file)
		must(s.tb, err)
		number, err := strconv.Atoi(strings.TrimSpace(string(text)))
		must(s.tb, err)
		most = max(most, number)
	}
	return float64(most)
}

// begun counts the programs that run.
func (s *stand) begun() int {
	found, err := filepath.Glob(filepath.Join(s.dir, "work", "run*"))
	must(s.tb, err)
	return len(found)
}

// hanging counts the calls that wait for an agent, of so many at once.
func (s *stand) hanging(n, bytes int) float64 {
	var came atomic.Int64
	provide(s.tb, s.ctx, s.conn, "hanging", "hanging:tool", func(*peerStream, pushed) { came.Add(1) })
	refused := s.atOnce(n, func(ctx context.Context, _ int) error {
		_, err := s.bridge().Tool(ctx, &loombridgev1.ToolRequest{AgentId: "hanging", Name: "hanging:tool", Thought: strings.Repeat("x", bytes)})
		return err
	})
	return s.decided(n, count(&came), count(refused))
}
