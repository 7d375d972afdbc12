package memory_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/analysis"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// speak opens the store anew in another language.
func (r *rig) speak(l analysis.Language) {
	r.opts.Language = l
	r.Reopen()
}

// MustFillFrench saves French texts, with all that can happen to records: some
// are packed, some in the tail, some changed, superseded and deleted, the newest
// one too.
func MustFillFrench(tb testing.TB, r *rig) {
	tb.Helper()
	for i := range 8 {
		r.MustSave(tb, record.Record{ID: fmt.Sprint("note-", i), Text: fmt.Sprint("Note ", i, " sur le jardin"), SessionID: "s"})
	}
	r.MustSave(tb, record.Record{ID: "horses", Text: "Les chevaux étaient dans l'écurie", Author: "Zoé"})
	r.MustSave(tb, record.Record{ID: "bread", Text: "La boulangerie ouvre à six heures", SlidingTTL: 24 * time.Hour})
	r.MustSave(tb, record.Record{ID: "late", Text: "La boulangerie ouvre à neuf heures", Supersedes: "bread"})
	r.MustPack(tb)
	for _, text := range []string{"Le jardin est brûlé", "Le jardin refleurit"} {
		u := memory.Update{ID: "note-3", Fields: memory.TextField, Values: record.Record{Text: text}}
		if _, err := r.Update(tb.Context(), agent, u, ""); err != nil {
			tb.Fatal(err)
		}
	}
	r.MustSave(tb, record.Record{ID: "newest", Text: "Une dernière note"})
	for _, id := range []string{"note-5", "newest"} {
		if _, err := r.Delete(tb.Context(), agent, memory.Deletion{ID: id}, ""); err != nil {
			tb.Fatal(err)
		}
	}
}

// wantFrench asks what only French stems find, and what neither needs.
func wantFrench(tb testing.TB, r *rig) {
	tb.Helper()
	for query, want := range map[string]string{"cheval": "horses", "heure d'ouverture boulangerie": "late", "refleurir": "note-3"} {
		if hits := ids(r.MustQuery(tb, question.Question{Text: query, Limit: 1, Mode: question.Lexical})); len(hits) != 1 || hits[0] != want {
			tb.Errorf("query %q finds %q, want %s", query, hits, want)
		}
	}
}

// An index that was made in another language is made anew from the records.
func TestAnotherLanguage(t *testing.T) {
	engine := memkv.New(nil)
	r := MustRig(t, engine)
	r.speak(analysis.English)
	MustFillFrench(t, r)
	if hits := ids(r.MustQuery(t, question.Question{Text: "cheval", Mode: question.Lexical})); len(hits) != 0 {
		t.Fatalf("found in English: %q", hits)
	}
	r.speak(analysis.French)
	wantFrench(t, r)
	r.MustCheck(t, agent)
	saved := r.MustSave(t, record.Record{Text: "Les journaux sont arrivés"})
	if hits := ids(r.MustQuery(t, question.Question{Text: "journal", Mode: question.Lexical})); len(hits) != 1 || hits[0] != saved.ID {
		t.Errorf("found %q", hits)
	}
	for range 50 {
		r.MustPack(t)
	}
	if n := keysOfGeneration(t, engine, 2); n > 0 {
		t.Errorf("%d keys of the English index are left", n)
	}
	r.Reopen()
	wantFrench(t, r)
	if n := keysOfGeneration(t, engine, 4); n > 0 {
		t.Error("the same language made the index anew")
	}
}

// Whatever comes first has the index made anew.
func TestAnotherLanguageWhateverComesFirst(t *testing.T) {
	for name, ask := range map[string]func(*rig) error{
		"save": func(r *rig) error {
			_, err := r.Save(t.Context(), agent, record.Record{Text: "Un chat"}, "")
			return err
		},
		"check": func(r *rig) error { return r.Check(t.Context(), agent) },
		"delete": func(r *rig) error {
			_, err := r.Delete(t.Context(), agent, memory.Deletion{ID: "note-1"}, "")
			return err
		},
		"list":  func(r *rig) error { _, err := r.List(t.Context(), agent, memory.Listing{}); return err },
		"stats": func(r *rig) error { _, err := r.Stats(t.Context(), agent); return err },
		"sweep": func(r *rig) error {
			r.clock.Set(start.Add(48 * time.Hour))
			n, err := r.Sweep(t.Context())
			if n != 1 {
				t.Errorf("swept %d records", n)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := MustRig(t, memkv.New(nil))
			MustFillFrench(t, r)
			r.speak(analysis.French)
			if err := ask(r); err != nil {
				t.Fatal(err)
			}
			wantFrench(t, r)
		})
	}
}

// A store that dies while it makes the index anew leaves it to the next one,
// whichever language that has.
func TestAnotherLanguageSurvivesFaults(t *testing.T) {
	for fail := 1; ; fail++ {
		engine := kvtest.Faulty(memkv.New(nil), kvtest.FailurePlan{})
		r := MustRig(t, engine)
		MustFillFrench(t, r)
		r.close()
		engine.Replan(kvtest.FailurePlan{Commit: fail, Repeat: true})
		r.opts.Language = analysis.French
		r.open()
		_, err := r.Query(t.Context(), agent, question.Question{Text: "cheval"})
		commits, _ := engine.Calls()
		r.close()
		engine.Replan(kvtest.FailurePlan{})
		if err != nil && !errors.Is(err, kvtest.ErrFault) {
			t.Fatal(err)
		}
		if fail%2 == 0 { // the third language meets an index that is half made
			r.opts.Language = analysis.Spanish
		}
		r.open()
		r.MustCheck(t, agent)
		r.speak(analysis.French)
		wantFrench(t, r)
		for range 50 {
			r.MustPack(t)
		}
		for generation := byte(1); generation <= 3; generation++ {
			if fail%2 == 0 && keysOfGeneration(t, engine, generation) > 0 {
				t.Errorf("fault %d: keys of generation %d are left", fail, generation)
			}
		}
		if err == nil && commits < fail {
			if fail < 3 {
				t.Errorf("made anew in %d commits", commits)
			}
			return
		}
	}
}

// Stores of two languages on one engine cost each other time, nothing else.
func TestTwoLanguagesTakeTurns(t *testing.T) {
	engine := memkv.New(nil)
	french := MustRig(t, engine)
	french.speak(analysis.French)
	english := MustRig(t, engine)
	MustFillFrench(t, french)
	for i := range 4 {
		wantFrench(t, french)
		french.MustCheck(t, agent)
		english.MustSave(t, record.Record{ID: fmt.Sprint("cat-", i), Text: "The cats are asleep", Key: fmt.Sprint("key-", i)})
		if hits := ids(english.MustQuery(t, question.Question{Text: "a sleeping cat", Mode: question.Lexical})); len(hits) != min(i+1, question.DefaultLimit) {
			t.Errorf("turn %d: found %q", i, hits)
		}
		english.MustCheck(t, agent)
	}
}

// An older layout and another language are one rebuilding.
func TestGeneration1InAnotherLanguage(t *testing.T) {
	engine := memkv.New(nil)
	MustLoadGeneration1(t, engine)
	r := &rig{engine: engine, clock: &clock{now: start}, opts: memory.Options{Language: analysis.French}}
	r.open()
	defer r.close()
	if hits := ids(r.MustQuery(t, question.Question{Text: "getUserName", Limit: 1})); len(hits) != 1 || hits[0] != "rec-06" {
		t.Errorf("found %q", hits)
	}
	r.MustCheck(t, agent)
	if keysOfGeneration(t, engine, 2) == 0 || keysOfGeneration(t, engine, 3) > 0 {
		t.Error("made anew twice")
	}
}

// A version of the analysis that this program does not know is another one.
func TestLaterAnalysisIsReplaced(t *testing.T) {
	engine := memkv.New(nil)
	writer := kv.NewWriter(engine, nil)
	defer writer.Close()
	later := lexical.New(&lexical.Options{Analysis: "english/1000000"})
	err := writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{lexical.Ref(agent)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
		_, _, err := later.Apply(ctx, tx, agent, lexical.Change{Add: []lexical.Added{{Encoded: segment.NewDocument("gone").Encode()}}})
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
	r := MustRig(t, engine)
	r.MustCheck(t, agent)
	saved := r.MustSave(t, record.Record{Text: "The cats are asleep"})
	if hits := ids(r.MustQuery(t, question.Question{Text: "cat"})); len(hits) != 1 || hits[0] != saved.ID {
		t.Errorf("found %q", hits)
	}
}

func TestStoreInAnotherLanguage(t *testing.T) {
	r := MustRig(t, memkv.New(nil))
	r.speak(analysis.Russian)
	want := r.MustSave(t, record.Record{Text: "Мы говорили о красивых домах"})
	r.MustSave(t, record.Record{Text: "Поезд опоздал на час"})
	if hits := ids(r.MustQuery(t, question.Question{Text: "красивый дом", Mode: question.Lexical})); len(hits) != 1 || hits[0] != want.ID {
		t.Errorf("found %q", hits)
	}
}
