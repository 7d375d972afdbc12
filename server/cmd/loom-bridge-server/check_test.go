package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/checks"
)

// checkOf runs the sub-command and returns what it said.
func checkOf(tb testing.TB, store string, args ...string) (string, error) {
	tb.Helper()
	var out bytes.Buffer
	err := run(tb.Context(), append([]string{"check", "--data-dir", store}, args...), noEnvironment, &out, io.Discard)
	return out.String(), err
}

func TestCheckCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	if _, err := checkOf(t, store); err == nil || !strings.Contains(err.Error(), "there is no store") {
		t.Errorf("no store: %v", err)
	}
	must(t, os.MkdirAll(filepath.Join(dir, "empty"), 0o700))
	if _, err := checkOf(t, filepath.Join(dir, "empty")); !errors.Is(err, kv.ErrForeign) {
		t.Errorf("an empty directory: %v", err)
	}
	p := MustRun(t, dir)
	for _, agent := range []string{"a", "b", "c"} {
		_, err := p.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: agent, Text: "kept well"})
		must(t, err)
	}
	if _, err := checkOf(t, store); !errors.Is(err, kv.ErrLocked) {
		t.Errorf("beside a server: %v", err)
	}
	must(t, p.Stop())
	before := filesIn(t, store)
	said, err := checkOf(t, store)
	if err != nil || !strings.Contains(said, "records: 3 owners, 0 bad") || !strings.HasSuffix(said, "nothing is damaged\n") {
		t.Errorf("%v: %s", err, said)
	}
	if !maps.Equal(before, filesIn(t, store)) {
		t.Error("the check changed the store's files")
	}
	tamper(t, store, kv.Index, kv.AgentScope("default", "b"), nil, nil)
	said, err = checkOf(t, store)
	if !errors.Is(err, checks.ErrFailed) || !strings.Contains(said, "default/a/b: ") || !strings.Contains(said, "records: 3 owners, 1 bad") {
		t.Errorf("%v: %s", err, said)
	}
}

// tamper deletes an owner's keys that begin with some bytes behind the back of who
// wrote them, or gives them another value if there is one.
func tamper(tb testing.TB, dir string, ks kv.Keyspace, scope kv.Scope, rest, value []byte) {
	tb.Helper()
	db, err := rockskv.Open(dir, nil)
	must(tb, err)
	var batch kv.Batch
	for pair, err := range db.Scan(tb.Context(), ks, kv.Prefix(append(scope.AppendPrefix(nil), rest...))) {
		must(tb, err)
		if value == nil {
			batch.Delete(ks, pair.Key)
		} else {
			batch.Put(ks, pair.Key, value)
		}
	}
	if batch.Len() == 0 {
		tb.Errorf("%s has no %q in %s", scope, rest, ks)
	}
	guard := kv.Guard{Ref: kv.Ref{Keyspace: ks, Scope: scope}, Any: true}
	must(tb, db.Commit(tb.Context(), kv.Commit{Guards: []kv.Guard{guard}, Batch: &batch}))
	must(tb, db.Close())
}

// fill stores something of every sort, through the calls of a client. Two fillings
// of a store have different names.
func fill(tb testing.TB, p *process, name string) {
	tb.Helper()
	ctx := tb.Context()
	for n := range 5 {
		_, err := p.bridge().MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: "a", Key: fmt.Sprint(name, n), Text: fmt.Sprint("remembered number ", n)})
		must(tb, err)
		p.MustRecord(tb, "s1", "system:shell", `{"command":"make"}`, map[string]any{"exit_code": 0, "stdout": strings.Repeat(fmt.Sprintln("line", n), 2000)})
		_, err = p.bridge().Emit(ctx, &loombridgev1.EmitRequest{
			AgentId: "a", Topic: "news", PayloadForm: &loombridgev1.EmitRequest_PayloadJson{PayloadJson: fmt.Sprint(n)},
		})
		must(tb, err)
	}
	_, err := p.context().AppendMessages(ctx, &loombridgev1.AppendMessagesRequest{AgentId: "a", SessionId: "s1", Messages: []*loombridgev1.Message{
		{Role: loombridgev1.Role_ROLE_USER, Content: "Build it."}, {Role: loombridgev1.Role_ROLE_ASSISTANT, Content: "It is built."},
	}})
	must(tb, err)
	// Four chunks that no packing makes small.
	random := rand.NewChaCha8([32]byte{1})
	noise := make([]byte, 4<<20)
	_, err = random.Read(noise)
	must(tb, err)
	for i, b := range noise {
		noise[i] = 'a' + b%16
	}
	must(tb, os.WriteFile(filepath.Join(p.Workspace, "noise.txt"), noise, 0o600))
	_, err = p.bridge().Tool(ctx, &loombridgev1.ToolRequest{
		AgentId: "a", SessionId: "s1", Name: "fs:read_file", ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{"path":"noise.txt"}`},
	})
	must(tb, err)
}

// copyStore copies a store that nobody writes to.
func copyStore(tb testing.TB, from string) string {
	tb.Helper()
	to := filepath.Join(tb.TempDir(), "store")
	must(tb, os.CopyFS(to, os.DirFS(from)))
	return to
}

// TestCheckReadsEverythingSoak damages one thing after another that clients have stored.
func TestCheckReadsEverythingSoak(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir)
	fill(t, p, "key")
	must(t, p.Stop())
	store := filepath.Join(dir, "store")
	if said, err := checkOf(t, store); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	agent := kv.AgentScope("default", "a")
	topic := kv.Scope{Tenant: "default", Kind: kv.OwnerTopic, Owner: "news"}
	step := func(n byte) []byte { return []byte{'n', 0, 0, 0, 0, 0, 0, 0, n} }
	entry := func(n byte) []byte { return append([]byte("es1\x00\x01"), 0, 0, 0, 0, 0, 0, 0, n) }
	tests := []struct {
		what  string
		ks    kv.Keyspace
		scope kv.Scope
		rest  []byte
		value []byte
		want  string
	}{
		{"a record", kv.Records, agent, []byte("r"), []byte("nonsense"), "records: default/a/a: r "},
		{"the key of a record", kv.Records, agent, []byte("kkey3"), []byte("nobody"), `key "key3" names record "nobody"`},
		{"a step", kv.Log, agent, entry(3), []byte("nonsense"), "log: default/a/a: e "},
		{"a step that is gone", kv.Log, agent, entry(3), nil, "number 4 follows 2"},
		{"a message", kv.Log, agent, entry(6), []byte("nonsense"), "log: default/a/a: e "},
		{"the index of a step", kv.Log, agent, step(2), nil, "step 3 follows 1"},
		{"the counter of steps", kv.Log, agent, []byte("c"), []byte{8, 99}, "99 steps are counted"},
		{"the head of a session", kv.Log, agent, []byte("s"), []byte{8, 77}, "it says that the last number is 77"},
		{"a piece of a result", kv.Blobs, agent, []byte("c"), []byte("nonsense"), "blobs: default/a/a: c "},
		{"a piece that is gone", kv.Blobs, agent, []byte("c"), nil, "chunk 0 of 4 is missing"},
		{"what a result is made of", kv.Blobs, agent, []byte("m"), []byte("nonsense"), "blobs: default/a/a: m "},
		{"a result that is gone", kv.Blobs, agent, []byte("m"), nil, "there is no blob"},
		{"what results take", kv.Blobs, agent, []byte("u"), []byte{8, 1, 16, 1}, "1 blobs of 1 bytes are counted"},
		{"an event", kv.Events, topic, append([]byte("e"), 0, 0, 0, 0, 0, 0, 0, 2), []byte{0xff}, "events: default/t/news: "},
		{"an event that is gone", kv.Events, topic, append([]byte("e"), 0, 0, 0, 0, 0, 0, 0, 2), nil, "event 3 follows where 2 should"},
		{"the last event", kv.Events, topic, append([]byte("e"), 0, 0, 0, 0, 0, 0, 0, 5), nil, "the last event is 4, there should be 5"},
	}
	for _, test := range tests {
		t.Run(test.what, func(t *testing.T) {
			store := copyStore(t, store)
			tamper(t, store, test.ks, test.scope, test.rest, test.value)
			said, err := checkOf(t, store)
			if !errors.Is(err, checks.ErrFailed) || !strings.Contains(said, test.want) {
				t.Errorf("%v, want %q in:\n%s", err, test.want, said)
			}
		})
	}
}

// TestCheckFindsDamagedFiles flips a bit in a table and in a blob file, which no open
// notices.
func TestCheckFindsDamagedFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"first", "second"} { // whose start writes the first's log to tables
		p := MustRun(t, dir)
		fill(t, p, name)
		must(t, p.Stop())
	}
	store := filepath.Join(dir, "store")
	for _, form := range []string{"*.sst", "*.blob"} {
		store := copyStore(t, store)
		names, err := filepath.Glob(filepath.Join(store, form))
		if err != nil || len(names) == 0 {
			t.Fatalf("no %s: %v", form, err)
		}
		data, err := os.ReadFile(names[0])
		must(t, err)
		data[100] ^= 4
		must(t, os.WriteFile(names[0], data, 0o600))
		said, err := checkOf(t, store)
		if !errors.Is(err, checks.ErrFailed) || !strings.Contains(said, filepath.Base(names[0])+" at byte ") || !strings.Contains(said, "does not match its checksum") {
			t.Errorf("%s: %v\n%s", form, err, said)
		}
	}
}

// asNobody lets a command run without root's rights, for which no directory is closed.
func asNobody(cmd *exec.Cmd) {
	if os.Geteuid() != 0 {
		return
	}
	const nobody = 65534
	cmd.Path = "/proc/self/exe" // the binary may lie where nobody can't go
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}

// TestReadOnlyStore checks and exports a store as a user who may only read it.
func TestReadOnlyStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir)
	fill(t, p, "key")
	must(t, p.Stop())
	for up := dir; up != os.TempDir() && up != "/"; up = filepath.Dir(up) {
		must(t, os.Chmod(up, 0o755))
	}
	store := filepath.Join(dir, "store")
	must(t, filepath.WalkDir(store, func(path string, entry fs.DirEntry, err error) error {
		mode := os.FileMode(0o444)
		if err == nil && entry.IsDir() {
			mode = 0o555
		}
		return errors.Join(err, os.Chmod(path, mode))
	}))
	t.Cleanup(func() { _ = os.Chmod(store, 0o755) })
	out, temp := filepath.Join(dir, "out"), filepath.Join(dir, "temp")
	for _, open := range []string{out, temp} {
		must(t, os.Mkdir(open, 0o777))
		must(t, os.Chmod(open, 0o777))
	}
	before := filesIn(t, store)
	for _, args := range [][]string{
		{"check", "--data-dir", store},
		{"export", "--data", store, "--agent", "a", "--out", out},
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
		cmd.Dir, cmd.Env = "/", append(os.Environ(), asServer+"=1", "TMPDIR="+temp)
		asNobody(cmd)
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", args[0], err, said)
		}
	}
	if len(filesIn(t, out)) < 5 {
		t.Errorf("exported: %v", filesIn(t, out))
	}
	if !maps.Equal(before, filesIn(t, store)) {
		t.Error("the store's files have changed")
	}
}

// TestDamagedStore starts a server on a store whose log was damaged after a kill, in
// each way: it says what happened and what to do, changes nothing, and starts again
// after a repair, with what was saved before the damage.
func TestDamagedStore(t *testing.T) {
	t.Parallel()
	const saves = 60
	dir := t.TempDir()
	c := MustStartChild(t, dir)
	p := &process{conn: MustDial(t, c.Address)}
	for n := range saves {
		save(t, p, fmt.Sprint("saved as number ", n))
	}
	must(t, c.Process.Kill())
	_ = c.Wait()
	killed := filepath.Join(dir, "store")
	logs, err := filepath.Glob(filepath.Join(killed, "*.log"))
	must(t, err)
	name := filepath.Base(logs[len(logs)-1])
	whole, err := os.ReadFile(filepath.Join(killed, name))
	must(t, err)
	flipped, zeroed := bytes.Clone(whole), bytes.Clone(whole)
	flipped[len(whole)/2] ^= 8
	clear(zeroed[len(whole)/2/4096*4096:][:4096])
	for harm, data := range map[string][]byte{
		"flipped": flipped, "zeroed": zeroed, "cut": whole[:len(whole)/2], "deleted": nil,
		"with a copy of itself": bytes.Repeat(whole, 2),
	} {
		t.Run(harm, func(t *testing.T) {
			dir := t.TempDir()
			store := filepath.Join(dir, "store")
			must(t, os.CopyFS(store, os.DirFS(killed)))
			must(t, os.Remove(filepath.Join(store, name)))
			if data != nil {
				must(t, os.WriteFile(filepath.Join(store, name), data, 0o600))
			}
			before := filesIn(t, store)
			err := runBriefly(t, "--addr=127.0.0.1:0", "--data-dir="+store, "--workspace="+dir)
			if !errors.Is(err, kv.ErrDamaged) {
				t.Fatalf("a damaged log: %v", err)
			}
			for _, word := range []string{name, "no file was changed", "backup", "loom-bridge-server repair --data-dir " + store} {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q does not say %q", err, word)
				}
			}
			said, err := checkOf(t, store)
			if !errors.Is(err, checks.ErrFailed) || !strings.Contains(said, "store: "+name) {
				t.Errorf("check: %v\n%s", err, said)
			}
			if !maps.Equal(before, filesIn(t, store)) {
				t.Error("the store's files have changed")
			}
			var out bytes.Buffer
			must(t, run(t.Context(), []string{"repair", "--data-dir", store}, noEnvironment, &out, io.Discard))
			if text := out.String(); !strings.Contains(text, name) || !strings.Contains(text, "damaged-") || !strings.Contains(text, "given up: ") {
				t.Errorf("repair says: %s", text)
			}
			if said, err := checkOf(t, store); err != nil {
				t.Errorf("check after the repair: %v\n%s", err, said)
			}
			p := MustRun(t, dir)
			stats, err := loombridgev1.NewMemoryServiceClient(p.conn).ListRecords(t.Context(), &loombridgev1.ListRecordsRequest{AgentId: "a", StatsOnly: true})
			must(t, err)
			least, most := int64(1), int64(saves-1)
			switch {
			case data == nil:
				least, most = 0, 0
			case len(data) > len(whole): // nothing was lost
				least, most = saves, saves
			}
			if n := stats.GetStats().GetRecords(); n < least || n > most {
				t.Errorf("%d records of %d after the repair", n, saves)
			}
			must(t, p.Stop())
			out.Reset()
			must(t, run(t.Context(), []string{"repair", "--data-dir", store}, noEnvironment, &out, io.Discard))
			if !strings.HasPrefix(out.String(), "nothing is damaged") {
				t.Errorf("repair of a good store says: %s", out.String())
			}
		})
	}
}
