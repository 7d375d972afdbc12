package past_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
	"github.com/loom-bridge/loom-bridge/memory/lexical/selection"
	"github.com/loom-bridge/loom-bridge/memory/past"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

var scope = kv.Scope{Tenant: "t", Kind: kv.OwnerAgent, Owner: "a"}

func at(second int) time.Time { return time.Unix(int64(second), 0) }

// memory is one in which records change and replace each other. All versions are
// remembered here, as many as kept can be read.
type memory struct {
	engine   *memkv.DB
	writer   *kv.Writer
	index    *lexical.Index
	versions map[string][]record.Record
	kept     int
	ordinals int
}

func newMemory(t *testing.T, kept int) *memory {
	t.Helper()
	m := &memory{engine: memkv.New(nil), index: lexical.New(&lexical.Options{Analysis: "words"}), versions: map[string][]record.Record{}, kept: kept}
	m.writer = kv.NewWriter(m.engine, nil)
	t.Cleanup(func() {
		if err := errors.Join(m.writer.Close(), m.engine.Close()); err != nil {
			t.Error(err)
		}
	})
	return m
}

func describe(r record.Record) ([]byte, error) {
	d := segment.NewDocument(r.ID)
	d.AddBody(slices.Values(strings.Fields(r.Text)))
	if !r.ValidUntil.IsZero() {
		d.AddValue(segment.ValidUntil, past.UntilValue(r.ValidUntil))
	}
	f := segment.Facts{Create: r.CreateTime.UnixMicro(), Tier: 4, Place: r.Document.Place}
	if !r.EventTime.IsZero() {
		f.Event = r.EventTime.UnixMicro()
	}
	if r.Document.Marked {
		f.Superseded = r.SupersededTime.UnixMicro()
	}
	d.SetFacts(f)
	return d.Encode(), nil
}

func (m *memory) now(id string) record.Record { return m.versions[id][len(m.versions[id])-1] }

// save stores what a record is now: anew, or in the place of its last version.
func (m *memory) save(t *testing.T, r record.Record) {
	t.Helper()
	m.ordinals++
	change := lexical.Change{}
	all := m.versions[r.ID]
	if len(all) > 0 {
		old := all[len(all)-1].Document
		change.Delete = []uint32{old.Ordinal}
		r.Document.Place = max(old.Place, all[0].Document.Ordinal)
	}
	r.Document.Ordinal, r.Document.Marked = uint32(m.ordinals), r.SupersededBy != ""
	encoded, err := describe(r)
	if err != nil {
		t.Fatal(err)
	}
	change.Add = []lexical.Added{{Encoded: encoded}}
	m.versions[r.ID] = append(all, r)
	refs := []kv.Ref{{Keyspace: kv.Records, Scope: scope}, lexical.Ref(scope)}
	err = m.writer.Do(t.Context(), kv.Request{Refs: refs, Stage: func(ctx context.Context, tx *kv.Tx) error {
		tx.Put(kv.Records, record.Key(scope, r.ID), record.Encode(r))
		_, _, err := m.index.Apply(ctx, tx, scope, change)
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// grow lets a memory live from second 1 to the end: records are saved, change, and replace
// each other.
func (m *memory) grow(t *testing.T, random *rand.Rand, end int) {
	t.Helper()
	for second := 1; second < end; second++ {
		ids := slices.Sorted(maps.Keys(m.versions))
		r := record.Record{ID: fmt.Sprintf("r%03d", second), Version: 1, CreateTime: at(second), Tier: 4}
		if len(ids) > 0 && random.IntN(3) == 0 {
			r = m.now(ids[random.IntN(len(ids))])
			r.Version, r.UpdateTime = r.Version+1, at(second)
		}
		r.Text = fmt.Sprintf("%s of %d", r.ID, r.Version)
		r.EventTime, r.ValidUntil = time.Time{}, time.Time{}
		if random.IntN(3) == 0 {
			r.EventTime = at(1 + random.IntN(end))
		}
		if random.IntN(4) == 0 {
			r.ValidUntil = at(1 + random.IntN(end))
		}
		m.save(t, r)
		if random.IntN(4) > 0 || len(ids) == 0 || r.Version > 1 {
			continue
		}
		// What is replaced is written again, with the same version and time of its change.
		if old := m.now(ids[random.IntN(len(ids))]); old.SupersededBy == "" && old.ID != r.ID {
			old.SupersededBy, old.SupersededTime = r.ID, at(second)
			m.save(t, old)
		}
	}
}

// version is what a record was, as a store reads it.
func (m *memory) version(_ context.Context, now record.Record, moment time.Time) (record.Record, int, bool, error) {
	all := m.versions[now.ID]
	for i := len(all) - 1; i >= 0; i-- {
		if !changed(all[i]).After(moment) {
			return all[i], 10, now.Version-all[i].Version <= int64(m.kept), nil
		}
	}
	return record.Record{}, 10, false, nil
}

func changed(r record.Record) time.Time {
	if r.UpdateTime.IsZero() {
		return r.CreateTime
	}
	return r.UpdateTime
}

func start(r record.Record) time.Time {
	if r.EventTime.IsZero() {
		return r.CreateTime
	}
	return r.EventTime
}

// known is what the memory knew of a record, and whether it is kept.
func (m *memory) known(id string, moment past.Moment) (r record.Record, kept bool) {
	now := m.now(id)
	if r = now; !moment.AsOf.IsZero() && changed(now).After(moment.AsOf) {
		r, _, kept, _ = m.version(context.Background(), now, moment.AsOf)
		if !kept {
			return r, false
		}
	}
	r.SupersededBy, r.SupersededTime = now.SupersededBy, now.SupersededTime
	if !moment.AsOf.IsZero() && now.SupersededTime.After(moment.AsOf) {
		r.SupersededBy = ""
	}
	return r, true
}

// counted are the versions that counted at a moment, by the words of [past.Moment].
func (m *memory) counted(moment past.Moment, replaced bool) (all []string, lost int) {
	for id := range m.versions {
		if !moment.AsOf.IsZero() && m.versions[id][0].CreateTime.After(moment.AsOf) {
			continue
		}
		r, kept := m.known(id, moment)
		if !kept {
			lost++
			continue
		}
		counts := replaced || r.SupersededBy == ""
		if v := moment.ValidAt; !v.IsZero() {
			if r.SupersededBy != "" {
				by, kept := m.known(r.SupersededBy, moment)
				if !kept {
					by = m.now(r.SupersededBy)
				}
				counts = start(by).After(v)
			}
			counts = counts && !start(r).After(v) && (r.ValidUntil.IsZero() || r.ValidUntil.After(v))
		}
		if counts {
			all = append(all, r.Text)
		}
	}
	slices.Sort(all)
	return all, lost
}

var everything = selection.Options{Now: 1, Tiers: 1<<4 - 1, Archived: true, Superseded: true, Quarantined: true}

// looked are the versions that a search would see.
func (m *memory) looked(t *testing.T, moment past.Moment, replaced bool) ([]string, past.Found) {
	t.Helper()
	reader, err := m.index.Open(t.Context(), m.engine, scope)
	if err != nil {
		t.Fatal(err)
	}
	found, err := moment.Find(t.Context(), past.Present{View: m.engine, Scope: scope, Reader: reader, Version: m.version, Replaced: replaced})
	if err != nil {
		t.Fatal(err)
	}
	options := everything
	options.Superseded = !moment.IsNow() || replaced
	selected, err := selection.Select(t.Context(), reader, selection.And(moment.Condition(), selection.Not(selection.Only(found.Except...))), options)
	if err != nil {
		t.Fatal(err)
	}
	byOrdinal := map[uint32]string{}
	for id := range m.versions {
		byOrdinal[m.now(id).Document.Ordinal] = m.now(id).Text
	}
	var all []string
	for ordinal := range selected.All() {
		all = append(all, byOrdinal[ordinal])
	}
	then, err := past.NewIndex(t.Context(), scope, "words", found.Versions, describe)
	if err != nil {
		t.Fatal(err)
	}
	defer then.Close()
	if len(found.Versions) > 0 {
		all = append(all, m.lookedThen(t, then, moment)...)
	}
	slices.Sort(all)
	return all, found
}

// lookedThen are the versions that the index of them finds, each by its own words.
func (m *memory) lookedThen(t *testing.T, then *past.Index, moment past.Moment) (all []string) {
	t.Helper()
	reader, err := then.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	selected, err := selection.Select(t.Context(), reader, moment.Condition(), everything)
	if err != nil {
		t.Fatal(err)
	}
	for ordinal := range selected.All() {
		v := then.Version(ordinal)
		all = append(all, v.Text)
		if first := m.versions[v.ID][0].Document.Ordinal; v.Place != first {
			t.Errorf("%s has place %d, its first version %d", v.ID, v.Place, first)
		}
		stored, ok, err := record.Read(t.Context(), then.View(), scope, v.ID)
		if err != nil || !ok || stored.Text != v.Text {
			t.Errorf("%s reads %q, %v, %v", v.ID, stored.Text, ok, err)
		}
		ids, err := reader.IDs(t.Context(), []uint32{ordinal})
		if err != nil || ids[0] != v.ID {
			t.Errorf("document %d is of %v, %v, and stands for %s", ordinal, ids, err, v.ID)
		}
	}
	return all
}

// TestMoments: what is found for a moment is what the versions say that counted then.
func TestMoments(t *testing.T) {
	t.Parallel()
	const end = 60
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 1))
		m := newMemory(t, []int{1, 100}[seed%2])
		m.grow(t, random, end)
		for range 60 {
			var moment past.Moment
			if random.IntN(3) > 0 {
				moment.AsOf = at(random.IntN(end + 1))
			}
			if random.IntN(3) > 0 {
				moment.ValidAt = at(random.IntN(end + 1))
			}
			replaced := random.IntN(2) == 0
			want, lost := m.counted(moment, replaced)
			got, found := m.looked(t, moment, replaced)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, %+v, with what was replaced %v:\n%q\nwant\n%q", seed, moment, replaced, got, want)
			}
			if !moment.IsNow() && found.Lost != lost {
				t.Errorf("seed %d, %+v: %d are lost, want %d", seed, moment, found.Lost, lost)
			}
		}
	}
}

// TestNothingChanged: a moment since which nothing changed reads nothing again.
func TestNothingChanged(t *testing.T) {
	t.Parallel()
	m := newMemory(t, 1)
	for second := 1; second < 20; second++ {
		m.save(t, record.Record{ID: fmt.Sprint(second), Text: "x", Version: 1, CreateTime: at(second)})
	}
	for _, moment := range []past.Moment{{}, {AsOf: at(10)}, {AsOf: at(30)}, {ValidAt: at(10)}, {AsOf: at(5), ValidAt: at(5)}} {
		if _, found := m.looked(t, moment, false); found.Reread > 0 || len(found.Except)+len(found.Versions) > 0 {
			t.Errorf("%+v: %+v", moment, found)
		}
	}
}

// TestTooMuch: the work is bounded by bytes, and the answer names the field.
func TestTooMuch(t *testing.T) {
	t.Parallel()
	m := newMemory(t, 100)
	for _, version := range []int64{1, 2} {
		m.save(t, record.Record{ID: "r", Text: "x", Version: version, CreateTime: at(1), UpdateTime: at(int(version))})
	}
	reader, err := m.index.Open(t.Context(), m.engine, scope)
	if err != nil {
		t.Fatal(err)
	}
	large := func(ctx context.Context, now record.Record, moment time.Time) (record.Record, int, bool, error) {
		r, _, ok, err := m.version(ctx, now, moment)
		return r, 65 << 20, ok, err
	}
	from := past.Present{View: m.engine, Scope: scope, Reader: reader, Version: large}
	_, err = past.Moment{AsOf: at(1)}.Find(t.Context(), from)
	var refused *invalid.Error
	if !errors.As(err, &refused) || refused.Field != "as_of" || !errors.Is(err, record.ErrInvalid) {
		t.Error(err)
	}
	broken := errors.New("broken")
	from.Version = func(context.Context, record.Record, time.Time) (record.Record, int, bool, error) {
		return record.Record{}, 0, false, broken
	}
	if _, err = (past.Moment{AsOf: at(1)}).Find(t.Context(), from); !errors.Is(err, broken) {
		t.Error(err)
	}
	if _, err := past.NewIndex(t.Context(), scope, "words", []past.Version{{Place: 1}}, func(record.Record) ([]byte, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// TestManyVersions: an index of versions takes several commits, and every document stands
// for its own.
func TestManyVersions(t *testing.T) {
	t.Parallel()
	m := newMemory(t, 1)
	var all []past.Version
	for i := range 700 {
		r := record.Record{ID: fmt.Sprintf("r%04d", i), Text: strings.Repeat("x", 1+i%7*1000), Version: 1, CreateTime: at(1), Tier: 4}
		r.Document.Ordinal = uint32(i + 1)
		m.versions[r.ID] = []record.Record{r}
		all = append(all, past.Version{Record: r, Place: uint32(i + 1)})
	}
	then, err := past.NewIndex(t.Context(), scope, "words", all, describe)
	if err != nil {
		t.Fatal(err)
	}
	defer then.Close()
	if got := m.lookedThen(t, then, past.Moment{}); len(got) != len(all) {
		t.Errorf("%d of %d versions are found", len(got), len(all))
	}
}

func FuzzUntilValue(f *testing.F) {
	f.Add(int64(0), int64(-1))
	f.Add(int64(-1<<63), int64(1<<63-1))
	f.Fuzz(func(t *testing.T, a, b int64) {
		x, y := past.UntilValue(time.UnixMicro(a)), past.UntilValue(time.UnixMicro(b))
		if (x < y) != (a < b) || (x == y) != (a == b) || len(x) != 8 {
			t.Errorf("%d and %d are %x and %x", a, b, x, y)
		}
	})
}
