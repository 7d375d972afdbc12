package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"github.com/loom-bridge/loom-bridge/bridge/erasure"
	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/stores"
)

// rows are the canaries that the tables of a store in PostgreSQL have, with what zstd packed
// in them unpacked.
func (c canaries) rows(t *testing.T, store string) (n int) {
	t.Helper()
	place, err := stores.Parse(store)
	must(t, err)
	_, schema, _ := strings.Cut(place.String(), ", schema ")
	conn, err := pgx.Connect(t.Context(), strings.Split(store, "?")[0])
	must(t, err)
	defer func() { must(t, conn.Close(t.Context())) }()
	unpack, err := zstd.NewReader(nil)
	must(t, err)
	defer unpack.Close()
	var all []byte
	for _, table := range []string{"records", "index", "log", "blobs", "events", "system", "sequences"} {
		read := "SELECT key, value FROM "
		if table == "sequences" {
			read = "SELECT scope, scope FROM "
		}
		rows, err := conn.Query(t.Context(), read+schema+"."+table)
		must(t, err)
		var key, value []byte
		_, err = pgx.ForEachRow(rows, []any{&key, &value}, func() error {
			all = append(append(append(all, key...), value...), '\n')
			for rest := value; ; {
				at := bytes.Index(rest, []byte{0x28, 0xb5, 0x2f, 0xfd})
				if at < 0 {
					return nil
				}
				must(t, unpack.Reset(bytes.NewReader(rest[at:])))
				text, _ := io.ReadAll(unpack) // what follows the frame is not of it
				all = append(all, text...)
				rest = rest[at+4:]
			}
		})
		must(t, err)
	}
	return c.count(append(all, make([]byte, canaryEnd)...))
}

// count counts the canaries in some bytes.
func (c canaries) count(b []byte) int {
	seen := make(map[string]bool)
	c.search()(b, func(name string, _ int) { seen[name] = true })
	return len(seen)
}

// inTables counts those that PostgreSQL's files of tables have as they are, but those of its
// statistics: what ANALYZE sampled is not claimed.
func (c canaries) inTables(t *testing.T, postgres *pgtest.Server) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), postgres.Address)
	must(t, err)
	defer func() { must(t, conn.Close(t.Context())) }()
	var samples, long string
	must(t, conn.QueryRow(t.Context(), `SELECT pg_relation_filepath(oid), pg_relation_filepath(reltoastrelid)
		FROM pg_class WHERE oid = 'pg_statistic'::regclass`).Scan(&samples, &long))
	must(t, filepath.WalkDir(filepath.Join(postgres.Folder(), "base"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if within, err := filepath.Rel(postgres.Folder(), path); err != nil || within == samples || within == long {
			return err
		}
		content, err := os.ReadFile(path)
		if !errors.Is(err, fs.ErrNotExist) {
			must(t, err)
		}
		n += c.count(append(content, make([]byte, canaryEnd)...))
		return nil
	}))
	return n
}

// command has PostgreSQL do something now that it does now and then by itself: write to its
// files what it has in memory, or take samples of tables.
func command(t *testing.T, address, what string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	must(t, err)
	_, err = conn.Exec(t.Context(), what)
	must(t, errors.Join(err, conn.Close(t.Context())))
}

// Of a store in PostgreSQL an agent, a session and records are erased as of one in files: no
// row has them, nor has a file of its tables, and the rest is whole. The certificate says
// what it does not claim, and fails for a store that was changed. Killed, the command leaves
// the old store or the new one, and ends when it is run again.
//
// Y27
func TestErasePostgresSoak(t *testing.T) {
	t.Parallel()
	postgres := mustStartPostgres(t)
	store, dir := postgresPlace(t, postgres.Address), t.TempDir()
	p := MustRun(t, dir, "--store", store)
	session, agent := plant(t, p, "a", "s", "b", 1), plant(t, p, "a", "other", "b", 1)
	filtered, kept := plantRecords(t, p, "b", "", "47", 20), plantRecords(t, p, "b", "", "48", 20)
	lines := memoryLines(t, p, "b", "", filtered)
	_, err := loomCommand(t, "erase", "--agent", "a", "--key", filepath.Join(dir, "k"), "--out", filepath.Join(dir, "o"), "--store", store, "--data-dir", dir)
	if !errors.Is(err, kv.ErrLocked) {
		t.Errorf("beside a server: %v", err)
	}
	must(t, p.Stop())
	out := func(name string) string { return filepath.Join(dir, name+".json") }
	args := func(name string, subject ...string) []string {
		return append([]string{"erase", "--key", filepath.Join(dir, "k"), "--out", out(name), "--store", store, "--data-dir", dir}, subject...)
	}
	verify := func(name string) error {
		_, err := loomCommand(t, "erase", "verify", out(name), "--store", store, "--data-dir", dir)
		return err
	}
	sessionBefore, agentBefore, filteredBefore, keptBefore := session.rows(t, store), agent.rows(t, store), filtered.rows(t, store), kept.rows(t, store)
	if sessionBefore < len(session)/2 || agentBefore < len(agent)/2 || filteredBefore < len(filtered)/2 || keptBefore < len(kept)/2 {
		t.Fatalf("before: %d of %d, %d of %d, %d of %d, %d of %d", sessionBefore, len(session), agentBefore, len(agent), filteredBefore, len(filtered), keptBefore, len(kept))
	}

	command(t, postgres.Address, "ANALYZE")
	command(t, postgres.Address, "CHECKPOINT")
	if session.inTables(t, postgres) == 0 || agent.inTables(t, postgres) == 0 || filtered.inTables(t, postgres) == 0 {
		t.Fatal("the files of the tables have nothing before, so nothing would be shown")
	}

	// A session, killed on the way.
	subject := args("session", "--agent", "a", "--session", "s")
	began := time.Now()
	for kills := soakRoundsOr(t, 2); kills > 0; kills-- {
		process := exec.Command(mustBuild(t), subject...)
		must(t, process.Start())
		time.Sleep(rand.N(400 * time.Millisecond))
		_ = process.Process.Kill()
		_ = process.Wait()
		if _, err := os.Stat(out("session")); err == nil {
			break
		}
		if left := session.rows(t, store); left != 0 && left != sessionBefore && left != sessionBefore-1 {
			t.Fatalf("a kill left %d of %d canaries", left, sessionBefore)
		}
	}
	if _, err := os.Stat(out("session")); err != nil {
		_, err := loomCommand(t, subject...)
		must(t, err)
	}
	must(t, verify("session"))
	if left, still := session.rows(t, store), agent.rows(t, store); left != 0 || still < agentBefore-1 {
		t.Errorf("after %d of the session, %d of %d of another", left, still, agentBefore)
	}

	// Records, then the whole agent.
	said, err := loomCommand(t, args("filter", "--agent", "b", "--filter", `metadata.case = "47"`)...)
	must(t, err)
	must(t, verify("filter"))
	if err := verify("session"); !errors.Is(err, erasure.ErrNotTrue) {
		t.Errorf("the certificate of the store before: %v", err)
	}
	whole, err := loomCommand(t, args("agent", "--agent", "a")...)
	must(t, err)
	must(t, verify("agent"))
	command(t, postgres.Address, "CHECKPOINT")
	after := []int{session.rows(t, store), agent.rows(t, store), filtered.rows(t, store)}
	files := []int{session.inTables(t, postgres), agent.inTables(t, postgres), filtered.inTables(t, postgres)}
	t.Logf("rows had %d, %d and %d canaries before, %v after, files of tables %v; %s%s took %s", sessionBefore, agentBefore, filteredBefore, after, files, said, whole, time.Since(began))
	for i := range after {
		if after[i] != 0 || files[i] != 0 {
			t.Errorf("found after: %v in rows, %v in files", after, files)
		}
	}
	var c erasure.Certificate
	must(t, json.Unmarshal(mustRead(t, out("agent")), &c))
	text := strings.Join(c.NotClaimed, "\n")
	if c.Engine != erasure.PostgreSQL || len(c.Tables) != 6 || len(c.Files) != 0 || c.Found == 0 || c.AuditRecords == 0 || !strings.Contains(text, "write-ahead log") || !strings.Contains(text, "replicas") || !strings.Contains(text, "pg_statistic") || !strings.Contains(text, "pg_basebackup") {
		t.Errorf("the certificate is %+v", c)
	}
	if strings.Contains(string(mustRead(t, out("agent")))+said+whole, pgSecret) {
		t.Error("the password was shown")
	}
	if said, err := loomCommand(t, "check", "--store", store, "--data-dir", dir); err != nil || !strings.Contains(said, "nothing is damaged") {
		t.Errorf("check: %v: %s", err, said)
	}
	if _, err := loomCommand(t, args("nobody", "--agent", "nobody")...); !errors.Is(err, erasure.ErrNothing) {
		t.Errorf("of nobody: %v", err)
	}

	// The store goes on, with a server that writes to it and a schema beside that is gone.
	p = MustRun(t, dir, "--store", store)
	now := memoryLines(t, p, "b", "", nil)
	if strings.Join(now, "\n") != strings.Join(lines, "\n") || kept.rows(t, store) < keptBefore-len(kept)/3 {
		t.Errorf("b had %d lines and has %d; %d of %d", len(lines), len(now), kept.rows(t, store), keptBefore)
	}
	_, err = p.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "a", Text: "a seal, anew"})
	must(t, err)
	ann := plantRecords(t, p, "b", "ann", "47", 5)
	must(t, p.Stop())
	if err := verify("agent"); !errors.Is(err, erasure.ErrNotTrue) {
		t.Errorf("a server has run since: %v", err)
	}

	// A person, then all of the tenant.
	if ann.rows(t, store) == 0 {
		t.Fatal("nothing of ann is there, so nothing would be shown")
	}
	_, err = loomCommand(t, args("person", "--user", "ann")...)
	must(t, err)
	must(t, verify("person"))
	if left, still := ann.rows(t, store), kept.rows(t, store); left != 0 || still < keptBefore-len(kept)/3 {
		t.Errorf("after %d of ann, %d of %d of another", left, still, keptBefore)
	}
	_, err = loomCommand(t, args("tenant", "--whole-tenant")...)
	must(t, err)
	must(t, verify("tenant"))
	if left := kept.rows(t, store); left != 0 {
		t.Errorf("of the tenant %d canaries are left", left)
	}
}

// A schema in the place of the one beside, which is somebody else's, stays as it is.
//
// Y27
func TestErasePostgresOccupied(t *testing.T) {
	t.Parallel()
	store, dir := postgresPlace(t, pgtest.Address(t)), t.TempDir()
	p := MustRun(t, dir, "--store", store)
	save(t, p, "a seal")
	must(t, p.Stop())
	place, err := stores.Parse(store)
	must(t, err)
	_, schema, _ := strings.Cut(place.String(), ", schema ")
	conn, err := pgx.Connect(t.Context(), strings.Split(store, "?")[0])
	must(t, err)
	defer func() {
		_, err := conn.Exec(t.Context(), "DROP SCHEMA "+schema+"_rewritten CASCADE")
		must(t, errors.Join(err, conn.Close(t.Context())))
	}()
	_, err = conn.Exec(t.Context(), "CREATE SCHEMA "+schema+"_rewritten; CREATE TABLE "+schema+"_rewritten.theirs (n int)")
	must(t, err)
	_, err = loomCommand(t, "erase", "--agent", "a", "--key", filepath.Join(dir, "k"), "--out", filepath.Join(dir, "o"), "--store", store, "--data-dir", dir)
	if !errors.Is(err, kv.ErrOccupied) {
		t.Errorf("got %v", err)
	}
	if _, err := conn.Exec(t.Context(), "SELECT n FROM "+schema+"_rewritten.theirs"); err != nil {
		t.Errorf("their table: %v", err)
	}
	p = MustRun(t, dir, "--store", store)
	if hits(t, p, "seal") != 1 {
		t.Error("what was to be erased is gone")
	}
}
