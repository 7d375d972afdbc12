//go:build cgo && !norocksdb

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const (
	// fewScopes are what many are compared with.
	fewScopes = 10
	// scopeRecords are in each of them.
	scopeRecords = 20
	// coldRecords are in the scope that is asked after a start, coldAgent.
	coldRecords, coldAgent = 100_000, "bench-cold"
)

func scopeName(i int) string { return fmt.Sprintf("bench-scope-%d", i) }

// scopes measures queries among few and many scopes, and what a server takes
// and how fast it is there with a large one.
func (b *memoryBench) scopes(ctx context.Context) error {
	talk, err := b.newTalk()
	if err != nil {
		return err
	}
	if err := b.manyScopes(ctx, talk); err != nil {
		return err
	}
	return b.coldStart(ctx, talk)
}

func (b *memoryBench) manyScopes(ctx context.Context, talk *talk) error {
	server, err := b.serve(ctx, "scopes")
	if err != nil {
		return err
	}
	defer server.remove()
	fmt.Fprintf(b.table, "\nqueries, %d records a scope\tof scopes\tp50 ms\tp95 ms\tp95 / of %d alone\tresident MB\taim\t\n", scopeRecords, fewScopes)
	alone := 0.0
	filled := 0
	for _, m := range []struct {
		name         string
		asked, exist int
	}{
		{"few", fewScopes, fewScopes},
		{"the same few among many", fewScopes, b.many},
		{"all of many", b.many, b.many},
	} {
		b.say("filling %d scopes", m.exist-filled)
		if err := server.fill(ctx, talk, filled, m.exist); err != nil {
			return err
		}
		filled = m.exist
		s, err := b.queryLoad(ctx, server, 1, func(c *client) *loombridgev1.MemoryQueryRequest {
			rng := rand.New(rand.NewPCG(uint64(c.calls), 9)) //nolint:gosec // repeatable on purpose
			return &loombridgev1.MemoryQueryRequest{
				AgentId: scopeName(rng.IntN(m.asked)), Query: talk.questions[c.calls%len(talk.questions)], Limit: queryLimit,
			}
		})
		if err != nil {
			return err
		}
		if alone == 0 {
			alone = p95us(s)
		}
		resident, err := server.resident()
		if err != nil {
			return err
		}
		fmt.Fprintf(b.table, "%s\t%d of %d\t%.2f\t%.2f\t%.2f\t%.0f\t≤ 1.5, ≤ 300 MB\t\n",
			m.name, m.asked, m.exist, ms(p50us(s)), ms(p95us(s)), p95us(s)/alone, resident)
	}
	return b.table.Flush()
}

// fill saves the records of scopes.
func (s *memoryServer) fill(ctx context.Context, talk *talk, from, to int) error {
	return each(to-from, crowdedClients, func(i int) error {
		records := make([]*loombridgev1.MemorySaveRequest, scopeRecords)
		for k := range records {
			records[k] = talk.turn((from+i)*scopeRecords + k)
		}
		_, err := s.memory.BatchSave(ctx, &loombridgev1.BatchSaveRequest{AgentId: scopeName(from + i), Records: records})
		return err
	})
}

// coldStart opens a large scope again and again. What the kernel has of its
// files stays in memory, as it would when a server is replaced.
func (b *memoryBench) coldStart(ctx context.Context, talk *talk) error {
	const name = "cold"
	server, err := b.serve(ctx, name)
	if err != nil {
		return err
	}
	defer func() {
		if server != nil {
			server.remove()
		}
	}()
	drafts := talk.turns(coldRecords)
	b.say("importing %d records", coldRecords)
	if _, err := server.load(ctx, coldAgent, drafts); err != nil {
		return err
	}
	ask := func(i int) *loombridgev1.MemoryQueryRequest {
		return &loombridgev1.MemoryQueryRequest{AgentId: coldAgent, Query: talk.questions[i%len(talk.questions)], Limit: queryLimit}
	}
	imported, err := server.resident()
	if err != nil {
		return err
	}
	if _, err := b.queryLoad(ctx, server, crowdedClients, func(c *client) *loombridgev1.MemoryQueryRequest { return ask(c.calls + 101*c.number) }); err != nil {
		return err
	}
	asked, err := server.resident()
	if err != nil {
		return err
	}
	var starts [3][]time.Duration
	for i := range coldStarts {
		server.end()
		if server, err = b.startOnce(ctx, name, &starts, ask(i), ask(i+coldStarts)); err != nil {
			return err
		}
	}
	if _, err := b.queryLoad(ctx, server, crowdedClients, func(c *client) *loombridgev1.MemoryQueryRequest { return ask(c.calls + 101*c.number) }); err != nil {
		return err
	}
	reopened, err := server.resident()
	if err != nil {
		return err
	}
	fmt.Printf("\nA scope of %d records, %d starts (medians): listening after %.0f ms, first answer after %.0f ms (aim ≤ 1000), the next query takes %.1f ms\n",
		coldRecords, coldStarts, middle(starts[0]), middle(starts[1]), middle(starts[2]))
	fmt.Printf("Resident: %.0f MB after the import, %.0f MB when %d clients had asked, %.0f MB when they had asked the reopened one (aim ≤ 300)\n",
		imported, asked, crowdedClients, reopened)
	return nil
}

// startOnce starts a server and notes when it listened, when it had answered one
// query, and how long a second one took.
func (b *memoryBench) startOnce(ctx context.Context, name string, starts *[3][]time.Duration, queries ...*loombridgev1.MemoryQueryRequest) (*memoryServer, error) {
	begin := time.Now()
	server, err := b.serve(ctx, name)
	if err != nil {
		return nil, err
	}
	starts[0] = append(starts[0], time.Since(begin))
	for i, q := range queries {
		if _, _, err := server.ask(ctx, q); err != nil {
			return server, err
		}
		starts[1+i] = append(starts[1+i], time.Since(begin))
		begin = time.Now()
	}
	return server, nil
}

// middle is the median in ms.
func middle(times []time.Duration) float64 {
	slices.Sort(times)
	return float64(times[len(times)/2]) / float64(time.Millisecond)
}
