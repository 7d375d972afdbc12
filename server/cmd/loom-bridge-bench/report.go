//go:build cgo && !norocksdb

package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// bench is one run: two servers and where to print.
type bench struct {
	settings
	ours, floor string // addresses
	folder      string // for stores and the workspace
	data        string // the store of ours
	stopOurs    func()
	table       *tabwriter.Writer
	headed      bool // the first table has its header
	pool        []string
}

// report measures everything and prints the table.
func report(ctx context.Context, b *bench) error {
	for _, c := range []struct {
		name    string
		clients int
		aim     string
		op      operation
	}{
		{"MemorySave 1 KiB", 1, "p50 ≤ 1.3", b.save},
		{"MemorySave, a scope each", b.clients, "/s ≥ 1.0", b.save},
		{"MemorySave, one scope", b.clients, "/s ≥ 0.7", func(ctx context.Context, c *client) error { return b.saveAs(ctx, c, agent(0)) }},
		{"Tool fs:read_file 4 KiB", 1, "p50 ≤ 1.7", b.tool},
		{"Tool, an agent each", b.clients, "", b.tool},
	} {
		if err := b.contest(ctx, c.name, c.clients, c.aim, c.op); err != nil {
			return err
		}
	}
	if err := b.table.Flush(); err != nil {
		return err
	}
	for _, table := range []func(context.Context) error{b.eventTable, b.recordTable, b.assembleTable, b.injectedTable, b.queries} {
		if err := table(ctx); err != nil {
			return err
		}
	}
	if !strings.Contains("MemorySave", b.only) {
		return nil
	}
	return keysPerKiB(ctx)
}

// contest measures one call on both servers and adds a line.
func (b *bench) contest(ctx context.Context, name string, clients int, aim string, op operation) error {
	if !strings.Contains(name, b.only) {
		return nil
	}
	fmt.Fprintf(os.Stderr, "%s, %d clients: %d rounds of %s on each server\n", name, clients, b.rounds, b.length)
	if !b.headed {
		b.headed = true
		fmt.Fprintf(b.table, "call\tclients\tfloor p50 µs\tours p50 µs\tratio\tfloor p99 µs\tours p99 µs\tfloor /s\tours /s\tratio\taim\t\n")
	}
	return b.inTurns(ctx, name, clients, aim, func(ctx context.Context, addr string) (sample, error) {
		all, err := dial(addr, clients)
		if err != nil {
			return sample{}, err
		}
		defer hangUp(all)
		return run(ctx, all, op, b.length)
	})
}

// inTurns measures both servers round by round, so that the noise of a shared
// machine hits both alike, and adds a line with the medians.
func (b *bench) inTurns(ctx context.Context, name string, clients int, aim string, measure func(ctx context.Context, addr string) (sample, error)) error {
	var floor, ours []sample
	for range b.rounds {
		for _, side := range []struct {
			addr string
			into *[]sample
		}{{b.floor, &floor}, {b.ours, &ours}} {
			s, err := measure(ctx, side.addr)
			if err != nil {
				return fmt.Errorf("%s at %s: %w", name, side.addr, err)
			}
			*side.into = append(*side.into, s)
		}
	}
	floor50, ours50 := median(floor, p50us), median(ours, p50us)
	floorRate, oursRate := median(floor, sample.throughput), median(ours, sample.throughput)
	fmt.Fprintf(b.table, "%s\t%d\t%.0f\t%.0f\t%.2f\t%.0f\t%.0f\t%.0f\t%.0f\t%.2f\t%s\t\n", name, clients,
		floor50, ours50, ours50/floor50, median(floor, p99us), median(ours, p99us), floorRate, oursRate, oursRate/floorRate, aim)
	return nil
}

func (b *bench) save(ctx context.Context, c *client) error {
	return b.saveAs(ctx, c, agent(c.number))
}

func (b *bench) saveAs(ctx context.Context, c *client, agent string) error {
	_, err := loombridgev1.NewBridgeServiceClient(c.conn).MemorySave(ctx, &loombridgev1.MemorySaveRequest{
		AgentId: agent, SessionId: "bench", Text: b.pool[(c.calls+97*c.number)%len(b.pool)],
	})
	return err
}

func (b *bench) tool(ctx context.Context, c *client) error {
	_, err := loombridgev1.NewBridgeServiceClient(c.conn).Tool(convert.AskText(ctx), &loombridgev1.ToolRequest{
		AgentId: agent(c.number), Name: "fs:read_file",
		ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: string(toolArguments())},
	})
	return err
}

func (b *bench) query(ctx context.Context, c *client) error {
	_, err := loombridgev1.NewBridgeServiceClient(c.conn).MemoryQuery(ctx, &loombridgev1.MemoryQueryRequest{
		AgentId: "bench-queries", Query: query(b.pool[c.calls%len(b.pool)]),
	})
	return err
}

func checkHealth(ctx context.Context, c *client) error {
	_, err := grpc_health_v1.NewHealthClient(c.conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	return err
}

// queries compares a query over gRPC with a health check, which is the cheapest
// RPC there is, and with the same query in this process: on the same store,
// once the server has left it.
func (b *bench) queries(ctx context.Context) error {
	if !strings.Contains("MemoryQuery", b.only) {
		return nil
	}
	fmt.Fprintf(os.Stderr, "MemoryQuery: saving %d records\n", b.records)
	all, err := dial(b.ours, 1)
	if err != nil {
		return err
	}
	defer hangUp(all)
	for i := range b.records {
		if err := b.saveAs(ctx, &client{conn: all[0].conn, calls: i}, "bench-queries"); err != nil {
			return err
		}
	}
	var health, remote []sample
	for range b.rounds {
		for _, m := range []struct {
			op   operation
			into *[]sample
		}{{checkHealth, &health}, {b.query, &remote}} {
			s, err := run(ctx, all, m.op, b.length)
			if err != nil {
				return err
			}
			*m.into = append(*m.into, s)
		}
	}
	b.stopOurs()
	local, err := b.queryHere(ctx)
	if err != nil {
		return err
	}
	check, rpc, here := median(health, p50us), median(remote, p50us), median(local, p50us)
	fmt.Printf("\nMemoryQuery on %d records, one client, p50: %.0f µs over gRPC (aim ≤ 2000), %.0f µs in process, health check %.0f µs;\n"+
		"what the RPC adds is %.2f health checks (aim ≤ 2)\n", b.records, rpc, here, check, (rpc-here)/check)
	return nil
}

// queryHere measures the query in this process on the store that the server
// has left.
func (b *bench) queryHere(ctx context.Context) ([]sample, error) {
	engine, err := rockskv.Open(b.data, nil)
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	writer := kv.NewWriter(engine, nil)
	defer writer.Close()
	store := memory.New(engine, writer, nil)
	defer store.Close()
	scope := kv.AgentScope("default", "bench-queries")
	query := func(ctx context.Context, c *client) error {
		_, err := store.Query(ctx, scope, question.Question{Text: query(b.pool[c.calls%len(b.pool)])})
		return err
	}
	var local []sample
	for range b.rounds {
		s, err := run(ctx, []*client{{}}, query, b.length)
		if err != nil {
			return nil, err
		}
		local = append(local, s)
	}
	return local, nil
}

// keysPerKiB prints what a save writes.
func keysPerKiB(ctx context.Context) error {
	const agents = 8
	_, err := captureSaves(ctx, agents, func(keys, bytes int) {
		kib := float64(agents*tapeLength*savedBytes) / 1024
		fmt.Printf("A save of 1 KiB writes %.1f keys and %.1f KiB, index, sequences and packing included\n",
			float64(keys)/kib, float64(bytes)/1024/kib)
	})
	return err
}
