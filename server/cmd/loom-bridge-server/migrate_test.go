package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// work leaves something of every kind in a store.
func work(t *testing.T, p *process, records int) {
	t.Helper()
	for i := range records {
		save(t, p, fmt.Sprintf("tide %d follows the moon of day %d", i, i%29))
	}
	for _, agent := range []string{"a", "b", "ä"} {
		_, err := p.bridge().Emit(t.Context(), &loombridgev1.EmitRequest{
			AgentId: agent, Topic: "news", PayloadForm: &loombridgev1.EmitRequest_PayloadBytes{PayloadBytes: []byte("first")},
		})
		must(t, err)
	}
	for i := range 3 {
		p.MustRecord(t, "s1", "web:search", fmt.Sprintf(`{"query":"tides %d"}`, i), strings.Repeat(fmt.Sprintf("a long answer %d ", i), 4000))
	}
	for i := range 3 {
		r := &loombridgev1.MemorySaveRequest{AgentId: "a", Id: fmt.Sprint("moon-", i), Text: fmt.Sprint("phase ", i)}
		if i > 0 {
			r.Relations = []*loombridgev1.RelationTo{{Name: "follows", ToId: fmt.Sprint("moon-", i-1)}}
		}
		_, err := p.bridge().MemorySave(t.Context(), r)
		must(t, err)
	}
	gone, err := p.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "a", Text: "deleted"})
	must(t, err)
	_, err = loombridgev1.NewMemoryServiceClient(p.conn).DeleteRecords(t.Context(), &loombridgev1.DeleteRecordsRequest{AgentId: "a", Name: &loombridgev1.DeleteRecordsRequest_Id{Id: gone.GetId()}})
	must(t, err)
	_, err = p.context().Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: "a", SessionId: "s1", Goal: "tides"})
	must(t, err)
}

// at are the arguments of a command on a store.
func at(t *testing.T, store string) []string {
	if strings.HasPrefix(store, "rocksdb:") {
		return []string{"--store", store}
	}
	return []string{"--store", store, "--data-dir", t.TempDir()}
}

// exported are the files of an export of agent a, by their paths.
func exported(t *testing.T, store string) map[string]string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	said, err := loomCommand(t, append([]string{"export", "--agent", "a", "--out", out}, at(t, store)...)...)
	if err != nil {
		t.Fatalf("export %s: %v: %s", store, err, said)
	}
	files := make(map[string]string)
	must(t, filepath.WalkDir(out, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, out)] = string(text)
		return err
	}))
	if len(files) < 10 {
		t.Fatalf("%s: only %d files were exported", store, len(files))
	}
	return files
}

// linesOf are the lines of migrate about keyspaces.
func linesOf(said string) []string {
	lines := strings.Split(said, "\n")
	return lines[:min(len(lines), len(kv.Keyspaces()))]
}

// A store goes to PostgreSQL and back, and is the same in all places: exports are byte for
// byte, and so are digests of all keys, values and sequences. What is served is not copied,
// and nothing is written over.
//
// Z20
func TestMigrate(t *testing.T) {
	t.Parallel()
	dir, postgres := t.TempDir(), pgtest.Address(t)
	rocks, far, back := "rocksdb:"+filepath.Join(dir, "store"), postgresPlace(t, postgres), "rocksdb:"+filepath.Join(dir, "back")
	p := MustRun(t, dir)
	work(t, p, 20)
	if _, err := loomCommand(t, "migrate", "--from", rocks, "--to", far); !errors.Is(err, kv.ErrLocked) {
		t.Errorf("migrate what is served: %v", err)
	}
	must(t, p.Stop())
	want := exported(t, rocks)

	there, err := loomCommand(t, "migrate", "--from", rocks, "--to", far)
	must(t, err)
	if diff := cmp.Diff(want, exported(t, far)); diff != "" {
		t.Errorf("the export from PostgreSQL differs: %s", diff)
	}
	if strings.Contains(there, pgSecret) {
		t.Errorf("the password was shown: %s", there)
	}
	here, err := loomCommand(t, "migrate", "--from", far, "--to", back)
	must(t, err)
	if diff := cmp.Diff(linesOf(there), linesOf(here)); diff != "" {
		t.Errorf("digests differ: %s", diff)
	}
	if diff := cmp.Diff(want, exported(t, back)); diff != "" {
		t.Errorf("the export of what came back differs: %s", diff)
	}

	for _, c := range [][2]string{{rocks, far}, {rocks, back}, {back, far}} {
		if _, err := loomCommand(t, "migrate", "--from", c[0], "--to", c[1]); !errors.Is(err, kv.ErrOccupied) || strings.Contains(err.Error(), pgSecret) {
			t.Errorf("from %s over %s: %v", c[0], c[1], err)
		}
	}
	for _, store := range []string{far, back, far + "&connections=20"} {
		_, err := loomCommand(t, "migrate", "--from", store, "--to", strings.TrimSuffix(store, "&connections=20"))
		if err == nil || !strings.Contains(err.Error(), "is the store itself") || strings.Contains(err.Error(), pgSecret) {
			t.Errorf("onto itself: %v", err)
		}
	}
	for _, store := range []string{far, back} {
		p = MustRunIn(t, noEnvironment, append([]string{"--addr", "127.0.0.1:0", "--workspace", dir}, at(t, store)...)...)
		save(t, p, "the moon goes on")
		if n := hits(t, p, "moon goes on"); n == 0 {
			t.Errorf("%s: nothing is found", store)
		}
		related, err := p.memory().ListRelations(t.Context(), &loombridgev1.ListRelationsRequest{AgentId: "a", Name: &loombridgev1.ListRelationsRequest_Id{Id: "moon-1"}})
		if must(t, err); len(related.GetRelations()) != 2 {
			t.Errorf("%s: relations %v", store, related.GetRelations())
		}
		if _, err := loomCommand(t, "migrate", "--from", store, "--to", "rocksdb:"+filepath.Join(dir, "other")); !errors.Is(err, kv.ErrLocked) {
			t.Errorf("migrate what is served: %v", err)
		}
		must(t, p.Stop())
	}
	for flag, args := range map[string][]string{
		"--from": {"--to", far}, "--to": {"--from", rocks}, "--to \"mysql": {"--from", rocks, "--to", "mysql://anna:secret@db/x"},
		"there is no store": {"--from", "rocksdb:" + t.TempDir(), "--to", filepath.Join("rocksdb:"+dir, "other")},
	} {
		if _, err := loomCommand(t, append([]string{"migrate"}, args...)...); err == nil || !strings.Contains(err.Error(), flag) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// A migration that is killed goes on when it is started again, and a server refuses what is
// not complete. A proxy to PostgreSQL stands still after so many bytes, at which the process
// is killed: while it copies or compares, in both directions.
//
// Z21
func TestMigrateKilledSoak(t *testing.T) {
	t.Parallel()
	binary, kills := mustBuild(t), 10
	dir, postgres := t.TempDir(), pgtest.Address(t)
	rocks := "rocksdb:" + filepath.Join(dir, "store")
	p := MustRun(t, dir)
	work(t, p, 300)
	must(t, p.Stop())
	want := exported(t, rocks)

	gate := startGate(t, postgres)
	far, back := gate.through(t, postgresPlace(t, postgres)), "rocksdb:"+filepath.Join(dir, "back")
	random := rand.New(rand.NewPCG(1, 2))
	for _, way := range [][2]string{{rocks, far}, {far, back}} {
		from, to := way[0], way[1]
		// What a whole migration moves is found by one to another place.
		gate.open(-1)
		aside := "rocksdb:" + filepath.Join(t.TempDir(), "aside")
		if to == far {
			aside = gate.through(t, postgresPlace(t, postgres))
		}
		_, err := loomCommand(t, "migrate", "--from", from, "--to", aside)
		must(t, err)
		whole := gate.passed.Load()
		for range kills {
			gate.open(whole/20 + random.Int64N(whole/3))
			migrate := exec.Command(binary, "migrate", "--from", from, "--to", to)
			said := &strings.Builder{}
			migrate.Stdout, migrate.Stderr = said, said
			must(t, migrate.Start())
			ended := make(chan error, 1)
			go func() { ended <- migrate.Wait() }()
			select {
			case <-gate.shut():
				must(t, migrate.Process.Kill())
				if err := <-ended; err == nil {
					t.Fatalf("it ended well although it was killed: %s", said)
				}
			case err := <-ended:
				t.Fatalf("it ended before it was killed: %v: %s", err, said)
			}
			gate.open(-1)
			if err := runBriefly(t, append(at(t, to), "--addr=127.0.0.1:0", "--workspace="+dir)...); !errors.Is(err, kv.ErrUnfinished) && !errors.Is(err, kv.ErrLocked) {
				t.Errorf("a server on what is unfinished: %v", err)
			}
		}
		said, err := exec.Command(binary, "migrate", "--from", from, "--to", to).CombinedOutput()
		if err != nil {
			t.Fatalf("migrate to the end: %v: %s", err, said)
		}
		if diff := cmp.Diff(want, exported(t, to)); diff != "" {
			t.Errorf("the export of %s differs: %s", to, diff)
		}
	}
}

// gate is a proxy to PostgreSQL that stands still when so many bytes have passed.
type gate struct {
	target, address string
	passed, most    atomic.Int64
	closed          atomic.Pointer[chan struct{}] // closed when the gate shuts
}

func startGate(t *testing.T, address string) *gate {
	t.Helper()
	u, err := url.Parse(address)
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	g := &gate{target: u.Host, address: l.Addr().String()}
	g.open(-1)
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go g.pass(client)
		}
	}()
	return g
}

// through is an address by way of the gate.
func (g *gate) through(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	must(t, err)
	u.Host = g.address
	return u.String()
}

// open lets so many bytes pass from here on; all if it is negative.
func (g *gate) open(most int64) {
	shut := make(chan struct{})
	g.passed.Store(0)
	g.most.Store(most)
	g.closed.Store(&shut)
}

func (g *gate) shut() <-chan struct{} { return *g.closed.Load() }

func (g *gate) pass(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", g.target)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		defer server.Close()
		g.carry(server, client)
	}()
	g.carry(client, server)
}

// carry copies until an end closes or the gate shuts.
func (g *gate) carry(to io.Writer, from io.Reader) {
	buffer := make([]byte, 4<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		most := g.most.Load()
		if after := g.passed.Add(int64(n)); most >= 0 && after > most {
			if after-int64(n) <= most {
				close(*g.closed.Load())
			}
			_, _ = io.Copy(io.Discard, from) // until the process is killed
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
