//go:build cgo && !norocksdb

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/record"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const (
	// turnAgent is whose saves of turns the floor has captured.
	turnAgent = "bench-turns"
	// smallScope is a scope that has just begun. It does not stay small, so there
	// are many, savesEach each.
	smallScope, savesEach = 100, 10
	// savesPerRound are measured at each size for each of the rounds.
	savesPerRound = 100
	// importClients import at the same time, each into its own scope.
	importClients = 4
	// weighedTurns are saved in memory to see what that writes.
	weighedTurns = 2000
)

// grownScopes are the sizes that saves are compared at with smallScope.
var grownScopes = []int{10_000, 100_000}

// captureTurns records the batches of saves of turns of conversations, some a
// hundred bytes each.
func captureTurns(ctx context.Context) ([][]kv.Op, error) {
	talk, err := (&memoryBench{}).newTalk()
	if err != nil {
		return nil, err
	}
	engine := &recorder{Engine: memkv.New(nil)}
	writer := kv.NewWriter(engine, nil)
	store := memory.New(engine, writer, nil)
	for _, d := range talk.turns(tapeLength) {
		if _, err := store.Save(ctx, kv.AgentScope("default", turnAgent), recordOf(d), ""); err != nil {
			return nil, fmt.Errorf("bench: capture a save: %w", err)
		}
	}
	batches := engine.take()
	if err := store.Close(); err != nil {
		return nil, err
	}
	return batches, writer.Close()
}

// record is a draft as the store takes it.
func recordOf(d *loombridgev1.MemorySaveRequest) record.Record {
	return record.Record{Text: d.GetText(), Author: d.GetAuthor(), SessionID: d.GetSessionId(), EventTime: d.GetEventTime().AsTime()}
}

// save measures single saves into scopes of several sizes, and imports.
func (b *memoryBench) save(ctx context.Context) error {
	talk, err := b.newTalk()
	if err != nil {
		return err
	}
	if err := b.saveGrowth(ctx, talk); err != nil {
		return err
	}
	if err := b.imports(ctx, talk); err != nil {
		return err
	}
	return b.weighTurns(ctx, talk)
}

// saveGrowth saves into the floor and scopes of all sizes, call by call in turns.
func (b *memoryBench) saveGrowth(ctx context.Context, talk *talk) error {
	floor, err := b.serveFloor(ctx)
	if err != nil {
		return err
	}
	defer floor.stop()
	server, err := b.serve(ctx, "save")
	if err != nil {
		return err
	}
	defer server.remove()
	for _, size := range grownScopes {
		b.say("importing %d records", size)
		if _, err := server.load(ctx, grownScope(size), talk.turns(size)); err != nil {
			return err
		}
	}
	floors, err := dial(floor.addr, 1)
	if err != nil {
		return err
	}
	defer hangUp(floors)
	g := growth{times: make(map[int][]time.Duration)}
	floorAgent := func(int) string { return turnAgent }
	g.targets = []saveTarget{{0, floorAgent, loombridgev1.NewBridgeServiceClient(floors[0].conn)}, {smallScope, smallScopeName, server.bridge}}
	for _, size := range grownScopes {
		g.targets = append(g.targets, saveTarget{size, func(int) string { return grownScope(size) }, server.bridge})
	}
	calls := savesPerRound * b.rounds
	b.say("%d saves at each size", calls)
	for i := range calls {
		if i%savesEach == 0 {
			if _, err := server.load(ctx, smallScopeName(i), talk.turns(smallScope)); err != nil {
				return err
			}
		}
		if err := g.save(ctx, i, talk.turn(2*grownScopes[len(grownScopes)-1]+i)); err != nil {
			return err
		}
	}
	b.printGrowth(g.times)
	return b.table.Flush()
}

// growth is what saves took in scopes of several sizes; 0 is the floor.
type growth struct {
	targets []saveTarget
	times   map[int][]time.Duration
}

// saveTarget is whom the i-th save of a size goes to.
type saveTarget struct {
	size  int
	agent func(i int) string
	to    loombridgev1.BridgeServiceClient
}

// save saves a turn everywhere.
func (g *growth) save(ctx context.Context, i int, turn *loombridgev1.MemorySaveRequest) error {
	for _, target := range g.targets {
		begin := time.Now()
		_, err := target.to.MemorySave(ctx, &loombridgev1.MemorySaveRequest{
			AgentId: target.agent(i), SessionId: turn.GetSessionId(), Text: turn.GetText(), Author: turn.GetAuthor(), EventTime: turn.GetEventTime(),
		})
		if err != nil {
			return err
		}
		if i%savesEach >= warmCalls {
			g.times[target.size] = append(g.times[target.size], time.Since(begin))
		}
	}
	return nil
}

func (b *memoryBench) printGrowth(times map[int][]time.Duration) {
	fmt.Fprintln(b.table, "\nMemorySave of a turn, synced\tp50 µs\tp95 µs\tp50 / floor\tp95 / floor\tp95 / at 100\taim\t")
	base, small := sorted(times[0]), sorted(times[smallScope])
	fmt.Fprintf(b.table, "floor\t%.0f\t%.0f\t\t\t\t\t\n", p50us(base), p95us(base))
	for _, size := range append([]int{smallScope}, grownScopes...) {
		s := sorted(times[size])
		fmt.Fprintf(b.table, "at %d records\t%.0f\t%.0f\t%.2f\t%.2f\t%.2f\t≤ 2, ≤ 5 ms\t\n",
			size, p50us(s), p95us(s), p50us(s)/p50us(base), p95us(s)/p95us(base), p95us(s)/p95us(small))
	}
}

func grownScope(size int) string  { return fmt.Sprintf("bench-save-%d", size) }
func smallScopeName(i int) string { return fmt.Sprintf("bench-save-small-%d", i/savesEach) }

// serveFloor starts the floor for one client.
func (b *memoryBench) serveFloor(ctx context.Context) (*process, error) {
	workspace, err := makeWorkspace(b.folder)
	if err != nil {
		return nil, err
	}
	return start(ctx, b.self, "-floor", "-dir", filepath.Join(b.folder, "floor-memory"), "-workspace", workspace, "-clients", "1")
}

// imports measures imports by BatchSave, and what they take on disk.
func (b *memoryBench) imports(ctx context.Context, talk *talk) error {
	drafts := talk.turns(b.imported)
	fmt.Fprintln(b.table, "\nBatchSave of turns, 1000 a batch\tclients\trecords\trecords/s\twith packing /s\tMB of text\tMB on disk\tMB resident\taim\t")
	for _, clients := range []int{1, importClients} {
		if err := b.importContest(ctx, drafts, clients); err != nil {
			return err
		}
	}
	return b.table.Flush()
}

func (b *memoryBench) importContest(ctx context.Context, drafts []*loombridgev1.MemorySaveRequest, clients int) error {
	name := fmt.Sprintf("import-%d", clients)
	server, err := b.serve(ctx, name)
	if err != nil {
		return err
	}
	b.say("%d clients import %d records each", clients, len(drafts)/clients)
	took := make([]loaded, clients)
	err = each(clients, clients, func(i int) (err error) {
		took[i], err = server.load(ctx, fmt.Sprintf("bench-import-%d", i), drafts[i*len(drafts)/clients:(i+1)*len(drafts)/clients])
		return err
	})
	if err != nil {
		server.remove()
		return err
	}
	var last loaded
	for _, l := range took {
		last.acknowledged, last.packed = max(last.acknowledged, l.acknowledged), max(last.packed, l.packed)
	}
	resident, err := server.resident()
	server.end()
	if err != nil {
		return err
	}
	// The log of the engine goes when the store is opened again.
	if server, err = b.serve(ctx, name); err != nil {
		return err
	}
	server.end()
	disk, err := server.diskBytes()
	defer server.remove()
	fmt.Fprintf(b.table, "\t%d\t%d\t%.0f\t%.0f\t%.1f\t%.1f\t%.0f\t5000/s (15000)\t\n", clients, len(drafts),
		float64(len(drafts))/last.acknowledged.Seconds(), float64(len(drafts))/last.packed.Seconds(), mib(textBytes(drafts)), mib(disk), resident)
	return err
}

// weighTurns prints how many keys turns take: written when they are saved, one
// by one and in a batch, and left when they are packed.
func (b *memoryBench) weighTurns(ctx context.Context, talk *talk) error {
	drafts := talk.turns(weighedTurns)
	kib := float64(textBytes(drafts)) / 1024
	for _, together := range []bool{false, true} {
		engine := &recorder{Engine: memkv.New(nil)}
		writer := kv.NewWriter(engine, nil)
		store := memory.New(engine, writer, nil)
		if err := saveAll(ctx, store, drafts, together); err != nil {
			return err
		}
		if err := store.Close(); err != nil {
			return err
		}
		if err := writer.Close(); err != nil {
			return err
		}
		keys, bytes := weigh(map[string][][]kv.Op{turnAgent: engine.take()}, nil)
		left, leftBytes, err := leftOver(ctx, engine)
		if err != nil {
			return err
		}
		how := "one by one"
		if together {
			how = "in batches"
		}
		fmt.Printf("%d turns of %.0f bytes saved %s write %.1f keys and %.1f KiB for each KiB of text; %.1f keys and %.1f KiB of them stay (%.1f keys a record)\n",
			len(drafts), kib*1024/float64(len(drafts)), how, float64(keys)/kib, float64(bytes)/1024/kib, float64(left)/kib, float64(leftBytes)/1024/kib, float64(left)/float64(len(drafts)))
	}
	return nil
}

func saveAll(ctx context.Context, store *memory.Store, drafts []*loombridgev1.MemorySaveRequest, together bool) error {
	scope := kv.AgentScope("default", turnAgent)
	records := make([]record.Record, 0, memory.MaxBatchRecords)
	for i, d := range drafts {
		if !together {
			if _, err := store.Save(ctx, scope, recordOf(d), ""); err != nil {
				return err
			}
			continue
		}
		if records = append(records, recordOf(d)); len(records) == memory.MaxBatchRecords || i == len(drafts)-1 {
			if _, err := store.SaveBatchAs(ctx, scope, records, memory.Saving{}); err != nil {
				return err
			}
			records = records[:0]
		}
	}
	return nil
}

// leftOver counts the keys of a store and their bytes.
func leftOver(ctx context.Context, engine kv.Engine) (keys, bytes int, err error) {
	for _, keyspace := range []kv.Keyspace{kv.Records, kv.Index, kv.System} {
		for pair, err := range engine.Scan(ctx, keyspace, kv.Range{}) {
			if err != nil {
				return 0, 0, err
			}
			keys++
			bytes += len(pair.Key) + len(pair.Value)
		}
	}
	return keys, bytes, nil
}
