package exports

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// stay is an engine that the command closes, and that stays open for the next one.
type stay struct{ kv.Engine }

func (stay) Close() error { return nil }

type store struct {
	engine *memkv.DB
	writer *kv.Writer
}

func newStore(t *testing.T) *store {
	t.Helper()
	s := &store{engine: memkv.New(nil)}
	s.writer = kv.NewWriter(s.engine, nil)
	t.Cleanup(func() { s.writer.Close(); s.engine.Close() })
	return s
}

func (s *store) stage(t *testing.T, ref kv.Ref, stage kv.Stage) {
	t.Helper()
	if err := s.writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{ref}, Stage: stage}); err != nil {
		t.Fatal(err)
	}
}

func (s *store) record(t *testing.T, agent string, r record.Record) {
	t.Helper()
	scope := kv.AgentScope("default", agent)
	s.stage(t, kv.Ref{Keyspace: kv.Records, Scope: scope}, func(_ context.Context, tx *kv.Tx) error {
		tx.Put(kv.Records, record.Key(scope, r.ID), record.Encode(r))
		return nil
	})
}

func (s *store) blob(t *testing.T, agent, path, content string) {
	t.Helper()
	scope, blobs := kv.AgentScope("default", agent), blob.New(s.engine, s.writer, nil)
	stored, err := blobs.Add(t.Context(), scope, []byte(content))
	if err != nil {
		t.Fatal(err)
	}
	s.stage(t, blobs.Ref(scope), func(ctx context.Context, tx *kv.Tx) error {
		_, err := blobs.Stage(ctx, tx, scope, stored, blob.Entry{Path: path, SessionID: "s"})
		return err
	})
}

// run runs the command; data is where the settings have the store.
func (s *store) run(t *testing.T, data string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := Command(Options{
		DataDir: func() (string, error) { return data, nil }, Open: func() (kv.Engine, error) { return stay{s.engine}, nil },
		Reduction: func() (step.Options, error) { return step.Options{}, nil },
		Refuse:    func(flag, value, problem string) error { return fmt.Errorf("--%s %q %s", flag, value, problem) },
		Out:       &out, Progress: &out,
	})
	c.SetArgs(args)
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetOut(io.Discard)
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

func TestRefused(t *testing.T) {
	t.Parallel()
	s, data, out := newStore(t), t.TempDir(), filepath.Join(t.TempDir(), "out")
	s.record(t, "known", record.Record{ID: "r", Text: "x", SessionID: "s", Version: 1})
	for args, want := range map[string]string{
		"--out " + out: "--agent", "--agent known": "--out", "--agent known --out " + data + "/x": "--out",
		"--agent known --out " + data: "--out", "--agent other --out " + out: `known agents: "known"`,
		"--agent known --tenant x --out " + out:   `known tenants: "default"`,
		"--agent known --session t --out " + out:  "--session",
		"--agent known --tenant A/B --out " + out: "",
	} {
		if got, err := s.run(t, data, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v", args, got, err)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a refused export makes its directory")
	}
}

// TestHostileNames: whatever ids records and paths of results have, each comes as a file of its
// own, and the files of the export are what they are.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	s, dir := newStore(t), filepath.Join(t.TempDir(), "out")
	ids := []string{"plain", "../../up", "a/b", "a", ".", "..", "/root", strings.Repeat("n", 250), "sp ace\n", "ü", "renamed/x"}
	for i, id := range ids {
		s.record(t, "a", record.Record{ID: id, Text: fmt.Sprint("text ", i), Version: 1, SessionID: "s"})
	}
	for _, path := range []string{"records.jsonl", "events.jsonl/x", "versions.jsonl", "audit.jsonl", "memory", "blobs.jsonl"} {
		s.blob(t, "a", path, "result "+path)
	}
	if _, err := session.New(s.engine, s.writer, nil).AppendMessages(t.Context(), kv.AgentScope("default", "a"), "s", []session.Message{{Role: session.User, Content: "hi"}}, ""); err != nil {
		t.Fatal(err)
	}
	s.record(t, "b", record.Record{ID: "foreign", Text: "foreign", Version: 1})
	out, err := s.run(t, t.TempDir(), "--agent", "a", "--out", dir)
	if err != nil || !strings.Contains(out, "1 messages") || !strings.Contains(out, "6 offloaded results") || !strings.Contains(out, fmt.Sprintf("%d records", len(ids))) {
		t.Fatalf("%q, %v", out, err)
	}
	lines, err := os.ReadFile(filepath.Join(dir, "records.jsonl"))
	if err != nil || bytes.Count(lines, []byte("\n")) != len(ids) || bytes.Contains(lines, []byte("foreign")) {
		t.Errorf("%s, %v", lines, err)
	}
	texts := map[string]bool{}
	err = filepath.WalkDir(filepath.Dir(dir), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		texts[string(content)] = true
		return err
	})
	for i, id := range ids {
		if !texts[fmt.Sprint("text ", i)] {
			t.Errorf("the text of %q is in no file, %v", id, err)
		}
	}
	if _, err := s.run(t, t.TempDir(), "--agent", "a", "--out", dir); err == nil {
		t.Error("a directory that is not empty is written to")
	}
	if out, err := s.run(t, t.TempDir(), "--agent", "a", "--out", dir, "--force"); err != nil {
		t.Errorf("%q, %v", out, err)
	}
}

// TestDamagedEntries: an entry of any kind that can't be read has a line in the export, which goes
// on with all others and says that it is not complete.
func TestDamagedEntries(t *testing.T) {
	t.Parallel()
	s, scope := newStore(t), kv.AgentScope("default", "a")
	log := session.New(s.engine, s.writer, nil)
	bus := events.New(s.engine, s.writer, nil)
	defer bus.Close()
	for i := range 3 {
		id := fmt.Sprint("e", i)
		s.record(t, "a", record.Record{ID: id, Text: id, Version: 1, SessionID: "s"})
		s.blob(t, "a", id, "result "+id)
		if _, err := log.AppendMessages(t.Context(), scope, "s", []session.Message{{Role: session.User, Content: id}}, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := log.AddTask(t.Context(), scope, session.Task{SessionID: "s", ID: id, Action: "act"}); err != nil {
			t.Fatal(err)
		}
		if _, err := bus.Emit(t.Context(), "default", events.Event{Topic: "agent.a", Source: "a", Payload: fmt.Appendf(nil, "%q", id)}, events.EmitOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	// The second entry of each kind: its value is cut.
	kinds := map[string]struct {
		ks     kv.Keyspace
		prefix []byte
		lines  string
	}{
		"entry": {kv.Log, scope.Key('e'), "messages"}, "task": {kv.Log, scope.Key('t'), "tasks"}, "record": {kv.Records, scope.Key('r'), "records"},
		"result": {kv.Blobs, scope.Key('p'), "blobs"}, "event": {kv.Events, kv.Scope{Tenant: "default", Kind: kv.OwnerTopic, Owner: "agent.a"}.Key('e'), "events"},
	}
	for what, kind := range kinds {
		var second kv.Pair
		n := 0
		for pair, err := range s.engine.Scan(t.Context(), kind.ks, kv.Prefix(kind.prefix)) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == 2 {
				second = pair
			}
		}
		if n != 3 {
			t.Fatalf("%s: %d entries", what, n)
		}
		scope, _, err := kv.SplitKey(second.Key)
		if err != nil {
			t.Fatal(err)
		}
		s.stage(t, kv.Ref{Keyspace: kind.ks, Scope: scope}, func(_ context.Context, tx *kv.Tx) error {
			tx.Put(kind.ks, second.Key, second.Value[:len(second.Value)/2])
			return nil
		})
	}
	dir := filepath.Join(t.TempDir(), "out")
	out, err := s.run(t, t.TempDir(), "--agent", "a", "--out", dir)
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), fmt.Sprint(len(kinds), " entries")) {
		t.Errorf("%v, %s", err, out)
	}
	damaged, err := os.ReadFile(filepath.Join(dir, "damaged.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for what, kind := range kinds {
		if strings.Count(string(damaged), fmt.Sprintf(`"what":%q`, what)) != 1 {
			t.Errorf("%s: the damage is %s", what, damaged)
		}
		if left, err := os.ReadFile(filepath.Join(dir, kind.lines+".jsonl")); err != nil || bytes.Count(left, []byte("\n")) != 2 {
			t.Errorf("%s: the export has %s, %v", what, left, err)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 20 {
		names = addName(addName(names, fmt.Sprint("agent\x1b", i)), fmt.Sprint("agent\x1b", i))
	}
	if len(names) != shownNames+1 || names[shownNames] != "…" || strings.Contains(strings.Join(names, ""), "\x1b") {
		t.Errorf("%q", names)
	}
}

// TestEngineErrors: a store that can't be read fails the export, and is closed.
func TestEngineErrors(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.record(t, "a", record.Record{ID: "r", Text: "x", Version: 1})
	s.engine.Close()
	if _, err := s.run(t, t.TempDir(), "--agent", "a", "--out", filepath.Join(t.TempDir(), "out")); !errors.Is(err, kv.ErrClosed) {
		t.Error(err)
	}
}
