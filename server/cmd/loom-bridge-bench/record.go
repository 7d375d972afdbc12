//go:build cgo && !norocksdb

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/compose"
)

const (
	// smallOutput and largeOutput are the results that are recorded, in bytes of
	// their JSON: what most tools give, and about the most that a call may hold.
	smallOutput = 4 << 10
	largeOutput = 1000 << 10
	// earlyStep and lateStep are how many steps the session has before.
	earlyStep, lateStep = 50, 5000
	// recordTool is a tool of the caller's own.
	recordTool = "bash"
)

// recordScope is whose batches are captured for the floor.
var recordScope = kv.AgentScope("default", "bench-record")

// commandOutput is what a command printed: lines of words that differ from call
// to call, about so many bytes as JSON.
func commandOutput(call, bytes int) string {
	var b strings.Builder
	for _, text := range texts(uint64(call)+1000, (bytes+savedBytes-1)/savedBytes) {
		for i := 0; i < len(text) && b.Len() < bytes-128; i += 64 {
			fmt.Fprintf(&b, "src/%s.py:%d: %s\n", word(uint64(call+i)), i, text[i:min(i+64, len(text))])
		}
	}
	out, err := json.Marshal(map[string]any{"output": b.String()[:min(b.Len(), bytes-bytes/16)], "exit_code": 0})
	if err != nil {
		return "null"
	}
	return string(out)
}

func recordArguments(call int) string {
	return fmt.Sprintf(`{"command":"grep -rn %s src | head -%d"}`, word(uint64(call)), 10+call%90)
}

// captureRecords records the batches of n steps. What one step writes is one
// batch, whatever it was written in.
func captureRecords(ctx context.Context, workspace string, n, bytes int) ([][]kv.Op, error) {
	batches := make([][]kv.Op, n)
	err := capturing(workspace, func(engine *recorder, parts *compose.Domain) error {
		for i := range batches {
			engine.take()
			_, err := parts.Hand.Record(ctx, hand.Recorded{
				Request: hand.Request{Scope: recordScope, Name: recordTool, Args: json.RawMessage(recordArguments(i))},
				Output:  step.Original{Form: step.FormJSON, Data: []byte(commandOutput(i, bytes))},
			})
			if err != nil {
				return fmt.Errorf("bench: capture a step: %w", err)
			}
			batches[i] = slices.Concat(engine.take()...)
		}
		return nil
	})
	return batches, err
}

// recordCase is one kind of recorded step.
type recordCase struct {
	name  string
	bytes int
	at    int
	// sessions are measured, calls each: early ones don't stay early.
	sessions, calls int
	aim             string
}

// recordTable measures RecordStep early and late in a session and prints a separate table.
func (b *bench) recordTable(ctx context.Context) error {
	if !strings.Contains("record", b.only) {
		return nil
	}
	fmt.Fprintf(b.table, "\nRecordStep, synced\tat step\tfloor p50 µs\tours p50 µs\tratio\tfloor p99 µs\tours p99 µs\taim\t\n")
	flat := make(map[string]float64)
	for _, c := range []recordCase{
		{"4 kB", smallOutput, earlyStep, 30, 10, "p50 ≤ 1.5"},
		{"4 kB", smallOutput, lateStep, 1, 300, "p50 ≤ 1.5"},
		{"1 MB", largeOutput, earlyStep, 12, 10, "p99 ≤ 60 ms"},
		{"1 MB", largeOutput, lateStep, 1, 120, "p99 ≤ 60 ms"},
	} {
		ours, err := b.recordContest(ctx, c)
		if err != nil {
			return fmt.Errorf("RecordStep %s at step %d: %w", c.name, c.at, err)
		}
		flat[fmt.Sprint(c.name, c.at)] = p50us(ours)
	}
	if err := b.table.Flush(); err != nil {
		return err
	}
	for _, name := range []string{"4 kB", "1 MB"} {
		fmt.Printf("RecordStep of %s at step %d takes %.2f times as long as at step %d (aim ≤ 1.5)\n",
			name, lateStep, flat[fmt.Sprint(name, lateStep)]/flat[fmt.Sprint(name, earlyStep)], earlyStep)
	}
	return nil
}

// recordContest measures one case on both servers, call by call in turns.
func (b *bench) recordContest(ctx context.Context, c recordCase) (sample, error) {
	fmt.Fprintf(os.Stderr, "RecordStep of %s at step %d: %d sessions\n", c.name, c.at, c.sessions)
	floor, err := dial(b.floor, 1)
	if err != nil {
		return sample{}, err
	}
	defer hangUp(floor)
	ours, err := dial(b.ours, 1)
	if err != nil {
		return sample{}, err
	}
	defer hangUp(ours)
	r := recorderRun{floor: contexts.New(floor[0].conn), ours: contexts.New(ours[0].conn)}
	for i := range c.sessions {
		agent := fmt.Sprintf("bench-record-%s-%d-%d", strings.ReplaceAll(c.name, " ", ""), c.at, i)
		if err := fill(ctx, r.ours, agent, c.at-1); err != nil {
			return sample{}, err
		}
		for k := range c.calls + warmCalls {
			if err := r.step(ctx, agent, 100_000*(i+1)+k, c.bytes, k >= warmCalls); err != nil {
				return sample{}, err
			}
		}
	}
	f, o := sorted(r.floorTimes), sorted(r.oursTimes)
	fmt.Fprintf(b.table, "%s\t%d\t%.0f\t%.0f\t%.2f\t%.0f\t%.0f\t%s\t\n", c.name, c.at,
		p50us(f), p50us(o), p50us(o)/p50us(f), p99us(f), p99us(o), c.aim)
	return o, nil
}

// warmCalls begin each session's calls and don't count: earlier data is still being
// written.
const warmCalls = 2

// recorderRun is the calls of one case.
type recorderRun struct {
	floor, ours           contexts.Client
	floorTimes, oursTimes []time.Duration
}

func (r *recorderRun) step(ctx context.Context, agent string, call, bytes int, counts bool) error {
	request := recordRequest(agent, call, bytes)
	for _, side := range []struct {
		client contexts.Client
		times  *[]time.Duration
	}{{r.floor, &r.floorTimes}, {r.ours, &r.oursTimes}} {
		begin := time.Now()
		if _, err := side.client.RecordStep(ctx, request); err != nil {
			return err
		}
		if counts {
			*side.times = append(*side.times, time.Since(begin))
		}
	}
	return nil
}

func recordRequest(agent string, call, bytes int) *loombridgev1.RecordStepRequest {
	return &loombridgev1.RecordStepRequest{
		AgentId: agent, SessionId: "bench", ToolName: recordTool, Success: true, Thought: "I look for it.",
		ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: recordArguments(call)},
		OutputForm:    &loombridgev1.RecordStepRequest_OutputJson{OutputJson: commandOutput(call, bytes)},
	}
}

// fillers is how many callers fill a session before it is measured.
const fillers = 8

// fill records n small steps, in any order.
func fill(ctx context.Context, client contexts.Client, agent string, n int) error {
	return each(n, fillers, func(call int) error {
		_, err := client.RecordStep(ctx, recordRequest(agent, call, smallOutput))
		return err
	})
}

func sorted(times []time.Duration) sample {
	slices.Sort(times)
	return sample{latencies: times}
}
