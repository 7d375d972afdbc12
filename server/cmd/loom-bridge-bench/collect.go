//go:build cgo && !norocksdb

package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const (
	collectAgent = "bench-collect"
	// collectSaves are measured alone, in each round.
	collectSaves = 1000
	// collectBlobs are recorded before a collection, in sessions that have ended then.
	collectBlobs = 1000
	// collectTTL is how long they stay.
	collectTTL = time.Second
)

// collect measures saves into a scope of -records records, alone and while results of
// the agent are collected.
func (b *memoryBench) collect(ctx context.Context) error {
	ttl := fmt.Sprintf("read=%[1]v,list=%[1]v,search=%[1]v,page=%[1]v,shell=%[1]v,tool=%[1]v", collectTTL)
	server, err := b.serve(ctx, "collect", "--blob-ttl", ttl)
	if err != nil {
		return err
	}
	defer server.remove()
	run := collecting{memoryServer: server, context: contexts.New(server.conn), pool: texts(5, 4096)}
	b.say("saving %d records", b.records)
	drafts := make([]*loombridgev1.MemorySaveRequest, b.records)
	for i := range drafts {
		drafts[i] = &loombridgev1.MemorySaveRequest{Text: run.text()}
	}
	if _, err := server.load(ctx, collectAgent, drafts); err != nil {
		return err
	}
	for round := range b.rounds {
		b.say("round %d of %d", round+1, b.rounds)
		if err := run.round(ctx, round); err != nil {
			return err
		}
	}
	alone, beside := sorted(run.alone), sorted(run.beside)
	fmt.Fprintf(b.table, "\nsaves, %d records in the scope\tcalls\tp50 ms\tp99 ms\tmax ms\tp99 / alone\taim\t\n", b.records)
	for _, m := range []struct {
		name   string
		sample sample
	}{{"alone", alone}, {"during a collection", beside}} {
		fmt.Fprintf(b.table, "%s\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t≤ 2\t\n", m.name, len(m.sample.latencies),
			p50us(m.sample)/1000, p99us(m.sample)/1000, m.sample.percentile(1).Seconds()*1000, p99us(m.sample)/p99us(alone))
	}
	if err := b.table.Flush(); err != nil {
		return err
	}
	fmt.Printf("%d results were collected in %d collections, %.0f ms each\n",
		run.collected, b.rounds, run.took.Seconds()*1000/float64(b.rounds))
	return nil
}

// collecting is a server whose results are collected.
type collecting struct {
	*memoryServer
	context contexts.Client
	pool    []string
	saved   int

	alone, beside []time.Duration
	collected     int64
	took          time.Duration
}

func (c *collecting) text() string {
	c.saved++
	return c.pool[c.saved%len(c.pool)]
}

func (c *collecting) save(ctx context.Context) (time.Duration, error) {
	begin := time.Now()
	_, err := c.bridge.MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: collectAgent, Text: c.text()})
	return time.Since(begin), err
}

// round makes results, measures saves alone, and then saves during their collection.
func (c *collecting) round(ctx context.Context, round int) error {
	session := fmt.Sprint("bench-", round)
	for i := range collectBlobs {
		request := recordRequest(collectAgent, round*collectBlobs+i, smallOutput)
		request.SessionId = session
		if _, err := c.context.RecordStep(ctx, request); err != nil {
			return err
		}
	}
	if _, err := c.context.EndSession(ctx, &loombridgev1.EndSessionRequest{AgentId: collectAgent, SessionId: session}); err != nil {
		return err
	}
	time.Sleep(collectTTL)
	for range collectSaves {
		took, err := c.save(ctx)
		if err != nil {
			return err
		}
		c.alone = append(c.alone, took)
	}
	return c.besideCollection(ctx)
}

func (c *collecting) besideCollection(ctx context.Context) (err error) {
	var times []time.Duration
	over := make(chan struct{})
	var saver sync.WaitGroup
	saver.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			took, failed := c.save(ctx)
			if failed != nil {
				err = failed
				return
			}
			times = append(times, took)
		}
	})
	begin := time.Now()
	done, failed := c.context.CollectGarbage(ctx, &loombridgev1.CollectGarbageRequest{AgentId: collectAgent})
	c.took += time.Since(begin)
	close(over)
	saver.Wait()
	c.beside = slices.Concat(c.beside, times)
	c.collected += done.GetDeletedCount()
	if failed != nil {
		return failed
	}
	return err
}
