package export_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/export"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

var alice = kv.AgentScope("t", "alice")

// store is what an agent did.
type store struct {
	export.Selection
	engine *memkv.DB
	writer *kv.Writer
	blobs  map[string][]byte // by path
}

func newStore(t *testing.T) *store {
	t.Helper()
	engine := memkv.New(nil)
	writer := kv.NewWriter(engine, nil)
	t.Cleanup(func() { writer.Close(); engine.Close() })
	return &store{
		Selection: export.Selection{
			Log: session.New(engine, writer, nil), Blobs: blob.New(engine, writer, nil), Scope: alice, Lines: step.DesignTemplates(),
		},
		engine: engine, writer: writer, blobs: map[string][]byte{},
	}
}

func (s *store) blob(t *testing.T, path, session string, content []byte) blob.Entry {
	t.Helper()
	stored, err := s.Blobs.Add(t.Context(), alice, content)
	if err != nil {
		t.Fatal(err)
	}
	var entry blob.Entry
	err = s.writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{s.Blobs.Ref(alice)}, Stage: func(ctx context.Context, tx *kv.Tx) (err error) {
		entry, err = s.Blobs.Stage(ctx, tx, alice, stored, blob.Entry{Path: path, SessionID: session})
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.blobs[entry.Path] = content
	return entry
}

func (s *store) step(t *testing.T, st step.Step) {
	t.Helper()
	err := s.writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{s.Log.Ref(alice)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
		_, _, err := s.Log.StageStep(ctx, tx, alice, func(number uint64) (step.Step, error) {
			st.Observation = step.ID(number)
			return st, nil
		})
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
}

func (s *store) say(t *testing.T, id string) {
	t.Helper()
	if _, err := s.Log.AppendMessages(t.Context(), alice, id, []session.Message{{Role: session.User, Content: "in " + id}}, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Log.AddTask(t.Context(), alice, session.Task{SessionID: id, Action: "task"}); err != nil {
		t.Fatal(err)
	}
}

// exported writes everything into a directory, and returns the damaged.
func (s *store) exported(t *testing.T, dir string, force bool) (export.Counts, map[string]error) {
	t.Helper()
	tree, err := export.OpenTree(dir, force)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	damaged := map[string]error{}
	var last export.Counts
	counts, err := export.Write(t.Context(), tree, s.Selection, export.Observer{
		Progress: func(c export.Counts) {
			if c.Bytes < last.Bytes || c.Steps < last.Steps || c.Results < last.Results {
				t.Errorf("%+v after %+v", c, last)
			}
			last = c
		},
		Damaged: func(_, name string, err error) { damaged[name] = err },
	})
	if err != nil {
		t.Fatal(err)
	}
	return counts, damaged
}

func lines(t *testing.T, dir, name string) (all []map[string]any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var object map[string]any
		if err := json.Unmarshal(line, &object); err != nil {
			t.Fatalf("%s: %s: %v", name, line, err)
		}
		all = append(all, object)
	}
	return all
}

// check compares what is known of each blob with the files that it names.
func (s *store) check(t *testing.T, dir string, want int) {
	t.Helper()
	described := lines(t, dir, "blobs.jsonl")
	if len(described) != want {
		t.Errorf("%d results are described, want %d", len(described), want)
	}
	for _, line := range described {
		path, files := line["path"].(string), line["files"].([]any)
		if len(files) == 0 {
			t.Errorf("%s has no file", path)
		}
		for _, file := range files {
			got, err := os.ReadFile(filepath.Join(dir, file.(string)))
			if err != nil || !bytes.Equal(got, s.blobs[path]) {
				t.Errorf("%s, written as %s, holds %d bytes of %d, %v", path, file, len(got), len(s.blobs[path]), err)
			}
		}
	}
}

// hostile are paths that a file system does not take as they are, or that the export has
// files or folders of its own under.
var hostile = []string{
	"blobs.jsonl", "blobs.jsonl/below", "steps.jsonl", "tasks.jsonl/x", "folds.jsonl", "workspace/history/step_001.json", "workspace/history",
	"a", "a/b", "a/b/c", "folder/x", "folder", strings.Repeat("n", 300), strings.Repeat("d/", 150) + "x", "renamed/a", "-rf", "sp ace\nline",
	"ü", ".hidden", "...", "con", "a\\b", "renamed",
}

// TestEveryResult: whatever their paths are, all results are written byte for byte, and twice
// the same.
func TestEveryResult(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 3))
		s := newStore(t)
		s.say(t, "one")
		s.step(t, step.Step{SessionID: "one", ToolName: "x", Args: []byte(`{"a":1}`)})
		for i, n := range random.Perm(len(hostile)) {
			s.blob(t, hostile[n], "one", fmt.Appendf(nil, "%d of %d", i%7, seed)) // some are the same bytes
		}
		dir := filepath.Join(t.TempDir(), "new", "out")
		counts, damaged := s.exported(t, dir, false)
		if len(damaged) > 0 || counts.Steps != 1 || counts.Messages != 1 || counts.Tasks != 1 || counts.Damaged != 0 {
			t.Errorf("%+v, damaged %v", counts, damaged)
		}
		s.check(t, dir, len(hostile))
		again, _ := s.exported(t, dir, true)
		if again != counts {
			t.Errorf("once more: %+v, first %+v", again, counts)
		}
		s.check(t, dir, len(hostile))
		if _, err := export.OpenTree(dir, false); err == nil {
			t.Error("a directory that is not empty is taken")
		}
	}
}

// TestEachNameAlone: no result takes the name of a file that the export makes later.
func TestEachNameAlone(t *testing.T) {
	t.Parallel()
	for _, path := range hostile {
		s := newStore(t)
		s.blob(t, path, "one", []byte("content"))
		s.blob(t, "tasks.jsonl", "one", []byte("renamed"))
		dir := t.TempDir()
		s.exported(t, dir, false)
		s.check(t, dir, 2)
	}
}

// TestOneSession: the export of a session has its own entries, results and tasks, and the
// results of others that its steps refer to.
func TestOneSession(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	for _, id := range []string{"one", "two"} {
		s.say(t, id)
	}
	own := s.blob(t, "own", "one", []byte("own"))
	shared := s.blob(t, "shared", "two", []byte("shared"))
	s.blob(t, "foreign", "two", []byte("foreign"))
	s.step(t, step.Step{SessionID: "one", ToolName: "x", OutcomeRef: shared.Ref, OutcomePath: shared.Path})
	s.step(t, step.Step{SessionID: "one", ToolName: "x", OutcomeRef: own.Ref, OutcomePath: own.Path})
	s.step(t, step.Step{SessionID: "one", ToolName: "x", OutcomeRef: "0", OutcomePath: "expired"})
	s.step(t, step.Step{SessionID: "two", ToolName: "x"})
	s.Session = "one"
	dir := t.TempDir()
	counts, _ := s.exported(t, dir, false)
	if counts.Steps != 3 || counts.Messages != 1 || counts.Tasks != 1 || counts.Results != 2 {
		t.Errorf("%+v", counts)
	}
	s.check(t, dir, 2)
	for _, line := range append(lines(t, dir, "steps.jsonl"), lines(t, dir, "messages.jsonl")...) {
		if line["session_id"] != "one" {
			t.Errorf("%v", line)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "foreign")); err == nil {
		t.Error("a result of another session is exported")
	}
}

// TestDamaged: a result whose bytes are not what they were is left out, and the others are
// written.
func TestDamaged(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	random := rand.NewChaCha8([32]byte{1})
	for _, path := range []string{"a/first", "second", "z/third"} {
		content := make([]byte, 3*blob.ChunkBytes)
		_, _ = random.Read(content)
		s.blob(t, path, "one", content)
	}
	middle := s.blobs["second"][blob.ChunkBytes+10:][:100]
	err := s.writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{s.Blobs.Ref(alice)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
		for pair, err := range s.engine.Scan(ctx, kv.Blobs, kv.Prefix(alice.AppendPrefix(nil))) {
			if err != nil {
				return err
			}
			if at := bytes.Index(pair.Value, middle); at >= 0 {
				value := bytes.Clone(pair.Value)
				value[at] ^= 1
				tx.Put(kv.Blobs, pair.Key, value)
			}
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	counts, damaged := s.exported(t, dir, false)
	if counts.Damaged != 1 || counts.Results != 2 || len(damaged) != 1 || !errors.Is(damaged["second"], blob.ErrDamaged) {
		t.Errorf("%+v, %v", counts, damaged)
	}
	s.check(t, dir, 2)
	if _, err := os.Stat(filepath.Join(dir, "second")); err == nil {
		t.Error("a part of a damaged result is left")
	}
}

// TestNothingOutside: no name, and no link that stands in the directory, leads out of it.
func TestNothingOutside(t *testing.T) {
	t.Parallel()
	outside, dir := t.TempDir(), t.TempDir()
	for name, to := range map[string]string{"out": outside, "file": filepath.Join(outside, "kept")} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(outside, "kept"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	tree, err := export.OpenTree(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	for _, name := range []string{"../x", "/x", "a/../../x", "a/./b", "a//b", "", ".", "..", "a/", "out/x", "out/kept"} {
		if err := tree.Write(name, []byte("x")); err == nil {
			t.Errorf("%q is written", name)
		}
	}
	if err := tree.Write("file", []byte("x")); err != nil { // it replaces the link
		t.Error(err)
	}
	if err := tree.Write("file", []byte("y")); !errors.Is(err, export.ErrBadName) {
		t.Error("a file of the export is replaced: ", err)
	}
	all, err := os.ReadDir(outside)
	kept, readErr := os.ReadFile(filepath.Join(outside, "kept"))
	if err != nil || readErr != nil || len(all) != 1 || string(kept) != "kept" {
		t.Errorf("outside there are %v, %q, %v", all, kept, errors.Join(err, readErr))
	}
	info, err := os.Stat(filepath.Join(dir, "file"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tree, err := export.OpenTree(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	none, some := tree.Lines("none.jsonl"), tree.Lines("some.jsonl")
	object := map[string]any{"z": json.RawMessage("1.10"), "a": "<&>", "m": json.RawMessage(`{"n":12345678901234567890}`)}
	if err := errors.Join(some.Add([]byte("first")), some.AddObject(object), some.Close(), none.Close()); err != nil {
		t.Fatal(err)
	}
	if err := some.AddObject(map[string]any{"f": func() {}}); err == nil {
		t.Error("what is no JSON is a line")
	}
	text, err := os.ReadFile(filepath.Join(dir, "some.jsonl"))
	if want := "first\n" + `{"a":"<&>","m":{"n":12345678901234567890},"z":1.10}` + "\n"; err != nil || string(text) != want {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "none.jsonl")); err == nil {
		t.Error("a file without lines is made")
	}
	if err := tree.Write("none.jsonl", nil); !errors.Is(err, export.ErrBadName) {
		t.Error("the name of a file of lines is taken: ", err)
	}
}
