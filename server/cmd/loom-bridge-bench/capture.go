//go:build cgo && !norocksdb

package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/server/compose"
)

const (
	// tapeLength is how many calls of each agent are captured; the floor plays
	// them again and again.
	tapeLength = 64
	// benchFile is what the tool reads: fileBytes of text.
	benchFile = "bench.txt"
	fileBytes = 4 << 10
)

// recorder is an engine that records commits, including the sequences that a real engine
// writes with them.
type recorder struct {
	kv.Engine

	mu      sync.Mutex // guards batches
	batches [][]kv.Op
}

func (r *recorder) Commit(ctx context.Context, c kv.Commit) error {
	if err := r.Engine.Commit(ctx, c); err != nil {
		return err
	}
	var ops []kv.Op
	if c.Batch != nil {
		ops = append(ops, c.Batch.Ops()...)
	}
	for _, g := range c.Guards {
		value := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, g.Sequence+1), c.Token)
		ops = append(ops, kv.Op{Keyspace: g.Keyspace, Key: kv.SequenceKey(g.Scope), Value: value})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batches = append(r.batches, ops)
	return nil
}

// take returns the commits since the last take.
func (r *recorder) take() [][]kv.Op {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.batches
	r.batches = nil
	return taken
}

// tapes records the batches of tapeLength operations for each of n names.
func (r *recorder) tapes(n int, name func(i int) string, op func(name string, k int) error) (map[string][][]kv.Op, error) {
	tapes := make(map[string][][]kv.Op, n)
	for i := range n {
		for k := range tapeLength {
			if err := op(name(i), k); err != nil {
				return nil, fmt.Errorf("bench: capture: %w", err)
			}
		}
		tapes[name(i)] = r.take()
	}
	return tapes, nil
}

// capturing is the whole domain over a recorder.
func capturing(workspace string, use func(*recorder, *compose.Domain) error) error {
	engine := &recorder{Engine: memkv.New(nil)}
	folders, err := hand.OpenFolders(workspace, nil)
	if err != nil {
		return err
	}
	defer folders.Close()
	parts, err := compose.Open(engine, folders, nil)
	if err != nil {
		return err
	}
	return errors.Join(use(engine, parts), parts.Close())
}

// captureSaves records the batches of saves, tapeLength for each agent. saved, unless nil,
// is called with the number of keys and bytes that all of them took, including packing.
func captureSaves(ctx context.Context, agents int, saved func(keys, bytes int)) (map[string][][]kv.Op, error) {
	engine := &recorder{Engine: memkv.New(nil)}
	writer := kv.NewWriter(engine, nil)
	store := memory.New(engine, writer, nil)
	pool := texts(1, tapeLength)
	tapes, err := engine.tapes(agents, agent, func(name string, k int) error {
		_, err := store.Save(ctx, kv.AgentScope("default", name), record.Record{Text: pool[k], SessionID: "bench"}, "")
		return err
	})
	if err := errors.Join(err, store.Close()); err != nil {
		return nil, err
	}
	if saved != nil {
		keys, bytes := weigh(tapes, engine.take())
		saved(keys, bytes)
	}
	return tapes, writer.Close()
}

func weigh(tapes map[string][][]kv.Op, rest [][]kv.Op) (keys, bytes int) {
	count := func(batches [][]kv.Op) {
		for _, ops := range batches {
			for _, op := range ops {
				keys++
				bytes += len(op.Key) + len(op.Value)
			}
		}
	}
	for _, batches := range tapes {
		count(batches)
	}
	count(rest)
	return keys, bytes
}

// captureTools records the batches of fs:read_file on benchFile, tapeLength
// for each agent.
func captureTools(ctx context.Context, workspace string, agents int) (tapes map[string][][]kv.Op, err error) {
	err = capturing(workspace, func(engine *recorder, parts *compose.Domain) (err error) {
		tapes, err = engine.tapes(agents, agent, func(name string, _ int) error {
			_, err := parts.Hand.Call(ctx, hand.Request{Scope: kv.AgentScope("default", name), Name: "fs:read_file", Args: toolArguments()})
			return err
		})
		return err
	})
	return tapes, err
}

// captureEmits records the batches of durable events, tapeLength for the topic
// of each publisher.
func captureEmits(ctx context.Context, publishers int) (map[string][][]kv.Op, error) {
	engine := &recorder{Engine: memkv.New(nil)}
	writer := kv.NewWriter(engine, nil)
	bus := events.New(engine, writer, nil)
	tapes, err := engine.tapes(publishers, flowTopic, func(topic string, _ int) error {
		event := events.Event{Topic: topic, Source: topic, PayloadKind: events.Bytes, Payload: make([]byte, payloadBytes)}
		_, err := bus.Emit(ctx, "default", event, events.EmitOptions{})
		return err
	})
	return tapes, errors.Join(err, bus.Close(), writer.Close())
}

func toolArguments() json.RawMessage { return json.RawMessage(`{"path":"` + benchFile + `"}`) }

// makeWorkspace makes a folder that holds benchFile.
func makeWorkspace(dir string) (string, error) {
	folder := filepath.Join(dir, "workspace")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	var content []byte
	for _, text := range texts(2, fileBytes/savedBytes) {
		content = append(content, text[:savedBytes-1]...)
		content = append(content, '\n')
	}
	return folder, os.WriteFile(filepath.Join(folder, benchFile), content, 0o600)
}
