package tiers_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/bridge/tiers"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

var small = tiers.Options{L1: 5, L2: 10, L3: 12}

func newModel(opts tiers.Options) *model { return &model{opts: opts, pinned: map[string]bool{}} }

// F10, F11, P22, P24: what moves at the thresholds, and what does not yet.
func TestThresholds(t *testing.T) {
	w := MustWorld(t, nil, tiers.Options{})
	counts := func() [4]int {
		l1, err := w.L1(t.Context(), alice, "s", 0)
		w.must(err)
		l2, err := w.L2(t.Context(), alice, "s", 0)
		w.must(err)
		l3, err := w.L3(t.Context(), alice, "s", 0)
		w.must(err)
		l4, err := w.store.List(t.Context(), alice, memory.Listing{PageSize: memory.MaxPageSize})
		w.must(err)
		return [4]int{len(l1), len(l2), len(l3), len(l4.Records)}
	}
	// 0.6 stays in L1, what is over it moves.
	w.add(task("s", 0, 0.6))
	if got := counts(); got != [4]int{1, 0, 0, 0} {
		t.Errorf("0.6: %v", got)
	}
	n := 1
	adding := func(count int) {
		for range count {
			w.add(task("s", n, .61+float64(n%7)/100))
			n++
		}
	}
	for _, step := range []struct {
		add  int
		want [4]int
	}{
		{1, [4]int{2, 1, 0, 0}},
		{48, [4]int{50, 49, 0, 0}},
		{1, [4]int{50, 50, 0, 0}}, // the first one has left L1
		{39, [4]int{50, 89, 0, 0}},
		{1, [4]int{50, 72, 18, 0}},
		{17, [4]int{50, 89, 18, 0}},
		{1, [4]int{50, 72, 36, 0}},
		{18 * 22, [4]int{50, 72, 432, 0}},
		{17, [4]int{50, 89, 432, 0}},
		{1, [4]int{50, 72, 360, 90}},
	} {
		adding(step.add)
		if got := counts(); got != step.want {
			t.Fatalf("after %d tasks: %v, want %v", n, got, step.want)
		}
	}
	if task, err := w.Task(t.Context(), alice, "s", "s-0"); err != nil || task.Number != 1 {
		t.Errorf("the task that left L1: %+v, %v", task, err)
	}
}

// P25, F13: random adds over sessions, with pins, deletions and late results: each
// task is where it should be, and nowhere else.
func TestModel(t *testing.T) {
	seed := chance.Seed(t)
	w := MustWorld(t, nil, small)
	play(t, w, rand.New(rand.NewPCG(seed, 0)), 400)
}

func TestModelOnRocksDB(t *testing.T) {
	db, err := rockskv.Open(filepath.Join(t.TempDir(), "db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	play(t, MustWorld(t, db, small), rand.New(rand.NewPCG(1, 0)), 120)
}

func play(t *testing.T, w *world, random *rand.Rand, rounds int) {
	models := map[string]*model{}
	for _, id := range []string{"a", "b", `c"\' x`} {
		models[id] = newModel(small)
	}
	names := slices.Sorted(func(yield func(string) bool) {
		for id := range models {
			if !yield(id) {
				return
			}
		}
	})
	for n := range rounds {
		id := names[random.IntN(len(names))]
		m := models[id]
		switch kind := random.IntN(10); {
		case kind == 0 && len(m.second) > 0:
			pin(w, m, m.second[random.IntN(len(m.second))].ID)
		case kind == 1 && len(m.second) > 0:
			at := random.IntN(len(m.second))
			_, err := w.store.Delete(t.Context(), alice, memory.Deletion{Key: tiers.Key(m.second[at].ID)}, "")
			w.must(err)
			m.second = slices.Delete(m.second, at, at+1)
		case kind == 2 && len(m.all) > 0:
			at := random.IntN(len(m.all))
			m.all[at].Result = "late"
			w.add(m.all[at])
		default:
			next := task(id, n, float64(random.IntN(11))/10)
			w.add(next)
			m.add(next)
		}
		if n%20 == 0 || n == rounds-1 {
			for id, m := range models {
				if !strings.ContainsAny(id, `"\`) { // the check's own filter is a plain one
					w.check(id, m)
				}
			}
		}
	}
	odd := models[`c"\' x`]
	l2, err := w.L2(t.Context(), alice, `c"\' x`, 0)
	if err != nil || len(l2) != len(odd.second) {
		t.Errorf("L2 of a session with quotes has %d tasks, want %d: %v", len(l2), len(odd.second), err)
	}
	for _, m := range models {
		for _, task := range slices.Concat(m.second, m.third, m.fourth) {
			r, _ := w.record(task.ID)
			at := slices.IndexFunc(m.all, func(other session.Task) bool { return other.ID == task.ID })
			if late := m.all[at].Result == "late"; late != strings.HasSuffix(r.Text, "-> late") {
				t.Errorf("%s: late %v: %q", task.ID, late, r.Text)
			}
		}
	}
}

func pin(w *world, m *model, id string) {
	w.tb.Helper()
	_, err := w.store.Update(w.tb.Context(), alice, memory.Update{
		Key: tiers.Key(id), Fields: memory.PinnedField, Values: record.Record{Pinned: true},
	}, "")
	w.must(err)
	m.pinned[id] = true
}

// P25: the process dies at any commit, written or not; the next one finds each task
// that was acknowledged, and puts it where it belongs.
func TestDeathAtAnyCommit(t *testing.T) {
	for _, plan := range []kvtest.FailurePlan{
		{Err: kv.ErrFull, Repeat: true},
		{Err: kv.ErrUnknownOutcome, Repeat: false, Written: true},
	} {
		w := MustWorld(t, nil, small)
		m := newModel(small)
		n := 0
		for commit := 1; commit <= 5; commit++ {
			for range 24 { // L2 and L3 overflow meanwhile
				next := task("s", n, .7+float64(n%4)/20)
				n++
				plan.Commit = commit
				w.engine.Replan(plan)
				_, err := w.Add(t.Context(), alice, next)
				w.restart()
				if err != nil && !errors.Is(err, plan.Err) {
					t.Fatal(err)
				}
				if err != nil { // the caller can't know, so it adds the task again
					w.add(next)
				} else {
					w.must(w.Promote(t.Context(), alice, "s"))
				}
				m.add(next)
			}
			w.check("s", m)
		}
		if len(m.fourth) == 0 {
			t.Error("nothing reached L4")
		}
	}
}

// P25: while the next tier takes nothing, the tasks stay, over capacity if need be,
// and one add later all is made up for.
func TestNextTierTakesNothing(t *testing.T) {
	w := MustWorld(t, nil, small)
	m := newModel(small)
	for n := range 30 {
		w.engine.Replan(kvtest.FailurePlan{Commit: 2, Err: kv.ErrFull, Repeat: true}) // the add itself is the first
		next := task("s", n, .9)
		if _, err := w.Add(t.Context(), alice, next); err != nil {
			t.Fatalf("the add failed with its promotion: %v", err)
		}
		m.all = append(m.all, next)
	}
	w.check("s", m)
	w.restart()
	last := task("s", 30, .1)
	w.add(last)
	m.all = append(m.all, last)
	for _, id := range m.all {
		if _, ok := w.record(id.ID); ok != (id.Importance > session.ImportantTask) {
			t.Errorf("%s has a record: %v", id.ID, ok)
		}
	}
}

// Many add at the same time, in one session and in several.
func TestConcurrentAdds(t *testing.T) {
	w := MustWorld(t, nil, small)
	var all sync.WaitGroup
	const workers, each = 8, 20
	for worker := range workers {
		all.Go(func() {
			for n := range each {
				_, err := w.Add(t.Context(), alice, task(fmt.Sprintf("s%d", worker%2), worker*each+n, .9))
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for s := range 2 {
		id := fmt.Sprintf("s%d", s)
		m := newModel(small)
		tasks, err := w.log.LastTasks(t.Context(), alice, id, 0)
		w.must(err)
		for _, task := range tasks {
			if _, ok := w.record(task.ID); !ok {
				t.Errorf("%s has no record", task.ID)
			}
			m.add(task)
		}
		l2, err := w.L2(t.Context(), alice, id, 0)
		w.must(err)
		if len(tasks) != workers*each/2 || len(l2) >= 9 {
			t.Errorf("%s: %d tasks, %d in L2", id, len(tasks), len(l2))
		}
	}
}

// P26: what a record says of its task, tier by tier.
func TestSummaries(t *testing.T) {
	w := MustWorld(t, nil, tiers.Options{L1: 5, L2: 2, L3: 2})
	long := task("s", 1, .9)
	long.Parameters = []byte(`{"z": 1, "a": "` + strings.Repeat("ä", 300) + `"}`)
	parameters := `{"a":"` + strings.Repeat("ä", 300) + `","z":1}`
	w.add(long)
	r, _ := w.record("s-1")
	if r.Tier != 2 || r.Text != "execute: "+parameters+" ->" || r.Importance != .9 || r.SessionID != "s" || r.Kind != "task" || !r.EventTime.Equal(long.CreateTime) {
		t.Errorf("L2: %+v", r)
	}
	long.Result = strings.Repeat("r", 201)
	w.add(long)
	if r, _ = w.record("s-1"); r.Text != "execute: "+parameters+" -> "+long.Result || r.Version != 2 {
		t.Errorf("L2 with a result: %+v", r)
	}
	want := tiers.Summary{
		TaskID: "s-1", Action: "execute", Parameters: string([]rune(parameters)[:200]) + "...", Result: strings.Repeat("r", 200) + "...",
		Status: "completed", Tags: []string{"execute", "completed"}, Importance: .9, CreateTime: long.CreateTime, SessionID: "s",
		SourceAgent: "alice", Ref: "task/s-1",
	}
	if got, ok := tiers.SummaryOf(r); !ok || !cmp.Equal(got, want) {
		t.Errorf("summary (-want +got):\n%s", cmp.Diff(want, got))
	}
	tagged := task("s", 2, .95)
	tagged.Tags = []string{"x", "y"}
	w.add(tagged) // L2 is full, so the other one goes on
	r, _ = w.record("s-1")
	want.Moved = 1
	if got, _ := tiers.SummaryOf(r); r.Tier != 3 || r.Text != "execute: "+want.Parameters+" -> "+want.Result || !cmp.Equal(got, want) {
		t.Errorf("L3: %+v", r)
	}
	w.add(task("s", 3, .94))
	if r, _ = w.record("s-1"); r.Tier != 4 || r.Text != "execute: "+parameters+" -> "+long.Result {
		t.Errorf("L4: %+v", r)
	}
	r, _ = w.record("s-2")
	if got, _ := tiers.SummaryOf(r); !slices.Equal(got.Tags, tagged.Tags) || !slices.Equal(r.Tags, tagged.Tags) || got.Status != "pending" {
		t.Errorf("with tags: %+v", r)
	}
}

// What somebody changed of a record stays as it was made.
func TestChangedRecordsKeepTheirText(t *testing.T) {
	w := MustWorld(t, nil, tiers.Options{L2: 2, L3: 5})
	w.add(task("s", 1, .7))
	_, err := w.store.Update(t.Context(), alice, memory.Update{
		Key: "task/s-1", Fields: memory.TextField | memory.MetadataField,
		Values: record.Record{Text: "in my words", Metadata: []byte(`{"task_id":"s-1","mine":9007199254740993}`)},
	}, "")
	w.must(err)
	w.add(task("s", 2, .9))
	r, _ := w.record("s-1")
	if r.Tier != 3 || r.Text != "in my words" || string(r.Metadata) != `{"mine":9007199254740993,"moved":1,"task_id":"s-1"}` {
		t.Errorf("%d: %s %s", r.Tier, r.Text, r.Metadata)
	}
}

// A record that somebody deleted does not come back, and a key that somebody took
// stops nothing.
func TestDeletedAndTakenRecords(t *testing.T) {
	w := MustWorld(t, nil, small)
	w.add(task("s", 1, .9))
	_, err := w.store.Delete(t.Context(), alice, memory.Deletion{Key: "task/s-1"}, "")
	w.must(err)
	late := task("s", 1, .9)
	late.Result = "late"
	w.add(late)
	if r, ok := w.record("s-1"); ok {
		t.Errorf("back again: %+v", r)
	}
	_, err = w.store.Save(t.Context(), alice, record.Record{Text: "mine", Key: "task/s-2"}, "")
	w.must(err)
	taken := task("s", 2, .9)
	w.add(taken)
	taken.Result = "late"
	w.add(taken)
	w.add(task("s", 3, .9))
	if _, ok := w.record("s-3"); !ok {
		t.Error("the next one has no record")
	}
	if r, _ := w.record("s-2"); r.Text != "mine" {
		t.Errorf("the taken one: %+v", r)
	}
}

// F12, F13: L4 is for all sessions unless one is named; the tiers below are not.
func TestL4CrossesSessions(t *testing.T) {
	w := MustWorld(t, nil, tiers.Options{L2: 1, L3: 1})
	for _, id := range []string{"s1", "s2"} {
		next := task(id, 1, .9)
		next.Result = "the zebra crossed"
		w.add(next)
	}
	for id, want := range map[string]int{"": 2, "s1": 1, "s3": 0} {
		found, err := w.L4(t.Context(), alice, id, "zebra", 5)
		if err != nil || len(found.Hits) != want {
			t.Errorf("%q: %d hits, want %d: %v", id, len(found.Hits), want, err)
		}
	}
	if _, err := w.Task(t.Context(), alice, "s2", "s1-1"); !errors.Is(err, session.ErrTaskNotFound) {
		t.Errorf("a task of another session: %v", err)
	}
	if found, err := w.Task(t.Context(), alice, "s1", "task/s1-1"); err != nil || found.ID != "s1-1" {
		t.Errorf("by its ref: %+v, %v", found, err)
	}
}
