package tiers_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/bridge/tiers"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

var (
	alice = kv.AgentScope("t", "alice")
	noon  = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
)

// world is tiers over an engine that can fail.
type world struct {
	tb     testing.TB
	engine *kvtest.FaultyEngine
	opts   tiers.Options
	writer *kv.Writer
	log    *session.Log
	store  *memory.Store
	*tiers.Tiers
}

// MustWorld returns a world that ends with the test. A nil engine is a new one in
// memory.
func MustWorld(tb testing.TB, engine kv.Engine, opts tiers.Options) *world {
	tb.Helper()
	if engine == nil {
		engine = memkv.New(nil)
	}
	w := &world{tb: tb, engine: kvtest.Faulty(engine, kvtest.FailurePlan{}), opts: opts}
	w.start()
	tb.Cleanup(func() {
		w.must(w.store.Check(context.Background(), alice))
		w.stop()
		w.must(engine.Close())
	})
	return w
}

func (w *world) start() {
	now := func() time.Time { return noon }
	w.writer = kv.NewWriter(w.engine, nil)
	w.log = session.New(w.engine, w.writer, &session.Options{Now: now})
	w.store = memory.New(w.engine, w.writer, &memory.Options{Now: now})
	w.Tiers = tiers.New(w.log, w.store, w.writer, &w.opts)
}

func (w *world) stop() {
	w.must(w.store.Close())
	w.must(w.writer.Close())
}

// restart is the end of the process and the next one.
func (w *world) restart() {
	w.stop()
	w.engine.Replan(kvtest.FailurePlan{})
	w.start()
}

func (w *world) must(err error) {
	w.tb.Helper()
	if err != nil {
		w.tb.Fatal(err)
	}
}

func (w *world) add(task session.Task) session.Task {
	w.tb.Helper()
	added, err := w.Add(w.tb.Context(), alice, task)
	w.must(err)
	return added
}

// record is that of a task; false when it has none.
func (w *world) record(id string) (record.Record, bool) {
	w.tb.Helper()
	r, err := w.store.GetByKey(w.tb.Context(), alice, tiers.Key(id))
	if errors.Is(err, memory.ErrNotFound) {
		return r, false
	}
	w.must(err)
	return r, true
}

// task is one whose importance stands in its id.
func task(sessionID string, n int, importance float64) session.Task {
	return session.Task{
		ID: fmt.Sprintf("%s-%d", sessionID, n), Action: "execute", SessionID: sessionID, Importance: importance,
		Parameters: fmt.Appendf(nil, `{"n":%d}`, n), CreateTime: noon.Add(time.Duration(n) * time.Second),
	}
}

// model is what the tiers of one session should hold.
type model struct {
	opts   tiers.Options
	all    []session.Task
	second []session.Task // oldest first
	third  []session.Task // in the order of entering
	fourth []session.Task
	pinned map[string]bool
}

func (m *model) add(t session.Task) {
	m.all = append(m.all, t)
	if t.Importance <= session.ImportantTask {
		return
	}
	m.second = append(m.second, t)
	if full(m.second, m.opts.L2) {
		byImportance := slices.Clone(m.second)
		slices.SortStableFunc(byImportance, func(a, b session.Task) int { return cmp.Compare(a.Importance, b.Importance) })
		move(byImportance, &m.second, &m.third, m.pinned)
	}
	if full(m.third, m.opts.L3) {
		move(slices.Clone(m.third), &m.third, &m.fourth, m.pinned)
	}
}

func full(tier []session.Task, capacity int) bool { return len(tier)*10 >= capacity*9 }

func move(order []session.Task, from, to *[]session.Task, pinned map[string]bool) {
	n := max(1, len(order)/5)
	order = slices.DeleteFunc(order, func(t session.Task) bool { return pinned[t.ID] })
	for _, t := range order[:min(n, len(order))] {
		*from = slices.DeleteFunc(*from, func(other session.Task) bool { return other.ID == t.ID })
		*to = append(*to, t)
	}
}

func ids(tasks []session.Task) string {
	all := make([]string, len(tasks))
	for i, t := range tasks {
		all[i] = t.ID
	}
	return strings.Join(all, " ")
}

func recordIDs(records []record.Record) []string {
	all := make([]string, len(records))
	for i, r := range records {
		all[i] = strings.TrimPrefix(r.Key, "task/")
	}
	return all
}

// check compares the tiers of a session with the model.
func (w *world) check(sessionID string, m *model) {
	w.tb.Helper()
	ctx := w.tb.Context()
	l1, err := w.L1(ctx, alice, sessionID, 0)
	w.must(err)
	l2, err := w.L2(ctx, alice, sessionID, 0)
	w.must(err)
	l3, err := w.L3(ctx, alice, sessionID, 0)
	w.must(err)
	page, err := w.store.List(ctx, alice, memory.Listing{Filter: `session_id = "` + sessionID + `"`, PageSize: memory.MaxPageSize})
	w.must(err)
	slices.Reverse(l3)
	second, fourth := strings.Fields(ids(m.second)), strings.Fields(ids(m.fourth))
	slices.Sort(second)
	slices.Sort(fourth)
	recent := m.all[max(0, len(m.all)-m.opts.L1):]
	for i := 1; i < len(l2); i++ {
		if l2[i-1].Importance < l2[i].Importance {
			w.tb.Errorf("L2 is not by importance: %v behind %v", l2[i].Importance, l2[i-1].Importance)
		}
	}
	got := [][]string{strings.Fields(ids(l1)), slices.Sorted(slices.Values(recordIDs(l2))), recordIDs(l3), slices.Sorted(slices.Values(recordIDs(page.Records)))}
	want := [][]string{strings.Fields(ids(recent)), second, strings.Fields(ids(m.third)), fourth}
	for i := range got {
		if !slices.Equal(got[i], want[i]) {
			w.tb.Fatalf("%s: L%d (-want +got):\n%s", sessionID, i+1, gocmp.Diff(want[i], got[i]))
		}
	}
	// Nothing is lost: the log has all, and who moved up has one record.
	for _, t := range m.all {
		if found, err := w.Task(ctx, alice, sessionID, t.ID); err != nil || found.Result != t.Result {
			w.tb.Fatalf("task %s: result %q, %v", t.ID, found.Result, err)
		}
	}
}
