package memory_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/analysis"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// life is a plain memory of everything that became of records: a list in the
// order of arrival, searched one by one.
type life struct {
	analyzer *analysis.Analyzer
	records  []record.Record
	versions map[string][]record.Record // earlier ones, the newest first
}

func (l *life) find(id string) *record.Record {
	i := slices.IndexFunc(l.records, func(r record.Record) bool { return r.ID == id })
	if i < 0 {
		return nil
	}
	return &l.records[i]
}

// forget takes a record out of the chain in which it stands, and out of everything.
func (l *life) forget(id string) {
	gone := *l.find(id)
	if old, by := l.find(gone.Supersedes), l.find(gone.SupersededBy); old != nil && old.SupersededBy == id {
		if by != nil && by.Supersedes == id {
			old.SupersededBy, by.Supersedes = by.ID, old.ID
		} else {
			old.SupersededBy, old.SupersededTime = "", time.Time{}
		}
	}
	l.records = slices.DeleteFunc(l.records, func(r record.Record) bool { return r.ID == id })
	delete(l.versions, id)
}

func expired(r record.Record, now time.Time) bool {
	return !r.ExpireTime.IsZero() && !r.ExpireTime.After(now)
}

// mayHit reports whether a query may find the record.
func mayHit(r record.Record, now time.Time) bool {
	return !expired(r, now) && r.SupersededBy == "" && !r.Archived
}

// sharing counts the records that share a word with a query and may be hits.
func (l *life) sharing(query string, match func(record.Record) bool, now time.Time) (n int) {
	asked := make(map[string]bool)
	for term := range l.analyzer.Terms(query) {
		asked[term] = true
	}
	for _, r := range l.records {
		shares := false
		for _, text := range []string{r.Text, r.Author} {
			for term := range l.analyzer.Terms(text) {
				shares = shares || asked[term]
			}
		}
		if shares && match(r) && mayHit(r, now) {
			n++
		}
	}
	return n
}

// liver makes random moves on the store and on the model.
type liver struct {
	player
	life *life
}

// draft makes a record up.
func (p *liver) draft() record.Record {
	r := record.Record{
		Text:     p.words(1 + p.rng.IntN(12)),
		Metadata: json.RawMessage(fmt.Sprintf(`{"n":%d}`, p.rng.IntN(4))),
	}
	if p.rng.IntN(2) == 0 {
		r.Tags = []string{fmt.Sprint("t", p.rng.IntN(3))}
	}
	if p.rng.IntN(3) == 0 {
		r.Author = []string{"Ann", "Bob Banana"}[p.rng.IntN(2)]
	}
	if p.rng.IntN(6) == 0 {
		r.TTL = time.Duration(1+p.rng.IntN(100)) * time.Second
	}
	if p.rng.IntN(3) == 0 {
		r.SessionID = fmt.Sprint("s", p.rng.IntN(3))
	}
	return r
}

func (p *liver) save(t *testing.T) {
	r := p.draft()
	if old := p.any(); old != nil && p.rng.IntN(4) == 0 {
		r.Supersedes = old.ID
	}
	saved, err := p.Save(t.Context(), agent, r, "")
	if err != nil {
		// The one that it would have replaced is gone or replaced already.
		r.Supersedes = ""
		saved = p.MustSave(t, r)
	}
	p.note(saved)
}

// any returns one of the records, expired or not; nil when there is none.
func (p *liver) any() *record.Record {
	if len(p.life.records) == 0 {
		return nil
	}
	return &p.life.records[p.rng.IntN(len(p.life.records))]
}

// note takes a saved record into the model.
func (p *liver) note(saved record.Record) {
	if old := p.life.find(saved.Supersedes); old != nil {
		old.SupersededBy, old.SupersededTime = saved.ID, p.clock.Now()
	}
	p.life.records = append(p.life.records, saved)
}

func (p *liver) batch(t *testing.T) {
	drafts := make([]record.Record, 1+p.rng.IntN(12))
	number := p.rng.Uint32()
	for i := range drafts {
		drafts[i] = p.draft()
		drafts[i].ID = fmt.Sprintf("batch %d %d", number, i)
		if i > 0 && p.rng.IntN(4) == 0 {
			drafts[i].Supersedes = drafts[i-1].ID
		}
	}
	saved, err := p.SaveBatch(t.Context(), agent, drafts, "")
	if err != nil {
		t.Fatalf("batch: %v", err)
	}
	for _, r := range saved {
		p.note(r)
	}
}

func (p *liver) update(t *testing.T) {
	r := p.any()
	if r == nil {
		return
	}
	u := memory.Update{ID: r.ID, ExpectedVersion: r.Version, Values: p.draft()}
	u.Values.Archived = p.rng.IntN(8) == 0
	for u.Fields == 0 {
		u.Fields = memory.Fields(p.rng.Uint32()) & (memory.TextField | memory.TagsField | memory.AuthorField |
			memory.MetadataField | memory.SessionField | memory.ExpiryField | memory.ArchivedField)
	}
	before := *r
	updated, err := p.Update(t.Context(), agent, u, "")
	switch {
	case expired(before, p.clock.Now()) && errors.Is(err, memory.ErrNotFound):
		return
	case expired(before, p.clock.Now()) || err != nil:
		t.Fatalf("update %+v: %v", u, err)
	}
	*r = updated
	p.life.versions[r.ID] = append([]record.Record{before}, p.life.versions[r.ID]...)
}

func (p *liver) delete(t *testing.T) {
	r := p.any()
	if r == nil {
		return
	}
	id, gone := r.ID, expired(*r, p.clock.Now())
	_, err := p.Delete(t.Context(), agent, memory.Deletion{ID: id}, "")
	switch {
	case gone && errors.Is(err, memory.ErrNotFound):
	case gone || err != nil:
		t.Fatalf("delete: %v", err)
	default:
		p.life.forget(id)
	}
}

func (p *liver) sweep(t *testing.T) {
	swept := 0
	due := slices.Clone(p.life.records)
	slices.SortFunc(due, func(a, b record.Record) int { // in the order in which they expired
		return cmp.Or(a.ExpireTime.Compare(b.ExpireTime), cmp.Compare(a.ID, b.ID))
	})
	for _, r := range due {
		if expired(r, p.clock.Now()) {
			p.life.forget(r.ID)
			swept++
		}
	}
	if n := p.MustSweep(t); n != swept {
		t.Fatalf("%d swept, want %d", n, swept)
	}
}

// restoring returns the records that a reader takes away, in the order in which they expired:
// those that have, and had replaced another that is there.
func restoring(records []record.Record, now time.Time) (ids []string) {
	due := slices.DeleteFunc(slices.Clone(records), func(r record.Record) bool { return !expired(r, now) })
	slices.SortFunc(due, func(a, b record.Record) int {
		return cmp.Or(a.ExpireTime.Compare(b.ExpireTime), cmp.Compare(a.ID, b.ID))
	})
	for _, r := range due {
		if slices.ContainsFunc(records, func(old record.Record) bool { return old.ID == r.Supersedes && old.SupersededBy == r.ID }) {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// read has a reader come upon what is to be restored.
func (p *liver) read(t *testing.T) {
	p.MustList(t, memory.Listing{})
	for _, id := range restoring(p.life.records, p.clock.Now()) {
		p.life.forget(id)
	}
}

// meaning is a filter and what it means.
type meaning struct {
	filter string
	match  func(record.Record) bool
}

func (p *liver) filter() meaning {
	tag, number := fmt.Sprint("t", p.rng.IntN(4)), p.rng.IntN(5)
	tagged := func(r record.Record) bool { return slices.Contains(r.Tags, tag) }
	numbered := func(r record.Record) bool { return string(r.Metadata) == fmt.Sprintf(`{"n":%d}`, number) }
	filters := []meaning{
		{"", func(record.Record) bool { return true }},
		{"tags:" + tag, tagged},
		{fmt.Sprintf("metadata.n = %d", number), numbered},
		{fmt.Sprintf("tags:%s AND metadata.n = %d", tag, number), func(r record.Record) bool { return tagged(r) && numbered(r) }},
		{fmt.Sprintf("tags:%s OR NOT metadata.n = %d", tag, number), func(r record.Record) bool { return tagged(r) || !numbered(r) }},
		{`author = "Ann"`, func(r record.Record) bool { return r.Author == "Ann" }},
	}
	return filters[p.rng.IntN(len(filters))]
}

func (p *liver) query(t *testing.T) {
	p.read(t)
	text, f, limit := p.words(1+p.rng.IntN(5)), p.filter(), 1+p.rng.IntN(20)
	want := min(limit, p.life.sharing(text, f.match, p.clock.Now()))
	got := p.MustQuery(t, question.Question{Text: text, Filter: f.filter, Limit: limit})
	if got.Receipt.Records != int64(len(p.life.records)) {
		t.Fatalf("query %q: %d records, receipt %+v", text, len(p.life.records), got.Receipt)
	}
	if len(got.Hits)+got.Receipt.UnderMinScore < want {
		t.Fatalf("query %q filter %q: %d hits, want %d, receipt %+v", text, f.filter, len(got.Hits), want, got.Receipt)
	}
	for i, hit := range got.Hits {
		stored := p.life.find(hit.Record.ID)
		if stored == nil || !f.match(*stored) || !mayHit(*stored, p.clock.Now()) {
			t.Fatalf("query %q filter %q: hit %+v, stored %+v", text, f.filter, hit.Record, stored)
		}
		mustEqual(t, "hit", *stored, hit.Record)
		if i > 0 && hit.Score > got.Hits[i-1].Score {
			t.Fatalf("query %q: hit %d scores more than the one before", text, i)
		}
	}
}

// compare compares everything that can be read.
func (p *liver) compare(t *testing.T) {
	p.read(t)
	p.MustCheck(t, agent)
	var versions int64
	for _, r := range p.life.records {
		versions += int64(len(p.life.versions[r.ID]))
		got, err := p.Get(t.Context(), agent, r.ID)
		if expired(r, p.clock.Now()) {
			if !errors.Is(err, memory.ErrNotFound) {
				t.Fatalf("get an expired record: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("get: %v", err)
		}
		mustEqual(t, "record", r, got)
		mustEqual(t, "versions", p.life.versions[r.ID], p.MustVersions(t, r.ID), cmpopts.EquateEmpty())
	}
	stats, err := p.Stats(t.Context(), agent)
	if err != nil || stats.Records != int64(len(p.life.records)) || stats.Versions != versions {
		t.Fatalf("%d records, %d versions, stats %+v, %v", len(p.life.records), versions, stats, err)
	}
	f := p.filter()
	var want []string
	for _, r := range p.life.records {
		if f.match(r) && !expired(r, p.clock.Now()) {
			want = append(want, r.ID)
		}
	}
	got, _ := p.MustList(t, memory.Listing{Filter: f.filter, PageSize: 1 + p.rng.IntN(30)})
	mustEqual(t, "list "+f.filter, want, got)
}

func testLifeAgreesWithModel(t *testing.T, r *rig) {
	seed := chance.Seed(t)
	p := &liver{
		player: player{rig: r, rng: rand.New(rand.NewPCG(seed, 0))},
		life:   &life{analyzer: analysis.New(nil), versions: make(map[string][]record.Record)},
	}
	moves := []struct {
		weight int
		do     func(*testing.T)
	}{
		{1, func(*testing.T) { p.Reopen() }},
		{1, func(*testing.T) { p.clock.Set(p.clock.Now().Add(time.Duration(p.rng.IntN(20)) * time.Second)) }},
		{1, func(t *testing.T) { p.MustPack(t) }},
		{1, p.sweep},
		{1, p.batch},
		{2, p.delete},
		{4, p.update},
		{6, p.query},
		{8, p.save},
	}
	total := 0
	for _, move := range moves {
		total += move.weight
	}
	for step := range 500 {
		n := p.rng.IntN(total)
		for _, move := range moves {
			if n -= move.weight; n < 0 {
				move.do(t)
				break
			}
		}
		if step%50 == 49 {
			p.compare(t)
		}
		if t.Failed() {
			t.Fatalf("step %d", step)
		}
	}
}
