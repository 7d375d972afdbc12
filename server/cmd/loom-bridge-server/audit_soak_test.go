package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
)

// A round of TestAuditTamperedSoak; `make soak` makes 50.
const (
	tamperedCalls = 200 // of tools
	tamperedBits  = 200 // that are changed, one at a time
	tamperedTails = 2   // that are cut off
)

// The audit of a server that has stopped holds each call, and `audit verify` finds each change
// of one bit in it, whether in a record, a link or a key, and each end that was cut off with
// all that sealed it.
func TestAuditTamperedSoak(t *testing.T) {
	t.Parallel()
	calls, bits, tails := 300, 20, 3
	if rounds := soakRoundsOr(t, 0); rounds > 0 {
		calls, bits, tails = rounds*tamperedCalls, rounds*tamperedBits, rounds*tamperedTails
	}
	seed := chance.Seed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	w := tampered{t, filepath.Join(dir, "store"), filepath.Join(dir, "server.log")}
	p := MustRun(t, dir, "--durability", "none")
	must(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("text"), 0o600))
	var callers sync.WaitGroup
	const agents = 8
	for agent := range agents {
		callers.Go(func() {
			for i := agent; i < calls; i += agents {
				auditTool(t, p, fmt.Sprint("a", agent), "fs:read_file", `{"path":"a.txt"}`, "")
			}
		})
	}
	callers.Wait()
	must(t, p.Stop())
	must(t, os.WriteFile(w.log, []byte(p.Log.String()), 0o600))
	if out, err := MustAudit(t, w.store, "verify", "--log", w.log); err != nil || !strings.HasPrefix(out, fmt.Sprintf("%d records verified, 0 deleted, 0 not sealed", calls)) {
		t.Fatalf("before anything was changed: %v %s", err, out)
	}
	pairs := w.pairs()
	written := map[string]kv.Pair{}
	for _, pair := range pairs {
		written[string(pair.Key)] = pair
	}
	missed := 0
	for i := range bits {
		if i > 0 && i%1000 == 0 {
			t.Logf("%d changes, %d not found", i, missed)
			w.whole()
		}
		from := pairs[random.IntN(len(pairs))]
		to := kv.Pair{Key: bytes.Clone(from.Key), Value: bytes.Clone(from.Value)}
		at := random.IntN(len(to.Key) + len(to.Value))
		if at < len(to.Key) {
			to.Key[at] ^= 1 << random.IntN(8)
		} else {
			to.Value[at-len(to.Key)] ^= 1 << random.IntN(8)
		}
		w.change([]kv.Pair{from}, []kv.Pair{to})
		if out, err := MustAudit(t, w.store, "verify", "--log", w.log); err == nil {
			missed++
			t.Errorf("bit in byte %d of the %d of key and value of %x: not found: %s", at, len(to.Key)+len(to.Value), from.Key, out)
		}
		back := []kv.Pair{from}
		if other, ok := written[string(to.Key)]; ok && !bytes.Equal(to.Key, from.Key) {
			back = append(back, other) // the change took its place
		}
		w.change([]kv.Pair{to}, back)
	}
	w.whole()
	t.Logf("%d records of %d calls; %d of %d changes of one bit found", calls, calls, bits-missed, bits)
	missed = 0
	for i := range tails {
		tail := w.tail(pairs, 1+random.IntN(calls))
		if i == 0 {
			tail = w.tail(pairs, 1)
		}
		w.change(tail, nil)
		if out, err := MustAudit(t, w.store, "verify", "--log", w.log); err == nil || !strings.Contains(out, "cut off") {
			missed++
			t.Errorf("an end of %d records and links is cut off, and %v: %s", len(tail), err, out)
		}
		w.change(nil, tail)
	}
	t.Logf("%d of %d cut ends found", tails-missed, tails)
	w.whole()
}

// tampered is the audit of a server that has stopped.
type tampered struct {
	t          *testing.T
	store, log string
}

// whole ends the test unless all is as it was written: what is left of one change would be
// found in place of the next.
func (w tampered) whole() {
	w.t.Helper()
	if out, err := MustAudit(w.t, w.store, "verify", "--log", w.log); err != nil {
		w.t.Fatalf("after all was put back: %v %s", err, out)
	}
}

var auditScope = kv.Scope{Tenant: "default", Kind: kv.OwnerSystem, Owner: "audit"}

// pairs are all that the audit has written.
func (w tampered) pairs() []kv.Pair {
	engine, err := rockskv.Open(w.store, nil)
	must(w.t, err)
	defer func() { must(w.t, engine.Close()) }()
	var all []kv.Pair
	for pair, err := range engine.Scan(w.t.Context(), kv.System, kv.Prefix(auditScope.AppendPrefix(nil))) {
		must(w.t, err)
		all = append(all, pair)
	}
	return all
}

// tail are the newest records, and every link from the first on that seals one of them.
func (w tampered) tail(pairs []kv.Pair, records int) []kv.Pair {
	var links, found []kv.Pair
	for _, pair := range pairs {
		switch {
		case bytes.HasPrefix(pair.Key, auditScope.Key('l')):
			links = append(links, pair)
		case bytes.HasPrefix(pair.Key, auditScope.Key('r')):
			found = append(found, pair)
		}
	}
	if len(links) == 0 || len(found) < records {
		w.t.Fatalf("%d links and %d records", len(links), len(found))
	}
	cut := found[len(found)-records:]
	sealing := 1 + (records-1)*len(links)/len(found) // at least the newest
	return append(links[len(links)-sealing:], cut...)
}

// change takes pairs away and writes others.
func (w tampered) change(gone, come []kv.Pair) {
	engine, err := rockskv.Open(w.store, &rockskv.Options{Durability: rockskv.None})
	must(w.t, err)
	defer func() { must(w.t, engine.Close()) }()
	commit := func(pairs []kv.Pair, stage func(*kv.Batch, kv.Pair)) error {
		var batch kv.Batch
		guards := map[kv.Scope]bool{}
		for _, pair := range pairs {
			if scope, _, err := kv.SplitKey(pair.Key); err == nil && scope.Validate() == nil {
				guards[scope] = true
				stage(&batch, pair)
			}
		}
		all := kv.Commit{Batch: &batch}
		for scope := range guards {
			all.Guards = append(all.Guards, kv.Guard{Ref: kv.Ref{Keyspace: kv.System, Scope: scope}, Any: true})
		}
		if len(guards) == 0 {
			return nil
		}
		return engine.Commit(w.t.Context(), all)
	}
	remove := func(batch *kv.Batch, pair kv.Pair) { batch.Delete(kv.System, pair.Key) }
	put := func(batch *kv.Batch, pair kv.Pair) { batch.Put(kv.System, pair.Key, pair.Value) }
	// A key that a store can't have stands nowhere: the pair is away.
	for _, err := range []error{commit(gone, remove), commit(come, put)} {
		if err != nil && !errors.Is(err, kv.ErrBadKey) {
			w.t.Fatal(err)
		}
	}
}
