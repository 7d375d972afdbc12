package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest/filling"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const (
	// filledBytes is the size of the largest requests that are taken.
	filledBytes = 4<<20 - 4<<10
	// filledGrowth is how much the resident memory of a fresh server may grow for
	// one of them, and filledTime what it may cost in time of one processor.
	filledGrowth = 64_000_000
	filledTime   = 500 * time.Millisecond
	// filledWorst are how many are reported, and tried three at once.
	filledWorst = 3
	// clockTick is the unit of times in /proc.
	clockTick = 10 * time.Millisecond
)

// wireCodec sends and receives messages as they are on the wire.
type wireCodec struct{}

func (wireCodec) Name() string { return "proto" }

func (wireCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (wireCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// filledCost is what a request cost a server.
type filledCost struct {
	request filling.Case
	growth  int64 // of the peak of the resident memory, in bytes
	cpu     time.Duration
	err     error // how the call ended
}

func (c filledCost) String() string {
	return fmt.Sprintf("%6.1f MiB %5d ms  %s: %.80v", float64(c.growth)/(1<<20), c.cpu.Milliseconds(), c.request.Name(), c.err)
}

// proc reads what the kernel knows of a process.
type proc struct {
	tb  testing.TB
	pid int
}

func (p proc) path(name string) string { return fmt.Sprintf("/proc/%d/%s", p.pid, name) }

// status returns a line of memory in bytes.
func (p proc) status(name string) int64 {
	p.tb.Helper()
	text, err := os.ReadFile(p.path("status"))
	must(p.tb, err)
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			must(p.tb, err)
			return n << 10
		}
	}
	p.tb.Fatalf("%s has no %s", p.path("status"), name)
	return 0
}

// forgetPeak makes the peak of the resident memory what it is at the moment.
func (p proc) forgetPeak() {
	p.tb.Helper()
	must(p.tb, os.WriteFile(p.path("clear_refs"), []byte("5"), 0))
}

// cpu is the time that the process has had of processors.
func (p proc) cpu() time.Duration {
	p.tb.Helper()
	text, err := os.ReadFile(p.path("stat"))
	must(p.tb, err)
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, err := strconv.Atoi(fields[11])
	must(p.tb, err)
	system, err := strconv.Atoi(fields[12])
	must(p.tb, err)
	return time.Duration(user+system) * clockTick
}

// rest waits until the process has done nothing for a while, or ended is closed
// and it does nothing.
func (p proc) rest(ended <-chan struct{}) {
	p.tb.Helper()
	const pause, quiet, patience = 20 * time.Millisecond, 15, 3000
	before, idle := p.cpu(), 0
	for range patience {
		time.Sleep(pause)
		idle++
		if now := p.cpu(); now != before {
			before, idle = now, 0
		}
		select {
		case <-ended:
			idle += quiet / 3
		default:
		}
		if idle >= quiet {
			return
		}
	}
	p.tb.Fatal("the server does not come to rest")
}

// sendFilled makes one call and returns how it ended.
func sendFilled(ctx context.Context, conn *grpc.ClientConn, r filling.Case, body []byte) error {
	description := &grpc.StreamDesc{ClientStreams: r.Method.IsStreamingClient(), ServerStreams: r.Method.IsStreamingServer()}
	stream, err := conn.NewStream(ctx, description, r.Path(), grpc.ForceCodecV2(wireCodec{}))
	if err != nil {
		return err
	}
	for _, message := range [][]byte{r.First, body} {
		if message == nil {
			continue
		}
		if err := stream.SendMsg(message); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for {
		var answer []byte
		if err := stream.RecvMsg(&answer); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// measureFilled sends a request to a fresh server, so many times at once.
func measureFilled(t *testing.T, r filling.Case, times int) filledCost {
	t.Helper()
	process, address := mustStart(t, mustBuild(t), "--addr", "127.0.0.1:0", "--data-dir", t.TempDir(), "--workspace", t.TempDir(),
		"--durability", "none", "--log-level", "off")
	defer func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	}()
	conn := mustDial(t, address)
	defer conn.Close()
	server := proc{t, process.Process.Pid}
	var nothing []byte
	must(t, conn.Invoke(t.Context(), loombridgev1.AdminService_GetStatus_FullMethodName, nothing, &nothing, grpc.ForceCodecV2(wireCodec{})))
	server.rest(nil)

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server.forgetPeak()
	resident, cpu := server.status("VmRSS"), server.cpu()
	cost, body := filledCost{request: r}, r.Body()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var calls sync.WaitGroup
		for i := range times {
			calls.Go(func() {
				if err := sendFilled(ctx, conn, r, body); i == 0 {
					cost.err = err
				}
			})
		}
		calls.Wait()
	}()
	server.rest(ended)
	cost.growth, cost.cpu = server.status("VmHWM")-resident, server.cpu()-cpu
	cancel()
	<-ended
	return cost
}

// allFilled yields the filled requests of both APIs.
func allFilled(yield func(filling.Case) bool) {
	for _, method := range append(filling.Methods("loombridge.v1"), filling.Methods("loom.v1")...) {
		if method.Parent().FullName() == "loom.v1.Plugin" {
			continue // for plugins to serve
		}
		for r := range filling.Requests(method, filledBytes) {
			if !yield(r) {
				return
			}
		}
	}
}

// filledBriefly are the requests of an ordinary test run: those that cost most
// when what they hold is counted late.
func filledBriefly() []string {
	return []string{
		"loombridge.v1.SessionService.AppendMessages messages.tool_calls empty items",
		"loombridge.v1.BridgeService.Attach hello.topics empty items",
		"loombridge.v1.BridgeService.MemoryQuery tiers packed numbers",
		"loombridge.v1.BridgeService.Attach hello.topics.headers empty entries, 1 each",
		"loombridge.v1.BridgeService.Emit payload small objects",
		"loombridge.v1.BridgeService.Tool arguments_json held objects in 1024 KiB",
		"loombridge.v1.SessionService.RecordStep output_json small objects in 1024 KiB",
		"loom.v1.Bridge.RegisterAgent tools.metadata empty entries, 1 each",
	}
}

// One request of the largest size, filled with whatever takes the most memory or
// time, costs a fresh server no more than it can afford; nor do several at once.
func TestFilledRequestsStayCheapSoak(t *testing.T) {
	left := filledBriefly()
	for r := range allFilled {
		at := slices.Index(left, r.Name())
		if at < 0 {
			continue
		}
		left = slices.Delete(left, at, at+1)
		mustBeCheap(t, measureFilled(t, r, 1))
	}
	if len(left) > 0 {
		t.Errorf("nothing is filled so: %q", left)
	}
}

func mustBeCheap(tb testing.TB, cost filledCost) {
	tb.Helper()
	if cost.growth > filledGrowth || cost.cpu > filledTime {
		tb.Errorf("over %d MB or %v: %v", filledGrowth/1_000_000, filledTime, cost)
	}
}

// TestSoakFilledRequests sends every filled request of both APIs, and the worst
// three at once.
func TestSoakFilledRequests(t *testing.T) {
	if os.Getenv("LOOM_SOAK_ROUNDS") == "" {
		t.Skip("takes a quarter of an hour; set LOOM_SOAK_ROUNDS")
	}
	var costs []filledCost
	for r := range allFilled {
		if !strings.Contains(r.Name(), os.Getenv("LOOM_FILLED")) {
			continue
		}
		cost := measureFilled(t, r, 1)
		mustBeCheap(t, cost)
		costs = append(costs, cost)
	}
	for what, order := range map[string]func(a, b filledCost) int{
		"memory": func(a, b filledCost) int { return cmp.Compare(b.growth, a.growth) },
		"time":   func(a, b filledCost) int { return cmp.Compare(b.cpu, a.cpu) },
	} {
		slices.SortStableFunc(costs, order)
		for _, cost := range costs[:min(len(costs), filledWorst)] {
			t.Logf("most %s: %v", what, cost)
			t.Logf("  three at once: %v", measureFilled(t, cost.request, filledWorst))
		}
	}
	t.Logf("%d requests", len(costs))
}
