package pgkv_test

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/pgkv"
)

// backWithin is how long after a fault commits may take to be acknowledged again.
const backWithin = 2 * time.Minute

// pauseOfFault is a shorter time without a commit than any failover takes.
const pauseOfFault = time.Second

// TestFailover needs a primary with a synchronous standby and a failover manager, which this
// machine does not have by itself: LOOM_PATRONI_DSN is its address, and LOOM_PATRONI_FAULT a
// shell command that makes the primary of the moment fail and comes back at once. The clients
// go on until the promoted standby has acknowledged as much as the primary did.
func TestFailover(t *testing.T) {
	address, fault := os.Getenv("LOOM_PATRONI_DSN"), os.Getenv("LOOM_PATRONI_FAULT")
	if address == "" || fault == "" {
		t.Skip("LOOM_PATRONI_DSN and LOOM_PATRONI_FAULT name no cluster with a failover manager")
	}
	schema := fmt.Sprint("failover_", time.Now().UnixNano())
	open := func(schema string) *pgkv.DB {
		db, err := pgkv.Open(t.Context(), address, &pgkv.Options{Schema: schema, CommitTimeout: 2 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	counted := open(schema + "_counted")
	l := startLinear(t, open(schema), open(schema))
	stop, done := make(chan struct{}), make(chan struct{})
	var acknowledged, unknown []uint64
	go func() {
		defer close(done)
		acknowledged, unknown = writers(t, counted, 4, stop)
	}()
	l.further(t, 2000)
	failed := time.Since(l.began)
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", fault).CombinedOutput(); err != nil { //nolint:gosec // the operator's own
		t.Errorf("%s: %v\n%s", fault, err, out)
	}
	back := l.backWithin(failed, backWithin)
	if back {
		l.further(t, 2000)
	} else {
		t.Errorf("no commit was acknowledged for %v", backWithin)
	}
	close(stop)
	<-done
	l.check(t)
	if back {
		wantCounted(t, counted, acknowledged, unknown)
	}
	sum := func(all []uint64) (n uint64) {
		for _, one := range all {
			n += one
		}
		return n
	}
	t.Logf("%.1f s without a commit; %d reads and commits were refused; counters: %d acknowledged, %d of unknown outcome",
		l.longestPause().Seconds(), l.refused.Load(), sum(acknowledged), sum(unknown))
}

// commits are when writes were acknowledged.
func (l *linear) commits() (at []time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.history {
		if out := o.Output.(answered); o.Input.(asked).value != "" && !out.conflict && !out.unknown {
			at = append(at, time.Duration(o.Return))
		}
	}
	slices.Sort(at)
	return at
}

// backWithin waits until writes are acknowledged again after a fault, for so long at most: no
// sooner than those that the primary still took are behind a pause, since a fault may begin
// late.
func (l *linear) backWithin(fault, most time.Duration) bool {
	for end := time.Now().Add(most); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		all := l.commits()
		for i := 1; i < len(all); i++ {
			if all[i] > fault && all[i]-all[i-1] > pauseOfFault {
				return true
			}
		}
	}
	return false
}

// longestPause is the longest time without an acknowledged write.
func (l *linear) longestPause() (longest time.Duration) {
	all := append(l.commits(), time.Since(l.began))
	for i := 1; i < len(all); i++ {
		longest = max(longest, all[i]-all[i-1])
	}
	return longest
}

// Of several hosts that an address names the standby is not used: what it has may be old, and
// it takes no commits. Alone it counts as no server, but for who only reads. A server that
// stops taking writes is one that is not reached.
func TestStandbyIsNotUsed(t *testing.T) {
	server := startServer(t)
	standby, err := pgtest.StartStandby(server.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer standby.Close()
	if _, err := pgkv.Open(t.Context(), standby.Address, nil); !errors.Is(err, kv.ErrUnreachable) {
		t.Errorf("a standby alone: %v, want ErrUnreachable", err)
	}
	both, err := url.Parse(server.Address)
	if err != nil {
		t.Fatal(err)
	}
	both.Host = standby.Host() + "," + both.Host
	db := pairOf(t, both.String())[0]
	ref, key := counterOf(0)
	commit := func() error {
		c := kv.Commit{Guards: []kv.Guard{{Ref: ref, Any: true}}, Batch: new(kv.Batch)}
		c.Batch.Put(kv.Records, key, []byte("x"))
		return db.Commit(t.Context(), c)
	}
	if err := commit(); err != nil {
		t.Errorf("commit by an address of both: %v", err)
	}
	readOnly, err := pgkv.Open(t.Context(), both.String(), &pgkv.Options{ReadOnly: true})
	if !errors.Is(err, kv.ErrUnreachable) { // this one answers nothing, but it is asked
		t.Errorf("for reading: %v", errors.Join(err, readOnly.Close()))
	}
	admin := connect(t, server.Address)
	for _, c := range []struct {
		writes string
		want   error
	}{{"on", kv.ErrUnreachable}, {"off", nil}} {
		for _, statement := range []string{"ALTER SYSTEM SET default_transaction_read_only = " + c.writes, "SELECT pg_reload_conf()"} {
			if _, err := admin.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		for end := time.Now().Add(5 * time.Minute); !errors.Is(commit(), c.want); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("read-only %s: %v, want %v", c.writes, commit(), c.want)
			}
		}
	}
}
