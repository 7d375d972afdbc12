package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/stores"
)

const pgSecret = "hidden-password"

// postgresPlace is a --store in a schema of its own, of a role that may no more than make one.
func postgresPlace(tb testing.TB, address string) string {
	tb.Helper()
	schema := pgtest.Schema(tb, address)
	place, err := url.Parse(pgtest.Role(tb, address, "loom_"+schema, pgSecret))
	must(tb, err)
	query := place.Query()
	query.Set("schema", schema)
	place.RawQuery = query.Encode()
	return place.String()
}

// mustStartPostgres starts a server of PostgreSQL.
func mustStartPostgres(tb testing.TB) *pgtest.Server {
	tb.Helper()
	s, err := pgtest.Start(nil)
	must(tb, err)
	tb.Cleanup(s.Stop)
	return s
}

// saved saves until it is acknowledged, and returns how often it was not.
func saved(tb testing.TB, p *process, text, request string) (failures []error) {
	tb.Helper()
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		_, err := p.bridge().MemorySave(tb.Context(), &loombridgev1.MemorySaveRequest{AgentId: "a", Text: text, RequestId: request})
		if err == nil {
			return failures
		}
		if failures = append(failures, err); time.Now().After(end) {
			tb.Fatalf("save %s: %v", text, err)
		}
	}
}

// A server on PostgreSQL does what one on RocksDB does: the four verbs, prompts, a restart,
// kill -9, and commands on its store. Nobody is shown the password. While PostgreSQL is away
// calls are UNAVAILABLE with a reason, and nothing acknowledged is lost.
func TestPostgres(t *testing.T) {
	t.Parallel()
	postgres := mustStartPostgres(t)
	store, dir := postgresPlace(t, postgres.Address), t.TempDir()
	var told bytes.Buffer // all that was said
	defer func() {
		if strings.Contains(told.String(), pgSecret) {
			t.Errorf("the password was shown: %s", told.String())
		}
	}()
	p := MustRun(t, dir, "--store", store)

	// The verbs.
	save(t, p, "tides follow the moon")
	if n := hits(t, p, "moon"); n != 1 {
		t.Errorf("%d hits", n)
	}
	must(t, os.WriteFile(filepath.Join(dir, "note.txt"), []byte("written by hand"), 0o600))
	if got := p.use(t, "fs:read_file", `{"path":"note.txt"}`); !strings.Contains(got.GetOutputJson(), "written by hand") {
		t.Errorf("tool: %v", got)
	}
	_, err := p.bridge().Emit(t.Context(), &loombridgev1.EmitRequest{
		AgentId: "a", Topic: "news", PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: []byte("first")},
	})
	must(t, err)
	p.MustRecord(t, "s1", "web:search", `{"query":"tides"}`, strings.Repeat("a long answer ", 2000))
	prompt, err := p.context().Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: "a", SessionId: "s1", Goal: "tides"})
	must(t, err)
	if text := fmt.Sprint(prompt.GetMessages()); !strings.Contains(text, "a long answer") || !strings.Contains(text, "Goal: tides") {
		t.Errorf("prompt: %.2000s", text)
	}

	// Another server has the store, too, but what wants it alone is refused.
	other := MustRun(t, filepath.Join(dir, "other"), "--store", store)
	if n := hits(t, other, "moon"); n != 1 {
		t.Errorf("%d hits at a second server", n)
	}
	must(t, other.Stop())
	told.WriteString(other.Log.String())
	place, err := stores.Parse(store)
	must(t, err)
	_, alone := place.Open(t.Context(), stores.Options{Durability: "sync"})
	if !errors.Is(alone, kv.ErrLocked) || !strings.Contains(alone.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("opened alone beside a server: %v", alone)
	}
	fmt.Fprintln(&told, alone)
	if said, err := loomCommand(t, "check", "--store", store, "--data-dir", dir); err != nil || !strings.Contains(said, "nothing is damaged") || !strings.Contains(said, "records: 1 owners, 0 bad") {
		t.Errorf("check: %v: %s", err, said)
	} else {
		told.WriteString(said)
	}
	if said, err := loomCommand(t, "export", "--store", store, "--data-dir", dir, "--agent", "a", "--out", filepath.Join(t.TempDir(), "out")); err != nil {
		t.Errorf("export: %v: %s", err, said)
	}
	if said, _ := loomCommand(t, "doctor", "--jobs=false", "--store", store); !strings.Contains(said, "answers, and holds a store") {
		t.Errorf("doctor: %s", said)
	} else {
		told.WriteString(said)
	}
	for command, args := range map[string][]string{
		"repair": {"repair", "--data-dir", dir},
		"backup": {"backup", "create", "--offline", "--data-dir", dir, "--backup-dir", filepath.Join(t.TempDir(), "copies")},
	} {
		_, err := loomCommand(t, append(args, "--store", store)...)
		if !errors.Is(err, stores.ErrNoFiles) {
			t.Errorf("%s: %v", command, err)
		}
		fmt.Fprintln(&told, err)
	}

	// PostgreSQL is killed.
	must(t, postgres.Kill())
	waitUntil(t, "its end shows", func() bool { return !p.serves(t, "") && !p.serves(t, memoryService) })
	if status := p.storeStatus(t); !strings.Contains(status.GetProblem(), "does not answer") {
		t.Errorf("status: %v", status)
	}
	for _, call := range []func() error{
		func() error {
			_, err := p.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "a", Text: "lost"})
			return err
		},
		func() error {
			_, err := p.bridge().MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: "moon"})
			return err
		},
	} {
		if err := call(); status.Code(err) != codes.Unavailable || reasonOf(err) != "STORE_UNREACHABLE" {
			t.Errorf("while PostgreSQL is away: %v %s", err, reasonOf(err))
		}
	}
	must(t, postgres.Restart())
	saved(t, p, "the moon is back", "r1")
	waitUntil(t, "its return shows", func() bool { return p.serves(t, "") && p.serves(t, memoryService) })
	if n := hits(t, p, "moon"); n != 2 {
		t.Errorf("%d hits after its return", n)
	}
	must(t, p.Stop())
	for _, line := range []string{"the store is not well", "the store is well again", "store +postgresql://loom_test"} {
		p.told(t, line)
	}
	told.WriteString(p.Log.String())

	// Another server goes on.
	p = MustRun(t, dir, "--store", store)
	if n := hits(t, p, "moon"); n != 2 {
		t.Errorf("%d hits after a restart", n)
	}
	must(t, p.Stop())
	told.WriteString(p.Log.String())
}

// TestSoakPostgres kills the server and PostgreSQL by turns under agents that save. They say
// each save again, by its request id, until it is acknowledged: nothing is lost, and nothing
// is there twice. A server that was killed starts again at once.
func TestSoakPostgres(t *testing.T) {
	t.Parallel()
	binary, rounds := mustBuild(t), soakRoundsOr(t, 1)
	postgres := mustStartPostgres(t)
	store, dir := postgresPlace(t, postgres.Address), t.TempDir()
	socket := "unix:" + filepath.Join(dir, "s")
	var server *exec.Cmd
	start := func() {
		server, _ = mustStart(t, binary, "--addr", socket, "--store", store, "--data-dir", filepath.Join(dir, "local"), "--workspace", dir, "--log-level", "off")
	}
	start()
	p := &process{conn: mustDial(t, socket), Address: socket}
	const writers = 4
	var acknowledged [writers]atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				saved(t, p, fmt.Sprintf("record %d of %d", n, i), fmt.Sprintf("request-%d-%d", n, i))
				acknowledged[i].Add(1)
			}
		})
	}
	// further waits until each writer has saved something since.
	further := func() {
		for i := range writers {
			before := acknowledged[i].Load()
			waitUntil(t, "a writer goes on", func() bool { return acknowledged[i].Load() > before+1 })
		}
	}
	for range rounds {
		further()
		must(t, server.Process.Kill())
		_ = server.Wait() // it was killed
		start()
		further()
		must(t, postgres.Kill())
		must(t, postgres.Restart())
	}
	further()
	stop()
	all.Wait()
	want := 0
	for i := range writers {
		want += int(acknowledged[i].Load())
	}
	found, err := p.bridge().MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: "record"})
	must(t, err)
	if n := int(found.GetReceipt().GetRecords()); n != want {
		t.Errorf("%d records, %d were acknowledged", n, want)
	}
	must(t, server.Process.Signal(syscall.SIGTERM))
	must(t, server.Wait())
	if said, err := exec.Command(binary, "check", "--store", store, "--data-dir", dir).CombinedOutput(); err != nil {
		t.Errorf("check: %v: %s", err, said)
	}
	t.Logf("%d rounds of two kills: %d acknowledged, none lost, none twice", rounds, want)
}

// A store in PostgreSQL that is as large as it may become refuses what would be stored, on
// every server, and takes it again when enough was deleted.
//
// Z25
func TestPostgresStoreFull(t *testing.T) {
	t.Parallel()
	place := postgresPlace(t, pgtest.Address(t))
	limit := []string{"--store", place, "--max-store-bytes", "2000000"}
	a, b := MustRunWith(t, t.TempDir(), checkedOften, limit...), MustRunWith(t, t.TempDir(), checkedOften, limit...)
	save := func(p *process, text string) (string, error) {
		r, err := p.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "a", Text: text})
		return r.GetId(), err
	}
	large := strings.Repeat("words and more words ", 5000)
	var ids []string
	var err error
	for err == nil && len(ids) < 2000 {
		var id string
		if id, err = save(a, large); err == nil {
			ids = append(ids, id)
		}
	}
	if reasonOf(err) != "QUOTA_EXCEEDED" || !strings.Contains(err.Error(), "--max-store-bytes") {
		t.Fatalf("after %d records of %d bytes: %v", len(ids), len(large), err)
	}
	waitUntil(t, "the other server refuses, too", func() bool {
		_, err := save(b, "a note")
		return reasonOf(err) == "QUOTA_EXCEEDED"
	})
	_, err = b.bridge().MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: "words"})
	must(t, err)
	for _, id := range ids {
		_, err := a.memory().DeleteRecords(t.Context(), &loombridgev1.DeleteRecordsRequest{
			AgentId: "a", Name: &loombridgev1.DeleteRecordsRequest_Id{Id: id},
		})
		must(t, err)
	}
	for _, p := range []*process{a, b} {
		waitUntil(t, "there is room again", func() bool {
			_, err := save(p, "a note")
			return err == nil
		})
	}
}
