package session_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// A log at a snapshot reads what was there then, all of it, and writes as any other.
// When the snapshot is too old, it says so.
func TestAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memkv.New(nil)
		defer engine.Close()
		writer := kv.NewWriter(engine, nil)
		defer writer.Close()
		log := session.New(engine, writer, nil)
		scope := kv.AgentScope("default", "alice")
		say := func(l *session.Log, words string) {
			t.Helper()
			if _, err := l.AppendMessages(t.Context(), scope, "s", []session.Message{{Role: session.User, Content: words}}, ""); err != nil {
				t.Fatal(err)
			}
			if _, err := l.AddTask(t.Context(), scope, session.Task{Action: "execute", SessionID: "s"}); err != nil {
				t.Fatal(err)
			}
		}
		count := func(l *session.Log) (entries, tasks int) {
			t.Helper()
			for _, err := range l.Entries(t.Context(), scope, "s") {
				if err != nil {
					t.Fatal(err)
				}
				entries++
			}
			all, err := l.LastTasks(t.Context(), scope, "s", 0)
			if err != nil {
				t.Fatal(err)
			}
			return entries, len(all)
		}
		say(log, "one")
		view, err := engine.Snapshot(t.Context(), log.Ref(scope))
		if err != nil {
			t.Fatal(err)
		}
		defer view.Close()
		at := log.At(view)
		say(log, "two")
		say(at, "three")
		if entries, tasks := count(at); entries != 1 || tasks != 1 {
			t.Errorf("at the snapshot: %d entries, %d tasks", entries, tasks)
		}
		if entries, tasks := count(log); entries != 3 || tasks != 3 {
			t.Errorf("by now: %d entries, %d tasks", entries, tasks)
		}
		synctest.Wait()
		time.Sleep(kv.SnapshotLife + 1)
		if _, err := at.Last(t.Context(), scope, "s"); !errors.Is(err, kv.ErrTooOld) {
			t.Errorf("later: %v", err)
		}
	})
}
