//go:build cgo && !norocksdb

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const (
	// promptTokens is the budget of every prompt.
	promptTokens = 32_000
	// promptOutput is the result of each step, in bytes: about the median and
	// more of what coding agents see.
	promptOutput = 1 << 10
	// assembleEvery so many steps a prompt is made while a session is filled, as
	// an agent would: what is folded is folded in many batches.
	assembleEvery = 2
	// warmPrompts are measured of each length, coldStarts times the server is
	// opened again.
	warmPrompts = 200
	coldStarts  = 5
)

// promptLengths are the steps of the sessions.
var promptLengths = []int{50, 1000, 10_000}

// prompts measures the prompts of sessions of one length.
type prompts struct {
	length int
	// agents have a session each: those that are short don't stay so while they
	// are measured.
	agents []string
	// fresh are prompts right after a new step, again those with nothing new,
	// cold the first ones of a session since the server was opened.
	fresh, again, cold []time.Duration
	// bytes are those of the whole answer, receipt those of its receipt.
	bytes, receipt, tokens int
	folds                  int
}

func newPrompts(length int) *prompts {
	p := &prompts{length: length}
	for i := range max(1, 1000/length) {
		p.agents = append(p.agents, fmt.Sprintf("bench-prompt-%d-%d", length, i))
	}
	return p
}

// assembleTable measures Assemble and prints a table of its own.
func (b *bench) assembleTable(ctx context.Context) error {
	if !strings.Contains("assemble", b.only) {
		return nil
	}
	all := make([]*prompts, len(promptLengths))
	if err := b.withServer(ctx, func(client loombridgev1.ContextServiceClient) error {
		for i, length := range promptLengths {
			all[i] = newPrompts(length)
			if err := all[i].measure(ctx, client); err != nil {
				return fmt.Errorf("bench: prompts of %d steps: %w", length, err)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	var first []time.Duration
	for range coldStarts {
		if err := b.withServer(ctx, func(client loombridgev1.ContextServiceClient) error {
			begin := time.Now()
			if _, err := assemble(ctx, client, "bench-prompt-none"); err != nil {
				return err
			}
			first = append(first, time.Since(begin))
			for _, p := range all {
				if err := p.measureCold(ctx, client); err != nil {
					return fmt.Errorf("bench: prompts of %d steps, cold: %w", p.length, err)
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return b.printPrompts(all, sorted(first))
}

func (b *bench) printPrompts(all []*prompts, first sample) error {
	fmt.Fprintf(b.table, "\nAssemble, %d tokens\tsteps\twarm p50 µs\twarm p99 µs\tnothing new p50 µs\tp99 µs\tcold p50 µs\tcold p99 µs\ttokens\tKiB sent\treceipt\tfolds\taim\t\n", promptTokens)
	aims := map[int]string{1000: "warm p99 ≤ 3 ms", 10_000: "warm p50 ≤ 5 ms"}
	for _, p := range all {
		fresh, again, cold := sorted(p.fresh), sorted(p.again), sorted(p.cold)
		fmt.Fprintf(b.table, "\t%d\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%d\t%.1f\t%.1f\t%d\t%s\t\n", p.length,
			p50us(fresh), p99us(fresh), p50us(again), p99us(again), p50us(cold), p99us(cold),
			p.tokens, float64(p.bytes)/1024, float64(p.receipt)/1024, p.folds, aims[p.length])
	}
	if err := b.table.Flush(); err != nil {
		return err
	}
	short, long := all[0], all[1]
	fmt.Printf("Assemble at %d steps takes %.2f times as long as at %d (aim ≤ 1.5); the first call after the server was opened, on an empty session, takes %.1f ms\n",
		long.length, p50us(sorted(long.fresh))/p50us(sorted(short.fresh)), short.length, p50us(first)/1000)
	return nil
}

// withServer runs a server on a store of its own for these prompts, which
// stays.
func (b *bench) withServer(ctx context.Context, use func(loombridgev1.ContextServiceClient) error) error {
	server, err := start(ctx, b.server, "--addr", "127.0.0.1:0", "--data-dir", filepath.Join(b.folder, "prompts"), "--workspace", b.folder, "--log-level", "error")
	if err != nil {
		return err
	}
	defer server.stop()
	all, err := dial(server.addr, 1)
	if err != nil {
		return err
	}
	defer hangUp(all)
	return use(loombridgev1.NewContextServiceClient(all[0].conn))
}

// measure fills the sessions, then measures a prompt after each further step,
// and once more without one.
func (p *prompts) measure(ctx context.Context, client loombridgev1.ContextServiceClient) error {
	fmt.Fprintf(os.Stderr, "Assemble: filling %d sessions of %d steps\n", len(p.agents), p.length)
	for _, agent := range p.agents {
		for i := range p.length {
			if err := p.record(ctx, client, agent, i); err != nil {
				return err
			}
			if i%assembleEvery == 0 {
				if _, err := assemble(ctx, client, agent); err != nil {
					return err
				}
			}
		}
		for i := range warmPrompts / len(p.agents) {
			if err := p.measureWarm(ctx, client, agent, p.length+i); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *prompts) measureWarm(ctx context.Context, client loombridgev1.ContextServiceClient, agent string, step int) error {
	if err := p.record(ctx, client, agent, step); err != nil {
		return err
	}
	for _, times := range []*[]time.Duration{&p.fresh, &p.again} {
		begin := time.Now()
		r, err := assemble(ctx, client, agent)
		if err != nil {
			return err
		}
		*times = append(*times, time.Since(begin))
		p.bytes, p.receipt, p.tokens = proto.Size(r), proto.Size(r.GetReceipt()), int(r.GetTokens().GetTokens())
		p.folds = len(r.GetReceipt().GetFolds())
	}
	return nil
}

func (p *prompts) measureCold(ctx context.Context, client loombridgev1.ContextServiceClient) error {
	for _, agent := range p.agents {
		begin := time.Now()
		if _, err := assemble(ctx, client, agent); err != nil {
			return err
		}
		p.cold = append(p.cold, time.Since(begin))
	}
	return nil
}

func (p *prompts) record(ctx context.Context, client loombridgev1.ContextServiceClient, agent string, step int) error {
	_, err := client.RecordStep(ctx, recordRequest(agent, step, promptOutput))
	return err
}

func assemble(ctx context.Context, client loombridgev1.ContextServiceClient, agent string) (*loombridgev1.AssembleResponse, error) {
	return client.Assemble(ctx, &loombridgev1.AssembleRequest{
		AgentId: agent, SessionId: "bench", Goal: "Find out why the tests fail.", System: "You are a careful engineer.",
		MaxTokens: promptTokens,
	}, grpc.MaxCallRecvMsgSize(64<<20))
}
