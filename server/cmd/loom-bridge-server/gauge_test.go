package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// gauge measures a running server by its Prometheus metrics.
type gauge struct {
	url    string
	client *http.Client
	bridge loombridgev1.BridgeServiceClient
}

// footprint is what a server takes at one time.
type footprint struct {
	goroutines, heap, resident float64 // heap and resident in bytes
	kept                       float64 // bytes of free heap that the kernel has not got back yet
	collections                float64 // garbage collections since it started
}

func (f footprint) String() string {
	return fmt.Sprintf("%4.0f goroutines, %6.1f MiB heap in use, %6.1f MiB resident, of that %6.1f MiB free heap",
		f.goroutines, f.heap/(1<<20), f.resident/(1<<20), f.kept/(1<<20))
}

// mustBeNear fails the test if more is left than allowed.
func (f footprint) mustBeNear(tb testing.TB, before footprint, goroutines, heap float64) {
	tb.Helper()
	if left := f.goroutines - before.goroutines; left > goroutines {
		tb.Errorf("%.0f goroutines are left, allowed are %.0f", left, goroutines)
	}
	if left := f.heap - before.heap; left > heap {
		tb.Errorf("%.0f bytes of heap are left, allowed are %.0f", left, heap)
	}
}

// newGauge takes the server's address, and that of its metrics.
func newGauge(tb testing.TB, address, metrics string) *gauge {
	tb.Helper()
	return &gauge{
		url: "http://" + metrics + "/metrics",
		// A connection that stays would count among the goroutines.
		client: &http.Client{Timeout: soakDeadline, Transport: &http.Transport{DisableKeepAlives: true}},
		bridge: loombridgev1.NewBridgeServiceClient(MustDial(tb, address)),
	}
}

func (g *gauge) read(tb testing.TB) footprint {
	tb.Helper()
	response, err := g.client.Get(g.url)
	must(tb, err)
	defer response.Body.Close()
	values := map[string]float64{}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		values[name], _ = strconv.ParseFloat(value, 64) // of the lines that count, all are numbers
	}
	must(tb, lines.Err())
	f := footprint{
		goroutines: values["go_goroutines"], heap: values["go_memstats_heap_inuse_bytes"],
		resident:    values["process_resident_memory_bytes"],
		kept:        values["go_memstats_heap_idle_bytes"] - values["go_memstats_heap_released_bytes"],
		collections: values["go_gc_duration_seconds_count"],
	}
	if f.goroutines == 0 || f.heap == 0 || f.resident == 0 || f.collections == 0 {
		tb.Fatalf("%s lacks a metric: %+v", g.url, f)
	}
	return f
}

// settled makes the server collect its garbage until neither the heap nor the
// number of goroutines falls any more. It makes garbage for that: events
// that nobody listens to.
func (g *gauge) settled(tb testing.TB) footprint {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), settleLimit)
	defer cancel()
	const enough = 10 // collections without a change for the better
	payload := make([]byte, settleEventBytes)
	best := g.read(tb)
	for since := best.collections; ctx.Err() == nil; {
		_, err := g.bridge.Emit(ctx, &loombridgev1.EmitRequest{
			AgentId: "gauge", Topic: "gauge.nothing", Delivery: loombridgev1.Delivery_DELIVERY_VOLATILE,
			PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: payload},
		})
		if err != nil && ctx.Err() == nil {
			tb.Fatal(err)
		}
		now := g.read(tb)
		if now.heap < best.heap*0.98 || now.goroutines < best.goroutines {
			since = now.collections
		}
		if now.heap < best.heap || now.goroutines < best.goroutines {
			best = now
		}
		if now.collections >= since+enough {
			break
		}
	}
	return best
}

const (
	// settleLimit bounds how long a server may take to become small again.
	settleLimit = time.Minute
	// settleEventBytes is small beside the heap, so that what is read just after
	// a collection is close to what was left by it.
	settleEventBytes = 128 << 10
)

// eventually waits for something that another process does, and fails the test
// with the last error when it takes too long.
func eventually(tb testing.TB, limit time.Duration, check func() error) {
	tb.Helper()
	deadline := time.Now().Add(limit)
	err := check()
	for err != nil && time.Now().Before(deadline) {
		time.Sleep(5 * time.Millisecond)
		err = check()
	}
	if err != nil {
		tb.Fatalf("after %v: %v", limit, err)
	}
}
