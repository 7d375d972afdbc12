package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/audit"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// world is a store with the log of one server.
type world struct {
	testing.TB
	engine kv.Engine
	writer *kv.Writer
	log    *audit.Log
	lines  *bytes.Buffer // what the server logged
	now    time.Time
}

func MustWorld(tb testing.TB) *world {
	tb.Helper()
	w := &world{TB: tb, engine: memkv.New(nil), lines: &bytes.Buffer{}, now: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)}
	tb.Cleanup(func() { w.must(w.engine.Close()) })
	w.start()
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// start begins an epoch.
func (w *world) start() {
	w.writer = kv.NewWriter(w.engine, nil)
	w.log = audit.New(w.engine, w.writer, &audit.Options{
		Retention: 24 * time.Hour, Now: func() time.Time { return w.now }, Logger: slog.New(slog.NewTextHandler(w.lines, nil)),
	})
}

// stop ends the epoch as a server does.
func (w *world) stop() {
	w.Helper()
	w.must(w.log.Close())
	w.must(w.writer.Close())
}

// call writes the record of one call.
func (w *world) call(agent string, i int) {
	w.Helper()
	w.must(w.log.Write(context.Background(), audit.Record{
		Tenant: "default", Agent: agent, Session: "s", CallID: fmt.Sprint("c", i), Tool: "fs:read_file",
		Args: json.RawMessage(`{"path":"a.txt"}`), Outcome: audit.OutcomeOK, Step: uint64(i + 1), Time: w.now, Duration: time.Millisecond,
		BytesIn: 16, BytesOut: int64(i),
	}))
}

// verify compares the store with the heads of the log.
func (w *world) verify(lines string) audit.Report {
	w.Helper()
	heads, err := audit.FindHeads(strings.NewReader(lines))
	w.must(err)
	r, err := audit.Verify(context.Background(), w.engine, heads)
	w.must(err)
	return r
}

// pairs are all that the tenant's audit has, in order.
func (w *world) pairs() []kv.Pair {
	w.Helper()
	var all []kv.Pair
	for pair, err := range w.engine.Scan(context.Background(), kv.System, kv.Prefix(scope.AppendPrefix(nil))) {
		w.must(err)
		all = append(all, pair)
	}
	return all
}

var scope = kv.Scope{Tenant: "default", Kind: kv.OwnerSystem, Owner: "audit"}

// change writes to the store behind the log's back; a nil value deletes.
func (w *world) change(pairs ...kv.Pair) {
	w.Helper()
	var batch kv.Batch
	for _, p := range pairs {
		if p.Value == nil {
			batch.Delete(kv.System, p.Key)
			continue
		}
		batch.Put(kv.System, p.Key, p.Value)
	}
	w.must(w.engine.Commit(context.Background(), kv.Commit{
		Guards: []kv.Guard{{Ref: kv.Ref{Keyspace: kv.System, Scope: scope}, Any: true}}, Batch: &batch,
	}))
}

// Every call has its record, across servers, and a chain over them that holds.
func TestRecordsAndChain(t *testing.T) {
	w := MustWorld(t)
	const calls = 10_000
	for i := range calls {
		if i == calls/2 {
			w.stop()
			w.start()
		}
		w.call(fmt.Sprint("agent-", i%7), i)
	}
	w.stop()
	r := w.verify(w.lines.String())
	if r.Records != calls || r.Unsealed != 0 || r.Removed != 0 || len(r.Found) > 0 || r.Heads < 2 {
		t.Errorf("report %+v, want %d records and no findings", r, calls)
	}
	seen := 0
	for q := (audit.Query{Limit: audit.MaxPage}); ; {
		page, next, err := audit.List(context.Background(), w.engine, "default", q)
		w.must(err)
		for _, one := range page {
			if seen++; one.Step != uint64(calls-seen+1) {
				t.Fatalf("record %d of the list is of step %d, want %d: newest first", seen, one.Step, calls-seen+1)
			}
		}
		if q.After = next; next == (audit.Cursor{}) {
			break
		}
	}
	if seen != calls {
		t.Errorf("the list has %d records, want %d", seen, calls)
	}
}

// Each change of one bit, in any key or value, is found without the log of the server.
func TestEveryBitCounts(t *testing.T) {
	w := MustWorld(t)
	for i := range 40 {
		w.call("a", i)
		if i == 20 {
			w.stop()
			w.start()
		}
		w.must(w.log.Seal(context.Background()))
	}
	w.stop()
	if r := w.verify(""); len(r.Found) > 0 || r.Records != 40 {
		t.Fatalf("report of an untouched store: %+v", r)
	}
	changes := 1000
	if os.Getenv("LOOM_SOAK_ROUNDS") != "" {
		changes = 10_000
	}
	pairs, random := w.pairs(), rand.New(rand.NewPCG(1, 2))
	prefix := len(scope.AppendPrefix(nil))
	for i := range changes {
		p := pairs[random.IntN(len(pairs))]
		if at := random.IntN(len(p.Key) - prefix + len(p.Value)); at < len(p.Value) {
			changed := bytes.Clone(p.Value)
			changed[at] ^= 1 << random.IntN(8)
			w.change(kv.Pair{Key: p.Key, Value: changed})
			if r := w.verify(""); len(r.Found) == 0 {
				t.Fatalf("change %d of byte %d of the value of %q is not found", i, at, p.Key)
			}
			w.change(p)
		} else {
			key := bytes.Clone(p.Key)
			key[prefix+at-len(p.Value)] ^= 1 << random.IntN(8)
			if kv.IsReserved(key) {
				continue
			}
			moved := kv.Pair{Key: key, Value: p.Value}
			before, err := w.engine.Get(context.Background(), kv.System, key)
			w.must(err)
			w.change(kv.Pair{Key: p.Key}, moved)
			if r := w.verify(""); len(r.Found) == 0 {
				t.Fatalf("change %d of the key %q to %q is not found", i, p.Key, key)
			}
			w.change(kv.Pair{Key: key, Value: before[0]}, p)
		}
	}
	if r := w.verify(""); len(r.Found) > 0 {
		t.Errorf("report after every change was undone: %+v", r)
	}
}

// What was cut from the end is found with the log of the server.
func TestCutTails(t *testing.T) {
	w := MustWorld(t)
	const calls = 120
	for i := range calls {
		w.call("a", i)
		w.must(w.log.Seal(context.Background()))
	}
	w.stop()
	pairs := w.pairs()
	links, records := filter(pairs, 'l'), filter(pairs, 'r')
	if len(links) != calls || len(records) != calls {
		t.Fatalf("%d links and %d records, want %d of each", len(links), len(records), calls)
	}
	for n := 1; n <= 100; n++ {
		var cut []kv.Pair
		for i := calls - n; i < calls; i++ {
			cut = append(cut, kv.Pair{Key: links[i].Key}, kv.Pair{Key: records[i].Key})
		}
		w.change(cut...)
		if r := w.verify(w.lines.String()); len(r.Found) == 0 {
			t.Errorf("%d records cut from the end are not found", n)
		}
		w.change(append(links[calls-n:], records[calls-n:]...)...)
	}
	if r := w.verify(w.lines.String()); len(r.Found) > 0 {
		t.Errorf("report after all is back: %+v", r)
	}
}

func filter(pairs []kv.Pair, tag byte) []kv.Pair {
	var out []kv.Pair
	for _, p := range pairs {
		if p.Key[len(scope.AppendPrefix(nil))] == tag {
			out = append(out, p)
		}
	}
	return out
}

// A server that was killed leaves records without a link. The next one seals them.
func TestKilledServer(t *testing.T) {
	w := MustWorld(t)
	for i := range 5 {
		w.call("a", i)
	}
	w.must(w.log.Seal(context.Background()))
	for i := range 3 {
		w.call("a", i)
	}
	killed := w.log // seals no more, for its writer is closed
	w.must(w.writer.Close())
	if r := w.verify(""); r.Records+r.Unsealed != 8 || len(r.Found) > 0 {
		t.Errorf("report before the next start: %+v", r)
	}
	w.start()
	w.must(w.log.Recover(context.Background()))
	w.call("a", 9)
	w.stop()
	if r := w.verify(w.lines.String()); r.Records != 9 || r.Unsealed != 0 || len(r.Found) > 0 || r.Heads == 0 {
		t.Errorf("report: %+v", r)
	}
	_ = killed.Close()
}

// Deleting the records of an agent, or old ones, leaves digests that verify.
func TestErasedAndOld(t *testing.T) {
	w := MustWorld(t)
	for i := range 600 {
		w.call(fmt.Sprint("agent-", i%3), i)
	}
	n, err := w.log.Erase(context.Background(), "default", "agent-1", "", 0)
	w.must(err)
	w.now = w.now.Add(25 * time.Hour)
	w.call("agent-1", 600)
	if n != 200 {
		t.Errorf("%d records erased, want 200", n)
	}
	w.must(w.log.Seal(context.Background()))
	if r := w.verify(""); r.Records != 401 || r.Removed != 200 || len(r.Found) > 0 {
		t.Errorf("report after the erasure: %+v", r)
	}
	n, err = w.log.Sweep(context.Background())
	w.must(err)
	w.stop()
	if r := w.verify(w.lines.String()); n != 400 || r.Records != 1 || r.Removed != 600 || len(r.Found) > 0 {
		t.Errorf("%d records were old; report: %+v", n, r)
	}
	for _, p := range w.pairs() {
		if bytes.Contains(p.Value, []byte("agent-2")) {
			t.Errorf("%q still tells of an agent whose records are gone", p.Key)
		}
	}
}

// Of two servers on one store one deletes old records, under a lease; the other does when
// that one has ended.
func TestOneServerSweeps(t *testing.T) {
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	var logs []*audit.Log
	var ends []func()
	for _, peer := range kvtest.Peers(2) {
		writer := kv.NewWriter(peer, nil)
		log := audit.New(peer, writer, &audit.Options{Retention: 24 * time.Hour, Now: func() time.Time { return now }})
		end := func() {
			if err := errors.Join(log.Close(), writer.Close(), peer.Close()); err != nil {
				t.Error(err)
			}
		}
		logs, ends = append(logs, log), append(ends, end)
	}
	write := func(log *audit.Log) {
		for i := range 3 {
			r := audit.Record{Tenant: "default", Agent: "a", CallID: fmt.Sprint(i), Tool: "fs:read_file", Outcome: audit.OutcomeOK, Time: now}
			if err := log.Write(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		if err := log.Seal(t.Context()); err != nil {
			t.Fatal(err)
		}
		now = now.Add(25 * time.Hour)
	}
	swept := func(log *audit.Log) int {
		n, err := log.Sweep(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	write(logs[0])
	if n := swept(logs[0]); n != 3 {
		t.Fatalf("%d records are deleted, want 3", n)
	}
	write(logs[0])
	if n := swept(logs[1]); n != 0 {
		t.Errorf("%d records are deleted beside the server that holds the lease", n)
	}
	ends[0]()
	if n := swept(logs[1]); n != 3 || logs[1].Swept() != 3 {
		t.Errorf("%d records are deleted when that one has ended, want 3", n)
	}
	ends[1]()
}

// No secret is spelled out, and nothing is longer than the limit.
func TestSafe(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for _, c := range []struct{ name, args, not, has string }{
		{"name", `{"api_key":"hunter2hunter2"}`, "hunter2", `"[redacted]"`},
		{"nested", `{"headers":{"Authorization":"abc"}}`, "abc", "Authorization"},
		{"option", `{"args":["--password","swordfish"]}`, "swordfish", "--password"},
		{"option with value", `{"command":"curl --token=swordfish http://a"}`, "swordfish", "curl"},
		{"key", `{"text":"use sk-abcdefghijklmnopqrstuv now"}`, "abcdefghij", "use"},
		{"bearer", `{"line":"Authorization: Bearer abcdefgh12345"}`, "abcdefgh", "Authorization"},
		{"github", `{"x":["ghp_abcdefghijklmnopqrstuvwxyz0123"]}`, "ghp_", "redacted"},
		{"url", `{"url":"https://joe:swordfish@host/x"}`, "swordfish", "host"},
		{"escaped", `{"url":"https:\/\/joe:swordfish@host"}`, "swordfish", "host"},
		{"escaped letters", `{"\u0070assword":"swordfish"}`, "swordfish", "password"},
		{"pem", `{"x":"-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----"}`, "MIIE", "redacted"},
		{"long", `{"content":"` + long + `"}`, long, "content"},
		{"plain", `{"path":"a.txt"}`, "redacted", `{"path":"a.txt"}`},
		{"no object", `[1]`, "1", ""},
	} {
		got := string(audit.Safe(json.RawMessage(c.args)))
		if strings.Contains(got, c.not) || !strings.Contains(got, c.has) || len(got) > audit.MaxArgsBytes {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

func FuzzSafe(f *testing.F) {
	f.Add(`{"a":"b","password":{"c":1}}`)
	f.Fuzz(func(t *testing.T, args string) {
		got := audit.Safe(json.RawMessage(args))
		if len(got) > audit.MaxArgsBytes || len(got) > 0 && !json.Valid(got) && json.Valid([]byte(args)) {
			t.Errorf("%q gives %q", args, got)
		}
	})
}
