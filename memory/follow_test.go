package memory_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// everything lists all that a scope holds, by id.
func (r *rig) everything(tb testing.TB, scope kv.Scope) map[string]record.Record {
	tb.Helper()
	all := make(map[string]record.Record)
	l := memory.Listing{PageSize: memory.MaxPageSize, Tiers: []int{1, 2, 3, 4}, WithVectors: true}
	for {
		page, err := r.List(tb.Context(), scope, l)
		if err != nil {
			tb.Fatal(err)
		}
		for _, one := range page.Records {
			all[one.ID] = one
		}
		if l.PageToken = page.NextPageToken; l.PageToken == "" {
			return all
		}
	}
}

// projection is what somebody knows who follows a scope.
type projection struct {
	records  map[string]record.Record
	position string
}

// errEnough ends a following.
var errEnough = errors.New("enough")

// follow brings the projection up to date, or stops after some changes.
func (p *projection) follow(r *rig, scope kv.Scope, most int) error {
	err := r.Follow(context.Background(), scope, memory.Following{After: p.position, WithVectors: true}, func(c memory.Changes) error {
		for _, change := range c.Changes {
			if most--; most < 0 {
				return errEnough
			}
			if p.position = change.Position; change.Record == nil {
				delete(p.records, change.ID)
			} else {
				p.records[change.ID] = *change.Record
			}
		}
		if p.position = c.Position; !c.More {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// A projection that is fed by changes alone, and stopped at any of them, is what the store
// holds whenever it has caught up.
//
// Y06
func testFollow(t *testing.T, r *rig) {
	const seed = 17
	random := rand.New(rand.NewPCG(seed, seed))
	p := &projection{records: make(map[string]record.Record)}
	for round := range 400 {
		r.clock.Set(r.clock.Now().Add(time.Second))
		r.change(t, random, round)
		switch random.IntN(4) {
		case 0:
			if err := p.follow(r, agent, random.IntN(5)); err != nil {
				t.Fatal(err)
			}
		case 1:
			if random.IntN(8) == 0 {
				r.Reopen()
			}
			if err := p.follow(r, agent, 1<<30); err != nil {
				t.Fatal(err)
			}
			live := maps.Clone(p.records)
			maps.DeleteFunc(live, func(_ string, one record.Record) bool { return one.ExpiredAt(r.clock.Now()) }) // told when they are swept
			mustEqual(t, fmt.Sprintf("round %d", round), r.everything(t, agent), live, cmpopts.EquateEmpty())
			if t.Failed() {
				return
			}
		}
	}
}

// change makes some change: ids are few, so that they come again.
func (r *rig) change(tb testing.TB, random *rand.Rand, round int) {
	tb.Helper()
	some := func() string { return fmt.Sprintf("id%d", random.IntN(40)) }
	var err error
	switch text := fmt.Sprintf("note %d of the garden", round); random.IntN(8) {
	case 0, 1:
		_, err = r.Save(tb.Context(), agent, record.Record{ID: some(), Text: text, Tier: 1 + random.IntN(4)}, "")
	case 2:
		_, err = r.Save(tb.Context(), agent, record.Record{ID: some(), Text: text, TTL: time.Duration(1+random.IntN(30)) * time.Second}, "")
	case 3:
		_, err = r.Save(tb.Context(), agent, record.Record{Text: text, Supersedes: some()}, "")
	case 4:
		_, err = r.Update(tb.Context(), agent, memory.Update{ID: some(), Fields: memory.TextField | memory.TagsField, Values: record.Record{Text: text, Tags: []string{"changed"}}}, "")
	case 5:
		_, err = r.Delete(tb.Context(), agent, memory.Deletion{ID: some()}, "")
	case 6:
		_, err = r.SaveOrReplace(tb.Context(), agent, record.Record{Key: some(), Text: text, Embedding: []float32{1, float32(round)}, EmbeddingSpace: "s"}, "")
	case 7:
		_, err = r.Sweep(tb.Context())
		if random.IntN(4) == 0 {
			_, err = r.DeleteMatching(tb.Context(), agent, memory.Matching{Filter: `tags:"changed"`})
		}
	}
	for _, fine := range []error{memory.ErrExists, memory.ErrNotFound, memory.ErrInvalid} { // the ids are taken by chance
		if errors.Is(err, fine) {
			return
		}
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// Who follows is told of each change when it is made, of other scopes nothing, and of an
// end.
func testFollowWaits(t *testing.T, r *rig) {
	ctx, stop := context.WithCancel(t.Context())
	told, ended := make(chan memory.Changes), make(chan error, 1)
	go func() {
		ended <- r.Follow(ctx, agent, memory.Following{}, func(c memory.Changes) error {
			select {
			case told <- c:
			case <-ctx.Done():
			}
			return nil
		})
	}()
	if first := <-told; len(first.Changes) != 0 || first.More || first.Position == "" {
		t.Errorf("of an empty scope: %+v", first)
	}
	other := kv.AgentScope("default", "other")
	if _, err := r.Save(t.Context(), other, record.Record{Text: "of another"}, ""); err != nil {
		t.Fatal(err)
	}
	saved := r.MustSave(t, record.Record{Text: "first"})
	if c := <-told; len(c.Changes) != 1 || c.Changes[0].ID != saved.ID || c.Changes[0].Record.Text != "first" {
		t.Errorf("a save: %+v", c)
	}
	if _, err := r.Delete(t.Context(), agent, memory.Deletion{ID: saved.ID}, ""); err != nil {
		t.Fatal(err)
	}
	var gone memory.Changes
	for gone = range told {
		if len(gone.Changes) > 0 { // it may have looked again before
			break
		}
	}
	if gone.Changes[0].ID != saved.ID || gone.Changes[0].Record != nil {
		t.Errorf("a deletion: %+v", gone)
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}

// A position is good for its own memory alone.
func testFollowErrors(t *testing.T, r *rig) {
	refused := func(scope kv.Scope, after string, want error) {
		t.Helper()
		err := r.Follow(t.Context(), scope, memory.Following{After: after}, func(memory.Changes) error { return errEnough })
		if !errors.Is(err, want) {
			t.Errorf("after %q: %v, want %v", after, err, want)
		}
	}
	refused(agent, "nonsense", memory.ErrInvalid)
	refused(agent, "AA", memory.ErrInvalid)
	p := &projection{records: map[string]record.Record{}}
	r.fill(t, 3)
	if err := p.follow(r, agent, 1<<30); err != nil {
		t.Fatal(err)
	}
	refused(agent, p.position, errEnough)
	other := kv.AgentScope("default", "other")
	refused(other, p.position, memory.ErrPositionGone)
	refused(other, "", errEnough)
	refused(other, p.position, memory.ErrPositionGone)
}

// An export that was imported elsewhere is the same export there, byte for byte, and the
// memory answers as the first one does; imported again, nothing changes.
//
// Y07
func testTransfer(t *testing.T, r *rig) {
	const seed = 7
	random := rand.New(rand.NewPCG(seed, seed))
	for round := range 300 {
		r.clock.Set(r.clock.Now().Add(time.Second))
		r.change(t, random, round)
	}
	first := r.export(t, agent)
	other := kv.AgentScope("default", "copy")
	if got, want := r.importAll(t, other, first), (memory.Imported{Saved: len(r.everything(t, agent))}); got != want {
		t.Errorf("imported %+v, want %+v", got, want)
	}
	r.MustCheck(t, other)
	mustEqual(t, "copy", first, r.export(t, other))
	if got, want := r.importAll(t, other, first), (memory.Imported{Unchanged: len(r.everything(t, agent))}); got != want {
		t.Errorf("imported again %+v, want %+v", got, want)
	}
	for id := range r.everything(t, agent) {
		before, err := r.Versions(t.Context(), agent, id, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		after, err := r.Versions(t.Context(), other, id, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		mustEqual(t, "versions of "+id, before, after, cmpopts.IgnoreFields(record.Record{}, "EmbeddingSpace", "Writer"), cmpopts.EquateEmpty())
	}
	for range 20 { // what was imported lives on as what was saved
		r.clock.Set(r.clock.Now().Add(time.Second))
		for id := range r.everything(t, other) {
			if _, err := r.Update(t.Context(), other, memory.Update{ID: id, Fields: memory.TagsField, Values: record.Record{Tags: []string{"again"}}}, ""); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	if _, err := r.DeleteMatching(t.Context(), other, memory.Matching{Filter: `tags:"changed"`}); err != nil {
		t.Fatal(err)
	}
	r.MustCheck(t, other)
}

func (r *rig) export(tb testing.TB, scope kv.Scope) (lines []string) {
	tb.Helper()
	err := r.Export(tb.Context(), scope, func(some [][]byte) error {
		for _, line := range some {
			lines = append(lines, string(line))
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return lines
}

// importAll imports lines, and first in a dry run, which says the same and stores nothing.
func (r *rig) importAll(tb testing.TB, scope kv.Scope, lines []string) memory.Imported {
	tb.Helper()
	before := r.everything(tb, scope)
	dry := r.importAs(tb, scope, lines, memory.ImportOptions{DryRun: true})
	if after := r.everything(tb, scope); !reflect.DeepEqual(before, after) {
		tb.Errorf("a dry run leaves %d records of %d", len(after), len(before))
	}
	got := r.importAs(tb, scope, lines, memory.ImportOptions{})
	if said := got; dry != (memory.Imported{Saved: said.Saved, Unchanged: said.Unchanged, Skipped: said.Skipped, Expired: said.Expired}) {
		tb.Errorf("the dry run says %+v, the run %+v", dry, got)
	}
	return got
}

func (r *rig) importAs(tb testing.TB, scope kv.Scope, lines []string, o memory.ImportOptions) memory.Imported {
	tb.Helper()
	m, err := r.Import(tb.Context(), scope, o)
	if err != nil {
		tb.Fatal(err)
	}
	for _, line := range lines {
		if err := m.Take(tb.Context(), []byte(line)); err != nil {
			tb.Fatal(err)
		}
	}
	got, err := m.End(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return got
}

// A line that can't be taken is named, and what is saved before it stays.
func testImportErrors(t *testing.T, r *rig) {
	good := func(id string, version int64, more string) string {
		return fmt.Sprintf(`{"id":%q,"version":%d,"text":"a text","kind":"fact","create_time":"2026-01-02T03:04:05Z","importance":0.5,"origin":"user","tier":4%s}`, id, version, more)
	}
	for name, c := range map[string]struct {
		lines []string
		want  error
	}{
		"no JSON":                 {[]string{"text"}, record.ErrLine},
		"unknown member":          {[]string{good("a", 1, `,"colour":"red"`)}, record.ErrLine},
		"two objects":             {[]string{good("a", 1, "") + good("b", 1, "")}, record.ErrLine},
		"no id":                   {[]string{good("", 1, "")}, record.ErrLine},
		"version -1":              {[]string{good("a", -1, "")}, record.ErrLine},
		"origin":                  {[]string{`{"id":"a","version":1,"text":"a","kind":"fact","create_time":"2026-01-02T03:04:05Z","importance":0.5,"origin":"god","tier":4}`}, record.ErrLine},
		"tags out of order":       {[]string{good("a", 1, `,"tags":["b","a"]`)}, record.ErrLine},
		"versions of another":     {[]string{good("a", 1, `,"earlier":true`), good("b", 2, "")}, record.ErrLine},
		"a version is missing":    {[]string{good("a", 1, `,"earlier":true`), good("a", 3, "")}, record.ErrLine},
		"the record is missing":   {[]string{good("a", 1, `,"earlier":true`)}, record.ErrLine},
		"too important":           {[]string{good("a", 1, `,"importance":2`)}, memory.ErrInvalid},
		"a vector without space":  {[]string{good("a", 1, `,"embedding":[1,2]`)}, memory.ErrInvalid},
		"another record is there": {[]string{good("taken", 1, "")}, memory.ErrExists},
		"its key is taken":        {[]string{good("a", 1, `,"key":"held"`)}, memory.ErrExists},
		"it supersedes itself":    {[]string{good("a", 1, `,"supersedes":"a"`)}, record.ErrLine},
		"it superseded itself":    {[]string{good("a", 1, `,"superseded_by":"a"`)}, record.ErrLine},
		"before and behind it":    {[]string{good("a", 1, `,"supersedes":"b","superseded_by":"b"`)}, record.ErrLine},
		"a circle of two":         {[]string{good("a", 1, `,"supersedes":"b"`), good("b", 1, `,"supersedes":"a"`)}, record.ErrLine},
		"a circle of three":       {[]string{good("a", 1, `,"superseded_by":"b"`), good("b", 1, `,"superseded_by":"c"`), good("c", 1, `,"superseded_by":"a"`)}, record.ErrLine},
		"a circle of both ways":   {[]string{good("a", 1, `,"supersedes":"b"`), good("b", 1, `,"supersedes":"c"`), good("c", 1, `,"supersedes":"a","superseded_by":"b"`)}, record.ErrLine},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := r.Save(t.Context(), agent, record.Record{ID: "taken", Key: "held", Text: "mine"}, ""); err != nil && !errors.Is(err, memory.ErrExists) {
				t.Fatal(err)
			}
			m, err := r.Import(t.Context(), agent, memory.ImportOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range c.lines {
				if err = m.Take(t.Context(), []byte(line)); err != nil {
					break
				}
			}
			if err == nil {
				_, err = m.End(t.Context())
			}
			var at *memory.ImportError
			if !errors.Is(err, c.want) || !errors.As(err, &at) || at.Line != len(c.lines) {
				t.Errorf("%v, want %v in line %d", err, c.want, len(c.lines))
			}
			if all := r.everything(t, agent); len(all) != 1 {
				t.Errorf("%d records", len(all))
			}
		})
	}
	m, err := r.Import(t.Context(), agent, memory.ImportOptions{Skip: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{good("taken", 1, ""), good("late", 7, ""), good("gone", 1, `,"expire_time":"2026-01-02T03:04:06Z"`)} {
		if err := m.Take(t.Context(), []byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := m.End(t.Context())
	if want := (memory.Imported{Saved: 1, Skipped: 1, Expired: 1}); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}

	// A file approves nothing, however often it is imported.
	approved := []string{good("approved", 1, `,"review":"approved"`)}
	for i, want := range []memory.Imported{{Saved: 1}, {Unchanged: 1}} {
		if got := r.importAll(t, agent, approved); got != want {
			t.Errorf("import %d of an approved record: %+v", i, got)
		}
	}
	for _, one := range r.everything(t, agent) {
		if one.ID == "approved" && one.Review == record.ReviewApproved {
			t.Error("a line has approved its record")
		}
	}
	if versions, err := r.Versions(t.Context(), agent, "late", 0, 0); err != nil || len(versions) != 0 {
		t.Errorf("versions of a record that came without: %v, %v", versions, err)
	}
	if !slices.Contains([]string{"mine"}, r.everything(t, agent)["taken"].Text) {
		t.Errorf("what was there is %+v", r.everything(t, agent)["taken"])
	}
}
