package recall_test

import (
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/recall"
	"github.com/loom-bridge/loom-bridge/context/assemble/gather"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/analysis"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

var (
	noon  = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	alice = kv.AgentScope("default", "alice")
	eva   = kv.Scope{Tenant: "default", Kind: kv.OwnerUser, Owner: "eva"}
	terms = analysis.New(nil).Terms
)

// world is a memory and a log on one engine.
type world struct {
	tb     testing.TB
	engine kv.Engine
	writer *kv.Writer
	store  *memory.Store
	log    *session.Log
	now    time.Time
}

func MustWorld(tb testing.TB) *world {
	tb.Helper()
	w := &world{tb: tb, engine: memkv.New(nil), now: noon}
	now := func() time.Time { return w.now }
	w.writer = kv.NewWriter(w.engine, nil)
	w.store = memory.New(w.engine, w.writer, &memory.Options{Now: now, SweepEvery: -1})
	w.log = session.New(w.engine, w.writer, &session.Options{Now: now})
	tb.Cleanup(func() {
		w.must(w.store.Close())
		w.must(w.writer.Close())
		w.must(w.engine.Close())
	})
	return w
}

func (w *world) must(err error) {
	w.tb.Helper()
	if err != nil {
		w.tb.Fatal(err)
	}
}

func (w *world) save(scope kv.Scope, r record.Record) record.Record {
	w.tb.Helper()
	saved, err := w.store.Save(w.tb.Context(), scope, r, "")
	w.must(err)
	return saved
}

// words counts words as tokens.
func words(s string) int { return len(strings.Fields(s)) }

func (w *world) ask(newest string) *gather.Ask {
	a := &gather.Ask{
		Scope: alice, SessionID: "s", Newest: newest, Settings: settings.Prompt{UserID: "eva"},
		View: w.engine, Now: w.now, Count: words,
	}
	a.Settings.Sources.KnowledgeTimeout = time.Minute // the machine may be busy
	return a
}

// gather asks one source.
func (w *world) gather(s gather.Source, a *gather.Ask) gather.Gathered {
	w.tb.Helper()
	g := gather.New([]gather.Source{s}, nil)
	got, err := g.Gather(w.tb.Context(), a)
	w.must(err)
	if len(got.Failures) > 0 {
		_, err := s.Collect(w.tb.Context(), a)
		w.tb.Fatalf("%+v: %v", got.Failures, err)
	}
	return got
}

func (w *world) text(s gather.Source, a *gather.Ask) string {
	w.tb.Helper()
	got := w.gather(s, a)
	texts := make([]string, len(got.Injections))
	for i, in := range got.Injections {
		texts[i] = in.Text
	}
	return strings.Join(texts, "\n==\n")
}

// What the agent and its user have saved stands there as far as it fits, whatever its kind, or
// as many as are asked for, on a line each: nothing that has a section of its own, and nothing
// of anybody else's.
//
// I12, F20, K33
func TestUserMemory(t *testing.T) {
	w := MustWorld(t)
	source := &recall.UserMemory{Store: w.store, Terms: terms}
	for i := range 5 {
		w.save(eva, record.Record{ID: fmt.Sprint("m", i), Text: fmt.Sprintf("Eva likes green tea number %d\n- and no coffee", i), Kind: []string{"", "preference"}[i%2]})
	}
	w.save(alice, record.Record{ID: "own", Text: "I brew green tea for Eva at four"})
	for i, scope := range []kv.Scope{kv.AgentScope("default", "bob"), {Tenant: "other", Kind: kv.OwnerUser, Owner: "eva"}, {Tenant: "default", Kind: kv.OwnerUser, Owner: "mallory"}} {
		w.save(scope, record.Record{Text: fmt.Sprintf("green tea CANARY %d", i)})
	}
	for _, kind := range []string{"knowledge", "playbook", "skill", "task"} {
		w.save(eva, record.Record{Text: "green tea CANARY", Kind: kind})
	}
	a := w.ask("Which green tea does she like?")
	got := w.text(source, a)
	if strings.Contains(got, "CANARY") || strings.Count(got, "- Eva likes green tea number") != 5 || !strings.Contains(got, "- I brew") {
		t.Errorf("got %q", got)
	}
	a.Settings.Sources.UserMemories = 2
	if got := w.text(source, a); strings.Count(got, "\n") != 1 {
		t.Errorf("of two: %q", got)
	}
	a.Settings.Sources.UserMemories, a.Settings.Limits.Sections = 0, map[string]int{settings.UserMemory: 20}
	if got := w.text(source, a); a.Count(got) > 20 || !strings.HasPrefix(got, "- Eva likes green tea number") {
		t.Errorf("of 20 tokens: %q", got)
	}
	a.Settings.UserID, a.Settings.Limits.Sections = "", nil
	if got := w.text(source, a); got != "- I brew green tea for Eva at four" {
		t.Errorf("without a user: %q", got)
	}
	if got := w.text(source, w.ask("How does a compiler inline functions?")); got != "" {
		t.Errorf("what has nothing to do with it: %q", got)
	}
}

// A short message is asked with what was said before it, the user's words and the answer.
func TestFollowUp(t *testing.T) {
	w := MustWorld(t)
	source := &recall.UserMemory{Store: w.store, Terms: terms}
	w.save(eva, record.Record{Text: "The hotel in Paris was the Lutetia"})
	w.save(eva, record.Record{Text: "Paris has a river"})
	w.save(eva, record.Record{Text: "Momo is the name of a grey cat"})
	a := w.ask("and in Paris?")
	a.Settings.Sources.UserMemories = 1
	a.Before = "In which hotel did I sleep in Rome?"
	if got := w.text(source, a); got != "- The hotel in Paris was the Lutetia" {
		t.Errorf("got %q", got)
	}
	a = w.ask("why?")
	a.Answer = "Momo is called so for the book."
	if got := w.text(source, a); !strings.Contains(got, "grey cat") {
		t.Errorf("of an answer: %q", got)
	}
}

// A memory says its day and its author if it knows them.
func TestUserMemoryLine(t *testing.T) {
	w := MustWorld(t)
	w.save(eva, record.Record{Text: "I went to a support group yesterday", Author: "Caroline", EventTime: time.Date(2023, 5, 8, 13, 56, 0, 0, time.UTC)})
	got := w.text(&recall.UserMemory{Store: w.store, Terms: terms}, w.ask("When did Caroline go to the support group?"))
	if got != "- [2023-05-08] Caroline: I went to a support group yesterday" {
		t.Errorf("got %q", got)
	}
	w.save(eva, record.Record{Text: "Ann lives in Rome", ValidUntil: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)})
	if got := w.text(&recall.UserMemory{Store: w.store, Terms: terms}, w.ask("Where does Ann live?")); !strings.Contains(got, "- [until 2020-01-01] Ann lives in Rome") {
		t.Errorf("got %q", got)
	}
}

// A long goal does not drown the newest message, and stands in for one that says
// nothing.
func TestGoalAndMessage(t *testing.T) {
	w := MustWorld(t)
	source := &recall.UserMemory{Store: w.store, Terms: terms}
	for i := range 3 {
		w.save(eva, record.Record{Text: fmt.Sprintf("The quarterly budget report has chapter %d about travel costs", i)})
		for k := range 10 {
			w.save(eva, record.Record{Text: fmt.Sprintf("Something else that happened on day %d of week %d", k, i)})
		}
	}
	w.save(eva, record.Record{Text: "Her cat is called Momo"})
	a := w.ask("What is the name of the cat?")
	a.Goal = strings.Repeat("Write the quarterly budget report with all chapters about travel costs. ", 200)
	if got := w.text(source, a); !strings.HasPrefix(got, "- Her cat is called Momo\n- The quarterly") {
		t.Errorf("got %q", got)
	}
	a.Newest = "Go on!"
	if got := w.text(source, a); !strings.HasPrefix(got, "- The quarterly") {
		t.Errorf("with a message that says nothing: %q", got)
	}
	a.Newest = strings.Repeat("Lorem ipsum dolor. ", 5000) + "What is the name of the cat?"
	if got := w.text(source, a); !strings.Contains(got, "Momo") {
		t.Errorf("with a question behind a long text: %q", got)
	}
}

// What fits the whole of a message is not crowded out by what fits a sentence of it that says
// little, nor is what answers a question among other matters.
func TestSentences(t *testing.T) {
	w := MustWorld(t)
	source := &recall.UserMemory{Store: w.store, Terms: terms}
	for i := range 40 {
		w.save(eva, record.Record{Text: fmt.Sprintf("The next step of plan %d is what we do after dinner number %d", i, i)})
	}
	w.save(eva, record.Record{Text: "The garage in Leeds wants the licence of the Fiat before it begins with the brakes, or it sends the bill"})
	w.save(eva, record.Record{Text: "Her cat is called Momo"})
	for said, want := range map[string]string{
		"I went to the garage in Leeds and they have the licence of the Fiat now, so the brakes can be done. What is the next step?": "The garage in Leeds",
		"It rained all day, so I stayed at home, read a novel about sailors and cooked soup. What is the cat called?":                "Momo",
	} {
		a := w.ask(said)
		a.Settings.Sources.UserMemories = 3
		if got := w.text(source, a); !strings.Contains(strings.SplitN(got, "\n", 2)[0], want) {
			t.Errorf("%q: got %q", said, got)
		}
	}
}

// While nothing changed, prompts of a session pack memories no more, and show the same; what
// changes is packed anew.
func TestPackedOnce(t *testing.T) {
	w := MustWorld(t)
	analysed := 0
	source := &recall.UserMemory{Store: w.store, Terms: func(s string) iter.Seq[string] { analysed++; return terms(s) }}
	g := gather.New([]gather.Source{source}, nil)
	for i := range 20 {
		w.save(eva, record.Record{ID: fmt.Sprint("r", i), Text: strings.Repeat(fmt.Sprintf("The harbour of town %d has a pilot at the pier, as far as anybody knows by now.\n\n", i), 12)})
	}
	prompt := func() string {
		a := w.ask("Which harbour has a pilot at the pier?")
		a.Settings.Limits.Sections = map[string]int{settings.UserMemory: 300}
		got, err := g.Gather(t.Context(), a)
		w.must(err)
		return texts(got)
	}
	prompt()
	second, before := prompt(), analysed
	for range 3 {
		if got := prompt(); got != second {
			t.Errorf("%q, not %q", got, second)
		}
	}
	if analysed != before {
		t.Errorf("%d texts were read again", analysed-before)
	}
	w.save(eva, record.Record{Text: "The harbour with a pilot at the pier is that of Bergen"})
	if got := prompt(); !strings.Contains(got, "Bergen") {
		t.Errorf("a new one is not in %q", got)
	}
}

// Lines fill the room of the section, whatever stands beside their passages.
func TestRoomIsFilled(t *testing.T) {
	w := MustWorld(t)
	source := &recall.UserMemory{Store: w.store, Terms: terms}
	for i := range 30 {
		var said strings.Builder
		for k := range 12 {
			fmt.Fprintf(&said, "The harbour of town %d has a pilot who works at pier %d on days that nobody else would think of working at all.\n\n", i, k)
		}
		w.save(eva, record.Record{Text: said.String(), Author: "the harbour master of the southern coast", EventTime: noon})
	}
	a := w.ask("Which harbour has a pilot at the pier?")
	a.Settings.Limits.Sections = map[string]int{settings.UserMemory: 1000}
	if n := a.Count(w.text(source, a)); n > 1000 || n < 950 {
		t.Errorf("%d of 1000 tokens", n)
	}
}

// A changed or deleted record leaves the block at once; a new one stands beside it.
//
// I21
func TestUserMemoryChanges(t *testing.T) {
	w := MustWorld(t)
	g := gather.New([]gather.Source{&recall.UserMemory{Store: w.store, Terms: terms}}, nil)
	texts := func() map[string]string {
		a := w.ask("Which tea does Eva like?")
		got, err := g.Gather(t.Context(), a)
		w.must(err)
		all := make(map[string]string)
		for _, in := range got.Injections {
			all[in.Name] = in.Text
		}
		return all
	}
	first := w.save(eva, record.Record{Text: "Eva likes green tea"})
	if got := texts(); got["user_memory"] != "- Eva likes green tea" {
		t.Fatalf("first: %q", got)
	}
	second := w.save(eva, record.Record{Text: "Eva does not like black tea"})
	if got := texts(); got["user_memory"] != "- Eva likes green tea" || got["user_memory:new"] != "- Eva does not like black tea" {
		t.Errorf("with a new one: %q", got)
	}
	_, err := w.store.Update(t.Context(), eva, memory.Update{ID: first.ID, Fields: memory.TextField, Values: record.Record{Text: "Eva likes white tea"}}, "")
	w.must(err)
	if got := texts(); !strings.Contains(got["user_memory"], "white") || !strings.Contains(got["user_memory"], "black") || got["user_memory:new"] != "" {
		t.Errorf("with a changed one: %q", got)
	}
	_, err = w.store.Delete(t.Context(), eva, memory.Deletion{ID: second.ID}, "")
	w.must(err)
	if got := texts(); got["user_memory"] != "- Eva likes white tea" || len(got) != 1 {
		t.Errorf("with a deleted one: %q", got)
	}
	w.save(eva, record.Record{Text: "Eva likes no tea at all any more", Supersedes: first.ID})
	if got := texts(); got["user_memory"] != "- Eva likes no tea at all any more" {
		t.Errorf("with one that was superseded: %q", got)
	}
}

// The best hit must be as sure as is asked for anything to be shown, and the others need a
// part of its score.
//
// I13
func TestFitting(t *testing.T) {
	for best, shown := range map[float64]int{.3499: 0, .35: 2, .3501: 2} {
		hits := []memory.Hit{{Score: best}, {Score: best * .2}, {Score: best*.2 - 1e-6}}
		if got := recall.Fitting(hits, .35, .2); len(got) != shown {
			t.Errorf("best %v: %d hits", best, len(got))
		}
	}
}
