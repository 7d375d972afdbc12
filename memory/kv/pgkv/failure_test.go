package pgkv_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/pgkv"
)

// rounds is how many failures there are: a few, or as many as LOOM_SOAK_ROUNDS says.
func rounds() int {
	if n, err := strconv.Atoi(os.Getenv("LOOM_SOAK_ROUNDS")); err == nil {
		return n
	}
	return 3
}

func counterOf(i int) (kv.Ref, []byte) {
	s := kv.AgentScope("acme", fmt.Sprint("writer-", i))
	return kv.Ref{Keyspace: kv.Records, Scope: s}, s.Key('n')
}

// writers add to a counter each, by writers as the server has them, until stop is closed.
// They return how often each was acknowledged, and how often nobody could tell.
func writers(t *testing.T, db *pgkv.DB, clients int, stop <-chan struct{}) (acknowledged, unknown []uint64) {
	t.Helper()
	acknowledged, unknown = make([]uint64, clients), make([]uint64, clients)
	w := kv.NewWriter(db, nil)
	defer w.Close()
	var users sync.WaitGroup
	for i := range clients {
		users.Go(func() {
			ref, key := counterOf(i)
			for {
				select {
				case <-stop:
					return
				default:
				}
				switch err := w.Do(context.Background(), kv.Request{Refs: []kv.Ref{ref}, Stage: addOne(key)}); {
				case err == nil:
					acknowledged[i]++
				case errors.Is(err, kv.ErrUnknownOutcome):
					unknown[i]++
				case !errors.Is(err, kv.ErrUnreachable):
					t.Errorf("add one: %v", err)
					return
				}
			}
		})
	}
	users.Wait()
	return acknowledged, unknown
}

func addOne(key []byte) kv.Stage {
	return func(ctx context.Context, tx *kv.Tx) error {
		values, err := tx.Get(ctx, kv.Records, key)
		if err != nil {
			return err
		}
		n := uint64(0)
		if values[0] != nil {
			n = binary.BigEndian.Uint64(values[0])
		}
		tx.Put(kv.Records, key, binary.BigEndian.AppendUint64(nil, n+1))
		return nil
	}
}

// wantCounted checks that nothing acknowledged was lost and nothing happened twice.
func wantCounted(t *testing.T, db *pgkv.DB, acknowledged, unknown []uint64) {
	t.Helper()
	for i := range acknowledged {
		_, key := counterOf(i)
		var values [][]byte
		err := kv.ErrUnreachable
		for err != nil { // until the server is there again
			if values, err = db.Get(t.Context(), kv.Records, key); err != nil && !errors.Is(err, kv.ErrUnreachable) {
				t.Fatal(err)
			}
		}
		n := uint64(0)
		if values[0] != nil {
			n = binary.BigEndian.Uint64(values[0])
		}
		if n < acknowledged[i] || n > acknowledged[i]+unknown[i] {
			t.Errorf("writer %d: counted %d, acknowledged %d, unknown %d", i, n, acknowledged[i], unknown[i])
		}
	}
}

// TestKilledServer kills a process of the server with SIGKILL, so that it ends all others
// and recovers from its log, again and again under writers.
func TestKilledServer(t *testing.T) {
	server, err := pgtest.Start(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	db, err := pgkv.Open(t.Context(), server.Address, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	stop := make(chan struct{})
	done := make(chan struct{})
	var acknowledged, unknown []uint64
	go func() {
		defer close(done)
		acknowledged, unknown = writers(t, db, 8, stop)
	}()
	for range rounds() {
		victim := connect(t, server.Address)
		if err := syscall.Kill(int(victim.PgConn().PID()), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		before := connect(t, server.Address) // recovered
		var n int64
		ref, _ := counterOf(0)
		for started := sequence(t, db, ref); n <= int64(started); { //nolint:gosec // small
			n = int64(sequence(t, db, ref)) //nolint:gosec // small
		}
		_ = before.Close(t.Context())
	}
	close(stop)
	<-done
	wantCounted(t, db, acknowledged, unknown)
}

// sequence reads one, however long it takes.
func sequence(t *testing.T, db *pgkv.DB, ref kv.Ref) uint64 {
	t.Helper()
	for {
		found, err := db.Sequence(t.Context(), ref)
		if err == nil {
			return found[0]
		}
		if !errors.Is(err, kv.ErrUnreachable) {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

// connect connects, however long that takes.
func connect(t *testing.T, address string) *pgx.Conn {
	t.Helper()
	for {
		conn, err := pgx.Connect(t.Context(), address)
		if err == nil {
			return conn
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

// cutter is a proxy to the server that drops what comes back, and the connections with
// it, when it is told to.
type cutter struct {
	listener net.Listener
	target   string
	cut      atomic.Pointer[chan struct{}] // closed to cut all connections
}

func startCutter(t *testing.T, address string) (*cutter, string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	c := &cutter{listener: l, target: u.Host}
	first := make(chan struct{})
	c.cut.Store(&first)
	go c.serve()
	u.Host = l.Addr().String()
	return c, u.String()
}

func (c *cutter) serve() {
	for {
		client, err := c.listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer client.Close()
			server, err := net.Dial("tcp", c.target)
			if err != nil {
				return
			}
			defer server.Close()
			cut := *c.cut.Load()
			go func() { _, _ = io.Copy(server, client) }()
			answers := make(chan struct{})
			go func() {
				defer close(answers)
				buffer := make([]byte, 1<<16)
				for {
					n, err := server.Read(buffer)
					select {
					case <-cut: // what was answered is never told
						return
					default:
					}
					if err != nil {
						return
					}
					if _, err := client.Write(buffer[:n]); err != nil {
						return
					}
				}
			}()
			select {
			case <-answers:
			case <-cut:
			}
		}()
	}
}

// drop cuts all connections.
func (c *cutter) drop() {
	next := make(chan struct{})
	close(*c.cut.Swap(&next))
}

// TestDroppedAnswers cuts all connections under writers: what was sent may have happened.
func TestDroppedAnswers(t *testing.T) {
	c, address := startCutter(t, pgtest.Address(t))
	db, err := pgkv.Open(t.Context(), address, &pgkv.Options{Schema: pgtest.Schema(t, pgtest.Address(t))})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	stop, done := make(chan struct{}), make(chan struct{})
	var acknowledged, unknown []uint64
	go func() {
		defer close(done)
		acknowledged, unknown = writers(t, db, 8, stop)
	}()
	ref, _ := counterOf(1)
	for range 10 * rounds() {
		for begun := sequence(t, db, ref); sequence(t, db, ref) == begun; {
			time.Sleep(100 * time.Microsecond)
		}
		c.drop()
	}
	close(stop)
	<-done
	wantCounted(t, db, acknowledged, unknown)
}

// TestExclusive: one process has the store, and one that lost it writes nothing more.
func TestExclusive(t *testing.T) {
	address := pgtest.Address(t)
	o := &pgkv.Options{Schema: pgtest.Schema(t, address), Exclusive: true}
	first, err := pgkv.Open(t.Context(), address, o)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if _, err := pgkv.Open(t.Context(), address, o); !errors.Is(err, kv.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Fatalf("open a second time: %v, want ErrLocked that names this process", err)
	}
	// The connection that holds the lock is lost, and another takes the store.
	admin := connect(t, address)
	defer admin.Close(context.Background())
	var second *pgkv.DB
	for second == nil { // until it is faster than the first one, which takes the store again
		if _, err := admin.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()`); err != nil {
			t.Fatal(err)
		}
		if second, err = pgkv.Open(t.Context(), address, o); err != nil && !errors.Is(err, kv.ErrLocked) {
			t.Fatal(err)
		}
	}
	defer second.Close()
	ref, key := counterOf(0)
	c := kv.Commit{Guards: []kv.Guard{{Ref: ref}}, Batch: new(kv.Batch)}
	c.Batch.Put(kv.Records, key, []byte("1"))
	if err := first.Commit(t.Context(), c); !errors.Is(err, kv.ErrFailed) {
		t.Errorf("commit of the one that lost the store: %v, want ErrFailed", err)
	}
	if condition, _ := first.Health().Condition(); !errors.Is(condition.Failed, kv.ErrFailed) {
		t.Errorf("health: %v", condition)
	}
	if err := second.Commit(t.Context(), c); err != nil {
		t.Errorf("commit of the one that has it: %v", err)
	}
}

// A store that an earlier version wrote is opened, and from then on refused by that version.
func TestOpenRaisesTheFormat(t *testing.T) {
	address := pgtest.Address(t)
	older := pgtest.Schema(t, address)
	admin := connect(t, address)
	defer admin.Close(context.Background())
	for _, before := range []string{"4", "3", strconv.Itoa(kv.Format)} {
		db, err := pgkv.Open(t.Context(), address, &pgkv.Options{Schema: older})
		if err != nil {
			t.Fatalf("after format %s: %v", before, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		var after int
		if err := admin.QueryRow(t.Context(), `SELECT value::int FROM `+older+`.meta WHERE name = 'format'`).Scan(&after); err != nil || after != kv.Format {
			t.Errorf("format %d, want %d: %v", after, kv.Format, err)
		}
		if _, err := admin.Exec(t.Context(), `UPDATE `+older+`.meta SET value = $1 WHERE name = 'format'`, before); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	address := pgtest.Address(t)
	newer := pgtest.Schema(t, address)
	db, err := pgkv.Open(t.Context(), address, &pgkv.Options{Schema: newer})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	admin := connect(t, address)
	defer admin.Close(context.Background())
	if _, err := admin.Exec(t.Context(), `UPDATE `+newer+`.meta SET value = '99' WHERE name = 'format'`); err != nil {
		t.Fatal(err)
	}
	foreign := pgtest.Schema(t, address)
	if _, err := admin.Exec(t.Context(), `CREATE SCHEMA `+foreign+`; CREATE TABLE `+foreign+`.meta (name text, value text)`); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		address, schema string
		want            error
	}{
		"a newer format": {address, newer, kv.ErrNewer},
		"another table":  {address, foreign, kv.ErrForeign},
		"no server":      {"postgres://postgres:secret@127.0.0.1:1/postgres", "", kv.ErrUnreachable},
	} {
		if _, err := pgkv.Open(t.Context(), c.address, &pgkv.Options{Schema: c.schema}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
	if _, err := pgkv.Open(t.Context(), "postgres://user:secret@host:port/x", nil); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("an address that can't be read: %v", err)
	}
}
