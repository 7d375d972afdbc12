package kv_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// What takes longer than a snapshot lives is done again on the engine itself; any other
// error ends it at once.
func TestViewOrNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memkv.New(nil)
		defer engine.Close()
		ref := kv.Ref{Keyspace: kv.Log, Scope: kv.AgentScope("default", "alice")}
		for pause, want := range map[time.Duration]int{0: 1, kv.SnapshotLife + 1: 2} {
			runs := 0
			err := kv.ViewOrNow(t.Context(), engine, []kv.Ref{ref}, func(view kv.Reader, sequences []uint64) error {
				if runs++; runs == 1 {
					time.Sleep(pause)
				}
				if (view == kv.Reader(engine)) != (runs == 2) || len(sequences) != 2-runs {
					t.Errorf("run %d: sequences %v", runs, sequences)
				}
				_, err := view.Sequence(t.Context(), ref)
				return err
			})
			if err != nil || runs != want {
				t.Errorf("after %v: %d runs, %v", pause, runs, err)
			}
		}
		own := errors.New("own")
		if err := kv.ViewOrNow(t.Context(), engine, nil, func(kv.Reader, []uint64) error { return own }); !errors.Is(err, own) {
			t.Errorf("got %v", err)
		}
	})
}
