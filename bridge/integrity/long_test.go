package integrity_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/integrity"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/plans"
)

// A reading that takes longer than a snapshot lives takes what changes meanwhile for
// no damage, and finds what is damaged.
func TestALongReadingFindsDamageAlone(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		t.Run(fmt.Sprint("damaged ", damaged), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { readSlowly(t, damaged) })
		})
	}
}

func readSlowly(t *testing.T, damaged bool) {
	behind := memkv.New(nil)
	defer behind.Close()
	writer := kv.NewWriter(behind, nil)
	defer writer.Close()
	j := plans.New(behind, writer, nil)
	line := func(n int) {
		if err := j.AppendLine(t.Context(), "default", "a", int64(n), "kind", "source"); err != nil {
			t.Error(err)
		}
	}
	for n := range 5 {
		line(n)
	}
	if damaged {
		var batch kv.Batch
		batch.Put(kv.Records, agent.Key('r', []byte("x")), []byte("no record"))
		guard := kv.Guard{Ref: kv.Ref{Keyspace: kv.Records, Scope: agent}, Any: true}
		if err := behind.Commit(t.Context(), kv.Commit{Guards: []kv.Guard{guard}, Batch: &batch}); err != nil {
			t.Fatal(err)
		}
	}
	engine := kvtest.Faulty(behind, kvtest.FailurePlan{Delay: kv.SnapshotLife / 2})
	var found []integrity.Finding
	begun := time.Now()
	_, err := integrity.Entries(t.Context(), engine, integrity.Options{
		Found: func(f integrity.Finding) { found = append(found, f) },
		Read:  func(int64) error { line(9); return nil }, // the head moves behind what was read of the ring
	})
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took < 2*kv.SnapshotLife {
		t.Errorf("took %v, so it shows nothing", took)
	}
	want := 0
	if damaged {
		want = 1
	}
	if len(found) != want {
		t.Errorf("found %v, want %d", found, want)
	}
}
