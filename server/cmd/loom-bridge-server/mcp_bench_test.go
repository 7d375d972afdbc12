package main

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// BenchmarkHosts has 64 clients ask memory at once, each again a second after it asked, by
// gRPC and through hosts in turns, and reports the medians of both and their difference
// in milliseconds.
func BenchmarkHosts(b *testing.B) {
	p := MustRun(b, b.TempDir(), "--mcp-addr", "127.0.0.1:0")
	for i := range 1000 {
		save(b, p, fmt.Sprint("Bitcoin closed at ", i, " on day ", i))
	}
	url := p.mcpURL(b) + "?agent=a"
	var hosts [crowdOfHosts]*sdk.ClientSession
	for i := range hosts {
		client := sdk.NewClient(&sdk.Implementation{Name: "bench"}, nil)
		session, err := client.Connect(b.Context(), &sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: &http.Transport{}}}, nil)
		must(b, err)
		defer func() { _ = session.Close() }()
		hosts[i] = session
	}
	for b.Loop() {
		direct := medianOf(b, func(int) error {
			_, err := p.bridge().MemoryQuery(b.Context(), &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: "bitcoin day 7"})
			return err
		})
		hosted := medianOf(b, func(client int) error {
			_, err := hosts[client].CallTool(b.Context(), &sdk.CallToolParams{Name: "memory_query", Arguments: object{"query": "bitcoin day 7"}})
			return err
		})
		b.ReportMetric(float64(direct.Microseconds())/1000, "grpc-ms")
		b.ReportMetric(float64(hosted.Microseconds())/1000, "mcp-ms")
		b.ReportMetric(float64((hosted-direct).Microseconds())/1000, "over-ms")
	}
}

const crowdOfHosts, askEvery, asksEach = 64, time.Second, 6

// medianOf is the median time of an ask while all clients ask.
func medianOf(b *testing.B, ask func(client int) error) time.Duration {
	b.Helper()
	var mu sync.Mutex
	var took []time.Duration
	var group sync.WaitGroup
	for client := range crowdOfHosts {
		group.Go(func() {
			time.Sleep(askEvery * time.Duration(client) / crowdOfHosts)
			next := time.Now()
			for range asksEach {
				time.Sleep(time.Until(next))
				began := time.Now()
				if err := ask(client); err != nil {
					b.Error(err)
					return
				}
				mu.Lock()
				took = append(took, time.Since(began))
				mu.Unlock()
				next = next.Add(askEvery)
			}
		})
	}
	group.Wait()
	slices.Sort(took)
	return took[len(took)/2]
}
