package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/exports"
)

func (p *process) context() contexts.Client {
	return contexts.New(p.conn)
}

// MustRecord records a step of a tool that the caller ran.
func (p *process) MustRecord(tb testing.TB, sessionID, tool, args string, output any) *loombridgev1.Step {
	tb.Helper()
	r := &loombridgev1.RecordStepRequest{
		AgentId: "a", SessionId: sessionID, ToolName: tool, Success: true,
		ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: args},
	}
	if text, isText := output.(string); isText {
		r.OutputForm = &loombridgev1.RecordStepRequest_OutputText{OutputText: text}
	} else {
		text, err := json.Marshal(output)
		must(tb, err)
		r.OutputForm = &loombridgev1.RecordStepRequest_OutputJson{OutputJson: string(text)}
	}
	got, err := p.context().RecordStep(tb.Context(), r)
	must(tb, err)
	return got.GetStep()
}

// MustRead reads what a name leads to.
func (p *process) MustRead(tb testing.TB, name string) string {
	tb.Helper()
	stream, err := p.context().ReadBlob(tb.Context(), &loombridgev1.ReadBlobRequest{AgentId: "a", Name: name})
	must(tb, err)
	var all strings.Builder
	for {
		piece, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all.String()
		}
		must(tb, err)
		all.Write(piece.GetData())
	}
}

// exportTo runs the sub-command.
func exportTo(tb testing.TB, store, out string, args ...string) (stdout, stderr string, err error) {
	tb.Helper()
	var output, console bytes.Buffer
	all := append([]string{"export", "--data", store, "--agent", "a", "--out", out}, args...)
	err = run(tb.Context(), all, noEnvironment, &output, &console)
	return output.String(), console.String(), err
}

// filesIn are the files below a directory, by their paths.
func filesIn(tb testing.TB, dir string) map[string]string {
	tb.Helper()
	files := make(map[string]string)
	must(tb, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		files[filepath.ToSlash(rel)] = string(text)
		return err
	}))
	return files
}

// lines are the objects of a file of lines.
func lines(tb testing.TB, text string) []map[string]any {
	tb.Helper()
	var all []map[string]any
	for scan := bufio.NewScanner(strings.NewReader(text)); scan.Scan(); {
		var one map[string]any
		must(tb, json.Unmarshal(scan.Bytes(), &one))
		all = append(all, one)
	}
	return all
}

func TestExport(t *testing.T) {
	t.Parallel()
	// B12
	dir := t.TempDir()
	store, out := filepath.Join(dir, "store"), filepath.Join(dir, "out")
	p := MustRun(t, dir)
	var hits []any
	for i := range 40 {
		hits = append(hits, map[string]any{"title": fmt.Sprintf("hit %d", i), "snippet": strings.Repeat("words ", 20)})
	}
	p.MustRecord(t, "s1", "web:search", `{"query":"tides"}`, map[string]any{"results": hits})
	must(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte(strings.Repeat("a line é\n", 300_000)), 0o600)) // several chunks
	_, err := p.bridge().Tool(t.Context(), &loombridgev1.ToolRequest{
		AgentId: "a", SessionId: "s1", Name: "fs:read_file", ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{"path":"notes.txt"}`},
	})
	must(t, err)
	p.MustRecord(t, "s2", "system:shell", `{"command":"make"}`, map[string]any{"exit_code": 0, "stdout": strings.Repeat("ok\n", 2000)})
	p.MustRecord(t, "s1", "my:tool", `{"script":"`+strings.Repeat("a long script ", 9000)+`"}`, "done")
	_, err = p.context().AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{AgentId: "a", SessionId: "s2", Messages: []*loombridgev1.Message{
		{Role: loombridgev1.Role_ROLE_USER, Content: "Build it, 12345678901234567890 times."},
		{Role: loombridgev1.Role_ROLE_ASSISTANT, Content: "It is built."},
	}})
	must(t, err)
	listed, err := p.context().ListBlobs(t.Context(), &loombridgev1.ListBlobsRequest{AgentId: "a"})
	must(t, err)
	promoted, err := p.context().UpdateBlob(t.Context(), &loombridgev1.UpdateBlobRequest{
		AgentId: "a", Name: "step_001", Tier: loombridgev1.BlobTier_BLOB_TIER_LONG_TERM,
	})
	must(t, err)
	want := make(map[string]string)
	for _, info := range listed.GetBlobs() {
		want[info.GetPath()] = p.MustRead(t, info.GetPath())
	}
	want[promoted.GetPath()] = p.MustRead(t, "step_001")
	for n := 1; n <= 4; n++ {
		for _, form := range []string{"json", "compact"} {
			name := fmt.Sprintf("workspace/history/step_%03d.%s", n, form)
			want[name] = p.MustRead(t, name)
		}
	}
	want["workspace/history/step_003.original"] = p.MustRead(t, "step_003") // its log is all that its path leads to
	if _, _, err := exportTo(t, store, out); !errors.Is(err, kv.ErrLocked) {
		t.Errorf("while the server runs: %v", err)
	}
	must(t, p.Stop())

	stdout, _, err := exportTo(t, store, out)
	must(t, err)
	if !strings.HasPrefix(stdout, "exported 4 steps, 2 messages, 0 folds, 4 offloaded results (") || !strings.HasSuffix(stdout, " of a to "+out+"\n") {
		t.Errorf("told %q", stdout)
	}
	got := filesIn(t, out)
	for _, name := range []string{"workspace/outputs/search_001.json", "workspace/outputs/read_002.txt", "workspace/outputs/shell_003.log"} {
		if want[name] == "" {
			t.Errorf("%s was not offloaded: %v", name, listed.GetBlobs())
		}
	}
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s: %d bytes, want %d", name, len(got[name]), len(text))
		}
		delete(got, name)
	}
	messages, steps, blobs := lines(t, got["messages.jsonl"]), lines(t, got["steps.jsonl"]), lines(t, got["blobs.jsonl"])
	if len(messages) != 2 || messages[0]["content"] != "Build it, 12345678901234567890 times." || messages[1]["role"] != "assistant" ||
		messages[1]["session_id"] != "s2" || messages[1]["id"] != "message_003" {
		t.Errorf("messages: %v", messages)
	}
	if len(steps) != 4 || steps[3]["id"] != "step_003" || steps[3]["session_id"] != "s2" || steps[0]["compact"] != want["workspace/history/step_001.compact"] {
		t.Errorf("steps: %v", steps)
	}
	if len(blobs) != 4 || blobs[3]["files"].([]any)[0] != blobs[3]["path"] {
		t.Errorf("blobs: %v", blobs)
	}
	if calls := lines(t, got["audit.jsonl"]); len(calls) != 1 || calls[0]["tool"] != "fs:read_file" || calls[0]["outcome"] != "ok" {
		t.Errorf("audit: %v", calls)
	}
	delete(got, "audit.jsonl")
	delete(got, "messages.jsonl")
	delete(got, "steps.jsonl")
	delete(got, "blobs.jsonl")
	if len(got) > 0 {
		t.Errorf("further files: %v", got)
	}

	t.Run("one session", func(t *testing.T) {
		out := t.TempDir()
		stdout, _, err := exportTo(t, store, out, "--session", "s2")
		must(t, err)
		if !strings.HasPrefix(stdout, "exported 1 steps, 2 messages, 0 folds, 1 offloaded results") {
			t.Errorf("told %q", stdout)
		}
		for name := range filesIn(t, out) {
			if strings.Contains(name, "001") || strings.Contains(name, "002") {
				t.Errorf("%s belongs to another session", name)
			}
		}
	})
	t.Run("not empty", func(t *testing.T) {
		before := filesIn(t, out)
		if _, _, err := exportTo(t, store, out); err == nil || !strings.Contains(err.Error(), "is not empty") {
			t.Errorf("got %v", err)
		}
		must(t, os.WriteFile(filepath.Join(out, "mine.txt"), []byte("mine"), 0o600))
		must(t, os.WriteFile(filepath.Join(out, "steps.jsonl"), []byte("old"), 0o600))
		if _, _, err := exportTo(t, store, out, "--force"); err != nil {
			t.Fatal(err)
		}
		before["mine.txt"] = "mine"
		if diff := cmp.Diff(before, filesIn(t, out)); diff != "" {
			t.Errorf("with --force (-want +got):\n%.2000s", diff)
		}
	})
}

// A long export says how far it is.
func TestExportTellsProgress(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	MustFill(t, store, func(log *session.Log, _ *blob.Store, _ *kv.Writer) {
		for range 9 {
			batch := slices.Repeat([]session.Message{{Role: session.User, Content: "hello"}}, session.MaxMessages)
			_, err := log.AppendMessages(t.Context(), kv.AgentScope("default", "a"), "s1", batch, "")
			must(t, err)
		}
	})
	_, stderr, err := exportTo(t, store, filepath.Join(dir, "out"))
	must(t, err)
	if !strings.HasPrefix(stderr, "so far: 0 steps, 1000 messages") || strings.Count(stderr, "\n") != 2 {
		t.Errorf("told %q", stderr)
	}
}

func TestExportRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	p := MustRun(t, dir)
	p.MustRecord(t, "s1", "my:tool", `{}`, "x")
	must(t, p.Stop())
	must(t, os.Symlink(store, filepath.Join(dir, "link")))
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"no agent", []string{"--agent", ""}, "agent"},
		{"no directory", []string{"--out", ""}, "out"},
		{"no store", []string{"--data", filepath.Join(dir, "none")}, "there is no store"},
		{"an agent that is not there", []string{"--agent", "b"}, `has nothing stored in the tenant default; known agents: "a"`},
		{"a tenant that is not there", []string{"--tenant", "t"}, `has nothing stored in the tenant t; known tenants: "default"`},
		{"a session that is not there", []string{"--session", "s9"}, "has no entries"},
		{"a bad agent", []string{"--agent", "a\x00"}, "NUL"},
		{"within the store", []string{"--out", filepath.Join(store, "x", "y")}, "must not lie"},
		{"within the store by a link", []string{"--out", filepath.Join(dir, "link", "x")}, "must not lie"},
		{"a file", []string{"--out", filepath.Join(store, "LOOM-FORMAT")}, "must not lie"},
		{"a word", []string{"everything"}, "unknown command"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			_, _, err := exportTo(t, store, out, tt.args...)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want …%s…", err, tt.want)
			}
			if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the directory was made: %v", err)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(store, "x")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was made in the store: %v", err)
	}
	stdout := &bytes.Buffer{}
	must(t, run(t.Context(), []string{"export", "--help"}, noEnvironment, stdout, io.Discard))
	for _, want := range []string{"step_001.compact", "--agent", "--force", "messages.jsonl", "exit status"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the help says nothing of %s", want)
		}
	}
}

// MustFill writes to a store that no server has open.
func MustFill(tb testing.TB, store string, fill func(log *session.Log, blobs *blob.Store, writer *kv.Writer)) {
	tb.Helper()
	must(tb, os.MkdirAll(store, 0o700))
	engine, err := rockskv.Open(store, nil)
	must(tb, err)
	writer := kv.NewWriter(engine, nil)
	fill(session.New(engine, writer, nil), blob.New(engine, writer, nil), writer)
	must(tb, writer.Close())
	must(tb, engine.Close())
}

// MustStage stores bytes at a path.
func MustStage(tb testing.TB, blobs *blob.Store, writer *kv.Writer, path, data string) blob.Entry {
	tb.Helper()
	scope := kv.AgentScope("default", "a")
	stored, err := blobs.Add(tb.Context(), scope, []byte(data))
	must(tb, err)
	var e blob.Entry
	must(tb, writer.Do(tb.Context(), kv.Request{Refs: []kv.Ref{blobs.Ref(scope)}, Stage: func(ctx context.Context, tx *kv.Tx) (err error) {
		e, err = blobs.Stage(ctx, tx, scope, stored, blob.Entry{Path: path, Category: blob.CategoryTool, SessionID: "s1"})
		return err
	}}))
	return e
}

// Paths that are no names of files are written elsewhere, and nothing leaves the
// directory.
func TestExportOfHostilePaths(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, out := filepath.Join(dir, "store"), filepath.Join(dir, "out")
	paths := []string{
		"a", "a/b", "messages.jsonl", "workspace/history/step_001.json", strings.Repeat("n", 300), "a:b\\c", " ", "é/\x01\n",
		"link/escaped", "blobs.jsonl", "-rf", "workspace/outputs/plain.txt",
	}
	scope := kv.AgentScope("default", "a")
	MustFill(t, store, func(log *session.Log, blobs *blob.Store, writer *kv.Writer) {
		_, err := log.AppendMessages(t.Context(), scope, "s1", []session.Message{{Role: session.User, Content: "hello"}}, "")
		must(t, err)
		must(t, log.AppendFolds(t.Context(), scope, "s1", 0, []history.Fold{{
			Policy: "ledger/1", Batch: 1, Level: 1, Spans: []history.Span{{First: 1, Last: 1}}, Through: 1, Seen: 1, Text: "folded", Refs: []string{"message_001"},
		}}))
		_, err = log.AddTask(t.Context(), scope, session.Task{ID: "t-1", SessionID: "s2", Action: "execute", Parameters: []byte(`{"n":1}`), Tags: []string{"x"}})
		must(t, err)
		for _, path := range paths {
			MustStage(t, blobs, writer, path, "bytes of "+path)
		}
	})
	must(t, os.MkdirAll(out, 0o700))
	outside := filepath.Join(dir, "outside")
	must(t, os.MkdirAll(outside, 0o700))
	must(t, os.Symlink(outside, filepath.Join(out, "workspace")))
	if _, _, err := exportTo(t, store, out, "--force"); err == nil || len(filesIn(t, outside)) > 0 {
		t.Errorf("through a link: %v, %v", err, filesIn(t, outside))
	}
	must(t, os.Remove(filepath.Join(out, "workspace")))

	stdout, _, err := exportTo(t, store, out, "--force")
	must(t, err)
	if !strings.HasPrefix(stdout, fmt.Sprintf("exported 0 steps, 1 messages, 1 folds, %d offloaded results", len(paths))) {
		t.Errorf("told %q", stdout)
	}
	got := filesIn(t, out)
	described := lines(t, got["blobs.jsonl"])
	if len(described) != len(paths) {
		t.Fatalf("%d blobs are described", len(described))
	}
	renamed := 0
	for _, one := range described {
		path, name := one["path"].(string), one["files"].([]any)[0].(string)
		if got[name] != "bytes of "+path || name != path && name != "renamed/"+one["ref"].(string) {
			t.Errorf("%q lies at %q: %.40q", path, name, got[name])
		}
		if name != path {
			renamed++
		}
	}
	if renamed != 4 { // a/b, the two files of lines, the long one
		t.Errorf("%d were renamed", renamed)
	}
	if folds := lines(t, got["folds.jsonl"]); len(folds) != 1 || folds[0]["text"] != "folded" {
		t.Errorf("folds: %v", folds)
	}
	tasks := lines(t, got["tasks.jsonl"])
	if len(tasks) != 1 || tasks[0]["task_id"] != "t-1" || tasks[0]["session_id"] != "s2" || fmt.Sprint(tasks[0]["parameters"], tasks[0]["tags"]) != "map[n:1] [x]" {
		t.Errorf("tasks: %v", tasks)
	}
}

// A blob whose bytes are not what they were is told and left out.
func TestExportOfDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, out := filepath.Join(dir, "store"), filepath.Join(dir, "out")
	scope := kv.AgentScope("default", "a")
	MustFill(t, store, func(_ *session.Log, blobs *blob.Store, writer *kv.Writer) {
		MustStage(t, blobs, writer, "good", strings.Repeat("good ", 1000))
		bad := MustStage(t, blobs, writer, "bad\x1b[2J", strings.Repeat("bad ", 1000))
		must(t, writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{blobs.Ref(scope)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
			for pair, err := range tx.Scan(ctx, kv.Blobs, kv.Prefix(scope.Key('m'))) {
				if err != nil {
					return err
				}
				if strings.HasSuffix(fmt.Sprintf("%x", pair.Key), bad.Ref) {
					pair.Value[len(pair.Value)/2] ^= 1
					tx.Put(kv.Blobs, pair.Key, pair.Value)
				}
			}
			return nil
		}}))
	})
	stdout, stderr, err := exportTo(t, store, out)
	if !errors.Is(err, exports.ErrDamaged) || !strings.Contains(stderr, `result "bad\x1b[2J": blob: `) || !strings.Contains(stdout, "1 offloaded results") {
		t.Errorf("%v, %q, %q", err, stdout, stderr)
	}
	if got := slices.Sorted(maps.Keys(filesIn(t, out))); !slices.Equal(got, []string{"blobs.jsonl", "damaged.jsonl", "good"}) {
		t.Errorf("files: %v", got)
	}
}
