//go:build cgo && !norocksdb

package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// The two tenants: one floods the server, the other's calls are measured.
const (
	busyToken, quietToken = "busy-token", "quiet-token"
	// seededAgent is whose memory the flood searches, and seededRecords what is in
	// it.
	seededAgent, seededRecords = "flood-0", 5000
	// seededLines of seededLine bytes are the result that the flood searches with
	// floodPattern.
	seededLines, seededLine = 500, 1000
	// quietTopics hold the quiet tenant's events, quietEvents each.
	quietTopics, quietEvents = 10, 50
	// tenantEventBytes is what all events may take: little, so that the flood
	// reaches it.
	tenantEventBytes = 128 << 20
	// floodWarmUp is how long a flood runs before anything is measured.
	floodWarmUp = 3 * time.Second
)

const tenantCredentials = `
[[credential]]
token = "busy-token"
tenant = "busy"
agents = ["*"]

[[credential]]
token = "quiet-token"
tenant = "quiet"
agents = ["*"]
`

// tenants measures what one tenant's calls take while another one does as much
// as it can, each sort of work alone and all together.
func (b *memoryBench) tenants(ctx context.Context) error {
	fmt.Fprintf(b.table, "\nquiet tenant, busy one does\tsave alone p50 µs\tp99 µs\tit floods another server p50 µs\tp99 µs\tbeside it p50 µs\tp99 µs\tp99 ratio\taim\trefused\tevents gone\tnested calls\tbusy did\t\n")
	kinds := []string{"calls", "streams", "tools", "searches", "events", "hanging", "calls,streams,tools,searches,events,hanging"}
	if b.kinds != "" {
		kinds = strings.Split(b.kinds, ";")
	}
	for _, kind := range kinds {
		b.say("tenants: %s", kind)
		if err := b.besides(ctx, kind); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		if err := b.table.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// besides measures one flood on a separate server.
func (b *memoryBench) besides(ctx context.Context, kind string) error {
	credentials := filepath.Join(b.folder, "credentials.toml")
	if err := os.WriteFile(credentials, []byte(tenantCredentials), 0o600); err != nil {
		return err
	}
	s, err := b.serve(ctx, "tenants", "--credentials", credentials, "--events-max-bytes", fmt.Sprint(tenantEventBytes))
	if err != nil {
		return err
	}
	defer s.remove()
	if err := seedBusy(ctx, s.addr); err != nil {
		return err
	}
	// The same flood on a server that the quiet tenant does not use: what the machine
	// makes of it.
	other, err := b.serve(ctx, "elsewhere", "--credentials", credentials, "--events-max-bytes", fmt.Sprint(tenantEventBytes))
	if err != nil {
		return err
	}
	defer other.remove()
	if err := seedBusy(ctx, other.addr); err != nil {
		return err
	}
	q, err := newQuiet(ctx, s.addr)
	if err != nil {
		return err
	}
	defer q.conn.Close()
	var alone, elsewhere, beside []sample
	var did string
	for range b.rounds {
		a, err := q.save(ctx, b.length)
		if err != nil {
			return err
		}
		alone = append(alone, a)
		e, _, err := b.flooded(ctx, other.addr, kind, func() (sample, error) { return q.save(ctx, b.length) })
		if err != nil {
			return err
		}
		elsewhere = append(elsewhere, e)
		w, told, err := b.flooded(ctx, s.addr, kind, func() (sample, error) { return q.save(ctx, b.length) })
		if err != nil {
			return err
		}
		beside, did = append(beside, w), told
	}
	gone, err := q.eventsGone(ctx)
	if err != nil {
		return err
	}
	p99a, p99w := median(alone, p99us), median(beside, p99us)
	fmt.Fprintf(b.table, "%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.2f\t≤ 3\t%d\t%d\t%s\t%s\t\n", kind, median(alone, p50us), p99a,
		median(elsewhere, p50us), median(elsewhere, p99us), median(beside, p50us), p99w, p99w/p99a, q.refused, gone, fmt.Sprintf("%d of %d", q.nestedOK, q.nested), did)
	return nil
}

// flooded measures while the busy tenant works, and returns what it did.
func (b *memoryBench) flooded(ctx context.Context, addr, kind string, measure func() (sample, error)) (sample, string, error) {
	command := exec.CommandContext(ctx, b.self, "-flood", kind, "-addr", addr)
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		return sample{}, "", err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return sample{}, "", err
	}
	if err := command.Start(); err != nil {
		return sample{}, "", err
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	time.Sleep(floodWarmUp)
	s, failed := measure()
	in.Close() //nolint:errcheck // its end is the signal
	lines.Scan()
	did := lines.Text()
	io.Copy(io.Discard, out) //nolint:errcheck // nothing more is said
	return s, did, cmp.Or(failed, command.Wait())
}

// seedBusy gives the busy tenant a memory to search, and a long result.
func seedBusy(ctx context.Context, addr string) error {
	conn, err := dialAs(addr, busyToken)
	if err != nil {
		return err
	}
	defer conn.Close()
	pool := texts(7, 1024)
	for begin := 0; begin < seededRecords; begin += 500 {
		var drafts []*loombridgev1.MemorySaveRequest
		for i := range 500 {
			drafts = append(drafts, &loombridgev1.MemorySaveRequest{Text: pool[(begin+i)%len(pool)]})
		}
		if _, err := loombridgev1.NewMemoryServiceClient(conn).BatchSave(ctx, &loombridgev1.BatchSaveRequest{AgentId: seededAgent, Records: drafts}); err != nil {
			return err
		}
	}
	_, err = contexts.New(conn).RecordStep(ctx, &loombridgev1.RecordStepRequest{
		AgentId: seededAgent, ToolName: "my:tool", Success: true,
		OutputForm: &loombridgev1.RecordStepRequest_OutputText{OutputText: strings.Repeat(strings.Repeat("x", seededLine)+"!\n", seededLines)},
	})
	return err
}

// quiet is the tenant that is measured.
type quiet struct {
	conn    *grpc.ClientConn
	bridge  loombridgev1.BridgeServiceClient
	pool    []string
	saved   int
	refused int
	// nested calls of tools that call tools were made, of which nestedOK succeeded.
	nested, nestedOK int
}

func newQuiet(ctx context.Context, addr string) (*quiet, error) {
	conn, err := dialAs(addr, quietToken)
	if err != nil {
		return nil, err
	}
	q := &quiet{conn: conn, bridge: loombridgev1.NewBridgeServiceClient(conn), pool: texts(11, 1024)}
	if err := q.provideNested(ctx); err != nil {
		return nil, err
	}
	for i := range quietTopics * quietEvents {
		_, err := q.bridge.Emit(ctx, &loombridgev1.EmitRequest{AgentId: "quiet", Topic: fmt.Sprintf("quiet.%d", i%quietTopics)})
		if err != nil {
			return nil, err
		}
	}
	return q, nil
}

// save saves one record after another. Beside every tenth save it also calls a
// tool, asks, emits, calls tools that call tools, and opens a stream; a refusal of any is counted.
func (q *quiet) save(ctx context.Context, length time.Duration) (sample, error) {
	var s sample
	begin := time.Now()
	for time.Since(begin) < length {
		q.saved++
		before := time.Now()
		_, err := q.bridge.MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: "quiet", Text: q.pool[q.saved%len(q.pool)]})
		s.latencies = append(s.latencies, time.Since(before))
		q.note("save", err)
		if q.saved%10 == 0 {
			q.others(ctx)
		}
	}
	s.elapsed = time.Since(begin)
	slices.Sort(s.latencies)
	return s, ctx.Err()
}

func (q *quiet) note(what string, err error) {
	if err != nil {
		if q.refused++; q.refused < 5 {
			fmt.Fprintln(os.Stderr, "the quiet tenant's", what, "failed:", err)
		}
	}
}

// others makes one call of each other sort.
func (q *quiet) others(ctx context.Context) {
	_, err := q.bridge.Tool(ctx, &loombridgev1.ToolRequest{AgentId: "quiet", Name: "fs:list_dir"})
	q.note("tool", err)
	_, err = q.bridge.MemoryQuery(ctx, &loombridgev1.MemoryQueryRequest{AgentId: "quiet", Query: q.pool[q.saved%len(q.pool)][:80]})
	q.note("query", err)
	_, err = q.bridge.Emit(ctx, &loombridgev1.EmitRequest{AgentId: "quiet", Topic: "quiet.more"})
	q.note("emit", err)
	q.callNested(ctx)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := loombridgev1.NewEventServiceClient(q.conn).Subscribe(ctx, &loombridgev1.SubscribeRequest{
		AgentId: "quiet", Topics: []*loombridgev1.TopicPosition{{Topic: "quiet.0"}},
	})
	if err == nil {
		_, err = stream.Recv()
	}
	q.note("stream", err)
}

// eventsGone is how many of the events of the beginning are not there any more.
func (q *quiet) eventsGone(ctx context.Context) (int, error) {
	gone := 0
	for i := range quietTopics {
		after := int64(0)
		reading, cancel := context.WithTimeout(ctx, 10*time.Second)
		stream, err := loombridgev1.NewEventServiceClient(q.conn).Subscribe(reading, &loombridgev1.SubscribeRequest{
			AgentId: "quiet", Topics: []*loombridgev1.TopicPosition{{Topic: fmt.Sprintf("quiet.%d", i), AfterSequence: &after}},
		})
		if err != nil {
			cancel()
			return 0, err
		}
		first, err := stream.Recv()
		cancel()
		if err != nil {
			return 0, err
		}
		gone += min(quietEvents, int(first.GetReady().GetPositions()[0].GetAfterSequence()))
	}
	return gone, nil
}

// nestedTool is a tool of the quiet tenant that calls a tool of the server.
const nestedTool = "quiet:nested"

// provideNested attaches an agent that serves nestedTool until ctx ends.
func (q *quiet) provideNested(ctx context.Context) error {
	stream, err := q.bridge.Attach(ctx)
	if err != nil {
		return err
	}
	err = stream.Send(&loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_Hello{Hello: &loombridgev1.AttachHello{
		AgentId: "nested", Tools: []*loombridgev1.ToolDescriptor{{Name: nestedTool}},
	}}})
	if err != nil {
		return err
	}
	if _, err := stream.Recv(); err != nil { // it is registered
		return err
	}
	go q.serveNested(ctx, stream)
	return nil
}

func (q *quiet) serveNested(ctx context.Context, stream grpc.BidiStreamingClient[loombridgev1.AttachRequest, loombridgev1.AttachResponse]) {
	var sending sync.Mutex
	for {
		m, err := stream.Recv()
		if err != nil {
			return
		}
		call := m.GetToolCall()
		if call == nil {
			continue
		}
		go func() {
			r, err := q.bridge.Tool(ctx, &loombridgev1.ToolRequest{AgentId: "nested", Name: "fs:list_dir"})
			sending.Lock()
			defer sending.Unlock()
			_ = stream.Send(&loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_ToolResult{ToolResult: &loombridgev1.AttachToolResult{
				CallId: call.GetCallId(), Success: err == nil && r.GetSuccess(),
			}}})
		}()
	}
}

// callNested calls the tool several times at once, and counts the successes.
func (q *quiet) callNested(ctx context.Context) {
	const atOnce = 8
	var calls sync.WaitGroup
	errs := make(chan error, atOnce)
	for range atOnce {
		calls.Go(func() {
			r, err := q.bridge.Tool(ctx, &loombridgev1.ToolRequest{AgentId: "quiet", Name: nestedTool})
			if err == nil && !r.GetSuccess() {
				err = errors.New(r.GetErrorMessage())
			}
			errs <- err
		})
	}
	calls.Wait()
	for range atOnce {
		err := <-errs
		if q.note("nested call", err); err == nil {
			q.nestedOK++
		}
		q.nested++
	}
}
