//go:build cgo && !norocksdb

package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/peers"
)

const (
	// queryLimit is how many hits are asked for.
	queryLimit = 10
	// crowdedClients is the number of concurrent clients, measured in addition to one
	// alone.
	crowdedClients = 16
)

// queryAims are the targets: p95 in ms with one client, by the number of records.
var queryAims = map[int]string{5_000: "5 ms; 500/s (1000)", 10_000: "10 ms", 100_000: "25 ms"}

// query measures queries in scopes of several sizes, by words alone and with a
// vector of the caller's, and the same queries in SQLite, which has no server
// between.
func (b *memoryBench) query(ctx context.Context) error {
	talk, err := b.newTalk()
	if err != nil {
		return err
	}
	model := talk.model()
	questions := talk.ask(model)
	fmt.Fprintf(b.table, "\nqueries, limit %d\trecords\tclients\tp50 ms\tp95 ms\t/s\tresident MB\tFTS5 p50 / ours\tFTS5 p95 / ours\taim\t\n", queryLimit)
	for _, size := range b.sizes {
		drafts := talk.turns(size)
		embed(model, drafts)
		words, err := b.querySize(ctx, drafts, questions)
		if err != nil {
			return err
		}
		if err := b.querySQLite(ctx, drafts, questions, words); err != nil {
			return err
		}
	}
	return b.table.Flush()
}

// querySize measures one size and returns what one client saw of words alone.
func (b *memoryBench) querySize(ctx context.Context, drafts []*loombridgev1.MemorySaveRequest, questions []askedText) (words sample, err error) {
	const owner = "bench-talk"
	server, err := b.serve(ctx, fmt.Sprintf("query-%d", len(drafts)))
	if err != nil {
		return words, err
	}
	defer server.remove()
	b.say("importing %d records with vectors", len(drafts))
	took, err := server.load(ctx, owner, drafts)
	if err != nil {
		return words, err
	}
	b.say("that took %s, with packing %s", took.acknowledged.Round(time.Millisecond), took.packed.Round(time.Millisecond))
	for _, clients := range []int{1, crowdedClients} {
		for _, mode := range []struct {
			name   string
			vector bool
		}{{"words", false}, {"hybrid", true}} {
			s, err := b.queryLoad(ctx, server, clients, func(c *client) *loombridgev1.MemoryQueryRequest {
				q := questions[(c.calls+101*c.number)%len(questions)]
				r := &loombridgev1.MemoryQueryRequest{AgentId: owner, Query: q.text, Limit: queryLimit, Mode: loombridgev1.QueryMode_QUERY_MODE_LEXICAL}
				if mode.vector {
					r.Mode, r.Embedding, r.EmbeddingSpace = loombridgev1.QueryMode_QUERY_MODE_HYBRID, q.vector, talkSpace
				}
				return r
			})
			if err != nil {
				return words, err
			}
			if clients == 1 && !mode.vector {
				words = s
			}
			resident, err := server.resident()
			if err != nil {
				return words, err
			}
			fmt.Fprintf(b.table, "%s\t%d\t%d\t%.2f\t%.2f\t%.0f\t%.0f\t\t\t%s\t\n",
				mode.name, len(drafts), clients, ms(p50us(s)), ms(p95us(s)), s.throughput(), resident, queryAims[len(drafts)])
		}
	}
	return words, nil
}

// queryLoad lets clients ask for all rounds together.
func (b *memoryBench) queryLoad(ctx context.Context, server *memoryServer, clients int, request func(*client) *loombridgev1.MemoryQueryRequest) (sample, error) {
	all, err := dial(server.addr, clients)
	if err != nil {
		return sample{}, err
	}
	defer hangUp(all)
	b.say("%d clients ask for %s", clients, b.queryTime())
	return run(ctx, all, func(ctx context.Context, c *client) error {
		_, err := loombridgev1.NewBridgeServiceClient(c.conn).MemoryQuery(ctx, request(c))
		return err
	}, b.queryTime())
}

// queryTime is how long one figure is measured.
func (b *memoryBench) queryTime() time.Duration { return time.Duration(b.rounds) * b.length }

// querySQLite measures the same queries in SQLite and adds its line.
func (b *memoryBench) querySQLite(ctx context.Context, drafts []*loombridgev1.MemorySaveRequest, questions []askedText, words sample) error {
	talk := &peers.Talk{}
	for i, d := range drafts {
		talk.Records = append(talk.Records, [2]string{strconv.Itoa(i), d.GetAuthor() + ": " + d.GetText()})
	}
	for _, q := range questions {
		talk.Queries = append(talk.Queries, peers.NewQuery(q.text, len(drafts)))
	}
	b.say("SQLite asks %d records for %s", len(drafts), b.queryTime())
	answer, err := peers.Run(ctx, b.python, b.folder, peers.Work{
		Engine: peers.SQLite, Talks: []*peers.Talk{talk}, Limit: queryLimit, Seconds: b.queryTime().Seconds(),
	})
	if err != nil {
		return err
	}
	s := sample{latencies: answer.Talks[0].Times, elapsed: b.queryTime() * 9 / 10}
	fmt.Fprintf(b.table, "%s, in process\t%d\t1\t%.2f\t%.2f\t%.0f\t\t\t%.1f\t%.1f\t≥ 1\t\n", answer.Version, len(drafts),
		ms(p50us(s)), ms(p95us(s)), s.throughput(), p50us(s)/p50us(words), p95us(s)/p95us(words))
	return nil
}
