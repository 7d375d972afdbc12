//go:build cgo && !norocksdb

package hand_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/native"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
)

// The test binary starts itself as a child that kills itself: in the middle of a call,
// or while it recovers, after so many commits.
const (
	crashDir   = "HAND_TEST_CRASH_DIR"
	crashAfter = "HAND_TEST_CRASH_AFTER"
)

func TestMain(m *testing.M) {
	dir := os.Getenv(crashDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	child := crashChild
	if after := os.Getenv(crashAfter); after != "" {
		child = func(dir string) error { return recoverChild(dir, after) }
	}
	if err := child(dir); err != nil {
		fmt.Println(err)
	}
	os.Exit(1) // it should have been killed
}

// durable is a hand on a store on disk.
type durable struct {
	db    *rockskv.DB
	log   *session.Log
	blobs *blob.Store
	*hand.Hand
}

func openDurable(dir string) (*durable, error) { return openDying(dir, -1) }

// dying is an engine that takes the process with it after so many commits.
type dying struct {
	*rockskv.DB
	commits atomic.Int64
}

func (d *dying) Commit(ctx context.Context, c kv.Commit) error {
	err := d.DB.Commit(ctx, c)
	if d.commits.Add(-1) == 0 {
		return errors.Join(err, syscall.Kill(os.Getpid(), syscall.SIGKILL))
	}
	return err
}

// openDying is openDurable on an engine that dies after so many commits; never if the
// number is negative.
func openDying(dir string, commits int) (*durable, error) {
	db, err := rockskv.Open(filepath.Join(dir, "store"), nil)
	if err != nil {
		return nil, err
	}
	engine := &dying{DB: db}
	engine.commits.Store(int64(commits))
	folders, err := hand.OpenFolders(dir, &hand.FolderOptions{Store: filepath.Join(dir, "store")})
	if err != nil {
		return nil, err
	}
	writer := kv.NewWriter(engine, nil)
	d := &durable{db: db, log: session.New(engine, writer, nil), blobs: blob.New(engine, writer, nil)}
	registry := tools.NewRegistry(nil)
	err = native.Register(registry, &native.Options{Blobs: stored{d.blobs}, Store: filepath.Join(dir, "store")})
	err = errors.Join(err, registry.Add(tools.Descriptor{Name: "die", Level: 1, Mutates: true}, die))
	d.Hand = hand.New(hand.Deps{
		Tools: tools.NewCatalogue(registry, nil), Log: d.log, Blobs: d.blobs, Reducer: step.NewReducer(nil),
		Engine: engine, Writer: writer, Workspaces: folders,
	}, nil)
	return d, err
}

// die is a tool that takes effect and takes the process with it.
func die(_ context.Context, c tools.Input) (tools.Output, error) {
	if err := c.Root.WriteFile("effect", []byte("done"), 0o644); err != nil {
		return tools.Output{}, err
	}
	return tools.Output{}, syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

func crashChild(dir string) error {
	d, err := openDurable(dir)
	if err != nil {
		return err
	}
	req := request("fs:write_file", map[string]any{"path": "a", "content": "before"})
	req.RequestID = "first"
	if a, err := d.Call(context.Background(), req); err != nil || !a.Recorded {
		return fmt.Errorf("first call: %+v, %w", a, err)
	}
	for _, r := range mixedSteps() {
		r.SessionID = reportedSession
		if _, err := d.Record(context.Background(), r); err != nil {
			return fmt.Errorf("report: %w", err)
		}
	}
	req = request("die", nil)
	req.RequestID = "second"
	_, err = d.Call(context.Background(), req)
	return err
}

// reportedSession has the steps that the child was told of.
const reportedSession = "reported"

// checkReported looks for everything that was offloaded before the child died.
func checkReported(t *testing.T, d *durable) {
	t.Helper()
	entries, err := d.log.Steps(t.Context(), agent, reportedSession, 0, 0)
	reports := mixedSteps()
	if err != nil || len(entries) != len(reports) {
		t.Fatalf("%d steps, %v", len(entries), err)
	}
	for i, r := range reports {
		s := entries[i].Step
		if !s.NeedsOffload() {
			continue
		}
		a, err := d.Call(t.Context(), request("fs:read_file", map[string]any{"path": s.OutcomePath}))
		if err != nil || field(t, a.Output, "content") != offloaded(t, r) {
			t.Errorf("%s does not come back as it was: %v", s.OutcomePath, err)
		}
	}
}

// A21: nothing that was acknowledged is lost, and what was offloaded comes back
// byte for byte.
func TestKilledInTheMiddleOfACall(t *testing.T) {
	dir := t.TempDir()
	mustDie(t, crashDir+"="+dir)
	d, err := openDurable(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.db.Close()
	if n, err := d.Recover(t.Context()); n != 1 || err != nil {
		t.Fatalf("Recover: %d, %v", n, err)
	}
	for id, want := range map[string]tools.Code{"first": "", "second": tools.OutcomeUnknown} {
		req := request("die", nil)
		if id == "first" {
			req = request("fs:write_file", map[string]any{"path": "a", "content": "before"})
		}
		req.RequestID = id
		a, err := d.Call(t.Context(), req)
		if err != nil || !a.Replayed || a.ErrorCode != want || a.Success != (want == "") {
			t.Errorf("%s: got %+v, %v", id, a, err)
		}
	}
	entries, err := d.log.Steps(t.Context(), agent, "", 0, 0)
	if err != nil || len(entries) != 2 || entries[0].Step.Outcome != step.Succeeded || entries[1].Step.Outcome != step.Unknown {
		t.Errorf("steps: %+v, %v", entries, err)
	}
	if e, err := d.blobs.Lookup(t.Context(), agent, "step_001"); err != nil || e.Size != 6 {
		t.Errorf("what was written before: %+v, %v", e, err)
	}
	checkReported(t, d)
}

// mustDie starts a child that kills itself.
func mustDie(t *testing.T, environment ...string) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), environment...)
	out, err := child.CombinedOutput()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the child ended with %v: %s", err, out)
	}
}

func recoverChild(dir, after string) error {
	commits, err := strconv.Atoi(after)
	if err != nil {
		return err
	}
	d, err := openDying(dir, commits)
	if err != nil {
		return err
	}
	_, err = d.Recover(context.Background())
	return err
}

// Interrupted calls of a store before format 4 become one step each, however often the
// process is killed while it recovers them.
func TestKilledWhileRecoveringAnOlderStore(t *testing.T) {
	const intents, kills, each = 24, 6, 3
	dir := t.TempDir()
	d, err := openDurable(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range intents {
		scope := kv.AgentScope(agent.Tenant, fmt.Sprint("agent ", i%4))
		in := session.Intent{ID: fmt.Sprint(i), SessionID: "s", Tool: "die", CallID: fmt.Sprint(i), RequestID: fmt.Sprint(i)}
		if err := d.log.WriteIntent(t.Context(), scope, in); err != nil {
			t.Fatal(err)
		}
	}
	moved := kvtest.Undivide(t, d.db, "intents")
	if err := d.db.Close(); err != nil || moved != intents {
		t.Fatalf("%d intents are in the whole list: %v", moved, err)
	}
	older := []byte("loom-bridge store\nformat 3\n")
	if err := os.WriteFile(filepath.Join(dir, "store", "LOOM-FORMAT"), older, 0o600); err != nil {
		t.Fatal(err)
	}
	for range kills {
		mustDie(t, crashDir+"="+dir, fmt.Sprint(crashAfter, "=", each))
	}
	if d, err = openDurable(dir); err != nil {
		t.Fatal(err)
	}
	defer d.db.Close()
	if n, err := d.Recover(t.Context()); n != intents-kills*each || err != nil {
		t.Errorf("the last one recovered %d (%v), want %d", n, err, intents-kills*each)
	}
	calls := make(map[string]int)
	for i := range 4 {
		entries, err := d.log.Steps(t.Context(), kv.AgentScope(agent.Tenant, fmt.Sprint("agent ", i)), "s", 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if calls[e.Step.CallID]++; e.Step.Outcome != step.Unknown {
				t.Errorf("step %+v", e.Step)
			}
		}
	}
	for i := range intents {
		if calls[fmt.Sprint(i)] != 1 {
			t.Errorf("call %d has %d steps", i, calls[fmt.Sprint(i)])
		}
	}
	for list, err := range kv.List("intents").Scopes(t.Context(), d.db) {
		t.Errorf("something is left in %s, %v", list, err)
	}
}

// BenchmarkReadFile is one recorded read of 4 KiB, offloaded and synced;
// BenchmarkBareRead reads the same file and commits the same bytes.
func BenchmarkReadFile(b *testing.B) {
	d, _ := mustBench(b)
	defer d.db.Close()
	req := request("fs:read_file", map[string]any{"path": "file"})
	for b.Loop() {
		if a, err := d.Call(b.Context(), req); err != nil || !a.Recorded || !a.Success {
			b.Fatal(a, err)
		}
	}
}

func BenchmarkBareRead(b *testing.B) {
	d, dir := mustBench(b)
	defer d.db.Close()
	sequence := uint64(0)
	for b.Loop() {
		content, err := os.ReadFile(filepath.Join(dir, "file"))
		if err != nil {
			b.Fatal(err)
		}
		var batch kv.Batch
		batch.Put(kv.Log, agent.Key('x', fmt.Append(nil, sequence)), content)
		err = d.db.Commit(b.Context(), kv.Commit{
			Guards: []kv.Guard{{Ref: kv.Ref{Keyspace: kv.Log, Scope: agent}, Any: true}},
			Batch:  &batch,
		})
		if err != nil {
			b.Fatal(err)
		}
		sequence++
	}
}

func mustBench(b *testing.B) (*durable, string) {
	b.Helper()
	dir := b.TempDir()
	text := make([]byte, 4096)
	for i := range text {
		text[i] = "the quick brown fox jumps over it\n"[i%34]
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), text, 0o644); err != nil {
		b.Fatal(err)
	}
	d, err := openDurable(dir)
	if err != nil {
		b.Fatal(err)
	}
	return d, dir
}
