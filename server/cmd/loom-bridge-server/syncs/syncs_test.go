package syncs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// errCut is the end of a process, or of a connection, before a change or behind it.
var errCut = errors.New("cut")

// world is what users have written in two stores: who has seen which text when they wrote another.
type world struct {
	random *rand.Rand
	// open are the texts that nobody has changed or deleted who saw them: none may be lost.
	open  map[string]bool
	texts int
	clock time.Time
	// cuts is how many cuts are left, quiet has none, and no writes in the middle of a round.
	cuts  int
	quiet bool
}

// store is one of two memories.
type store struct {
	called  string
	world   *world
	skew    time.Duration
	records map[string]record.Record
	log     []string // the ids, as they were changed
	begun   int      // of the log: the positions before are gone
}

func (s *store) name() string { return s.called }

func (s *store) put(r record.Record) {
	s.records[r.ID] = r
	s.log = append(s.log, r.ID)
}

// user changes something, as somebody who sees this store alone.
func (s *store) user() {
	w := s.world
	w.clock = w.clock.Add(time.Duration(w.random.IntN(3)) * time.Second)
	w.texts++
	text, at := fmt.Sprintf("text %d", w.texts), w.clock.Add(s.skew)
	ids := make([]string, 0, len(s.records))
	for id := range s.records {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	kind := w.random.IntN(10)
	if kind < 4 || len(ids) == 0 {
		r := record.Record{ID: fmt.Sprintf("%s-%d", s.called, w.texts), Text: text, Kind: "fact", Origin: record.OriginAgent, Tier: 4, Version: 1, CreateTime: at}
		if kind == 0 {
			r.ID = fmt.Sprintf("shared-%d", w.random.IntN(5))
		}
		if _, ok := s.records[r.ID]; !ok {
			if kind == 1 {
				r.Key = fmt.Sprintf("key-%d", w.random.IntN(5))
			}
			if s.holder(r.Key) == "" {
				s.put(r)
				w.open[text] = true
				return
			}
		}
	}
	if len(ids) == 0 {
		return
	}
	r := s.records[ids[w.random.IntN(len(ids))]]
	delete(w.open, r.Text)
	if kind == 9 {
		s.gone(r)
		return
	}
	r.Text, r.UpdateTime, r.Version = text, at, r.Version+1
	w.open[text] = true
	s.put(r)
}

func (s *store) gone(r record.Record) {
	delete(s.records, r.ID)
	if old, ok := s.records[r.Supersedes]; ok && old.SupersededBy == r.ID {
		old.SupersededBy = ""
		s.put(old)
	}
	s.log = append(s.log, r.ID)
}

func (s *store) holder(key string) string {
	for id, r := range s.records {
		if key != "" && r.Key == key && r.SupersededBy == "" {
			return id
		}
	}
	return ""
}

// fate is called around each change: it may be cut, or others may be faster.
func (s *store) fate(faster bool) error {
	w := s.world
	if w.quiet {
		return nil
	}
	if w.cuts > 0 && w.random.IntN(40) == 0 {
		w.cuts--
		return errCut
	}
	if faster && w.random.IntN(20) == 0 {
		s.user()
	}
	return nil
}

func (s *store) entry(id string) entry {
	r, ok := s.records[id]
	if !ok {
		return entry{id: id}
	}
	return entryOf(r, fmt.Sprint(r.Version, r.Text), false)
}

func (s *store) changes(_ context.Context, after string, most int, _ func(id, hash string) bool) (changes, error) {
	from := 0
	_, _ = fmt.Sscan(after, &from)
	found := changes{whole: after == "" || from < s.begun, at: fmt.Sprint(len(s.log))}
	if found.whole {
		for id := range s.records {
			found.entries = append(found.entries, s.entry(id))
		}
		return found, s.fate(true)
	}
	seen := make(map[string]bool)
	for i := from; i < len(s.log); i++ {
		if most > 0 && len(seen) >= most {
			found.at, found.more = fmt.Sprint(i), true
			break
		}
		if id := s.log[i]; !seen[id] {
			seen[id] = true
			found.entries = append(found.entries, s.entry(id))
		}
	}
	return found, s.fate(true)
}

func (s *store) get(_ context.Context, id string) (entry, error) { return s.entry(id), s.fate(true) }

func (s *store) create(_ context.Context, r record.Record) (entry, error) {
	if err := s.fate(true); err != nil {
		return entry{}, err
	}
	if _, ok := s.records[r.ID]; ok {
		return entry{}, errMoved
	}
	if old, ok := s.records[r.Supersedes]; ok && old.SupersededBy == "" && r.SupersededBy == "" {
		old.SupersededBy = r.ID
		s.put(old)
	}
	if holder := s.holder(r.Key); holder != "" && r.SupersededBy == "" {
		return entry{}, &keyTakenError{s.entry(holder)}
	}
	s.put(r)
	return s.entry(r.ID), s.fate(false)
}

func (s *store) update(_ context.Context, was entry, r record.Record) (entry, error) {
	if err := s.fate(true); err != nil {
		return entry{}, err
	}
	now := s.entry(was.id)
	if now.state == absent || now.mark.Stamp != was.mark.Stamp {
		return entry{}, errMoved
	}
	next := now.record
	next.Text, next.Version, next.UpdateTime = r.Text, next.Version+1, s.world.clock.Add(s.skew)
	s.put(next)
	return s.entry(was.id), s.fate(false)
}

func (s *store) remove(_ context.Context, was entry) error {
	if err := s.fate(true); err != nil {
		return err
	}
	now := s.entry(was.id)
	switch {
	case now.state == absent:
		return nil
	case now.mark.Stamp != was.mark.Stamp:
		return errMoved
	}
	s.gone(now.record)
	return s.fate(false)
}

func (s *store) await(context.Context, string) error { return nil }

// alone lets one change run at a time, so that a game is the same each time.
type alone struct {
	side
	lock *sync.Mutex
}

func (a alone) get(ctx context.Context, id string) (entry, error) {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.side.get(ctx, id)
}

func (a alone) create(ctx context.Context, r record.Record) (entry, error) {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.side.create(ctx, r)
}

func (a alone) update(ctx context.Context, was entry, r record.Record) (entry, error) {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.side.update(ctx, was, r)
}

func (a alone) remove(ctx context.Context, was entry) error {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.side.remove(ctx, was)
}

// Two stores whose clocks differ are written to at random, also in the middle of rounds, which are cut
// before changes and behind them, and whose positions are lost now and then. In the end both have the
// same records, each text that nobody replaced knowingly is there, and each conflict was told
// with the copy that is kept.
func TestTwoStores(t *testing.T) {
	t.Parallel()
	for range 12 {
		play(t, 300, 10)
	}
}

// TestSoakTwoStores is the same with 10,000 changes and 50 cuts.
func TestSoakTwoStores(t *testing.T) {
	t.Parallel()
	if os.Getenv("LOOM_SOAK_ROUNDS") == "" {
		t.Skip("make soak plays it")
	}
	play(t, 10_000, 50)
}

func play(t *testing.T, writes, cuts int) {
	t.Helper()
	random := rand.New(rand.NewPCG(chance.Seed(t), 1))
	w := &world{random: random, open: make(map[string]bool), clock: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), cuts: cuts}
	a := &store{called: "here", world: w, records: make(map[string]record.Record), skew: time.Hour}
	b := &store{called: "there", world: w, records: make(map[string]record.Record)}
	path, told, was := filepath.Join(t.TempDir(), "state"), make(map[string]bool), 0
	var lock sync.Mutex
	attempt := func() error {
		known, err := openState(path, "a, b", false)
		if err != nil {
			t.Fatal(err)
		}
		defer known.close() //nolint:errcheck // a cut
		s := &session{
			here: alone{a, &lock}, there: alone{b, &lock}, state: known, deletions: true, progress: func(int) {}, now: func() time.Time { return w.clock },
			tell: func(t tale) {
				lock.Lock()
				defer lock.Unlock()
				if t.Event == "conflict" {
					told[t.Kept] = true
				}
			},
		}
		return s.run(t.Context())
	}
	for done := 0; done < writes; done += 10 {
		for range 10 {
			[]*store{a, b}[random.IntN(2)].user()
		}
		switch random.IntN(30) {
		case 0:
			a.begun = len(a.log) + 1
		case 1:
			b.begun = len(b.log) + 1
		}
		if err := attempt(); errors.Is(err, errCut) {
			was++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	w.quiet = true
	for range 4 { // what a round brings comes back as a change of its own
		if err := attempt(); err != nil {
			t.Fatal(err)
		}
	}
	there := make(map[string]bool)
	for id, r := range a.records {
		there[r.Text] = true
		if other, ok := b.records[id]; !ok || contentOf(other, false) != contentOf(r, false) {
			t.Errorf("%s is %q here, %q there", id, r.Text, other.Text)
		}
		if strings.HasPrefix(id, "conflict-") && !told[id] {
			t.Errorf("the conflict that %s is of was not told", id)
		}
	}
	if len(a.records) != len(b.records) {
		t.Errorf("%d records here, %d there", len(a.records), len(b.records))
	}
	for text := range w.open {
		if !there[text] {
			t.Errorf("%q is lost", text)
		}
	}
	t.Logf("%d texts, %d cuts, %d records in the end, %d conflicts", w.texts, was, len(a.records), len(told))
}

// A second run beside the first is refused. Half a line, which a kill leaves, is passed over; any other
// damage is an error.
func TestState(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state")
	open := func() (*state, error) { return openState(path, "a, b", false) }
	s, err := open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(); err == nil || !strings.Contains(err.Error(), "another sync") {
		t.Errorf("a second run: %v", err)
	}
	one := &pair{Here: mark{Stamp: "1", Hash: "x"}, There: mark{Stamp: "2", Hash: "y"}}
	for id, pending := range map[string]bool{"one": false, "two": true} {
		if err := s.note(id, one, pending); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.note("one", nil, false), s.reached([2]string{"p", "q"}), s.close()); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		text string
		ok   bool
	}{{string(whole) + `{"id":"th`, true}, {string(whole) + "no line\n", false}, {strings.Replace(string(whole), "a, b", "a, c", 1), false}} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := open()
		if (err == nil) != c.ok {
			t.Errorf("%d: %v", i, err)
		}
		if err != nil {
			continue
		}
		if s.pairs["one"] != nil || *s.pairs["two"] != *one || !s.pending["two"] || s.at != [2]string{"p", "q"} {
			t.Errorf("%d: %+v", i, s)
		}
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}
}
