package compose_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/server/compose"
)

// mortal is an engine whose commits fail once it is dead, as those of a process that
// was killed are never made.
type mortal struct {
	kv.Engine
	left int // commits until its death; negative: it is dead, 0: it lives on
}

func (m *mortal) Commit(ctx context.Context, c kv.Commit) error {
	if m.left < 0 {
		return kv.ErrFull
	}
	if m.left > 0 {
		if m.left--; m.left == 0 {
			m.left = -1
			return kv.ErrFull
		}
	}
	return m.Engine.Commit(ctx, c)
}

// lives is a domain with a model of who needs which blob.
type lives struct {
	*clocked
	*rand.Rand
	mortal   *mortal
	reopen   func(tb testing.TB)
	blobs    []blob.Entry
	gone     map[string]bool      // home paths of blobs that may have been collected
	records  map[string]string    // what each record says, by scope and id
	expires  map[string]time.Time // of records that do
	sessions map[string]*spoken
	folds    int
}

// spoken is a session.
type spoken struct {
	texts []string
	last  time.Time
	ended bool
}

var eva = kv.Scope{Tenant: tenant, Kind: kv.OwnerUser, Owner: "eva"}

func newLives(tb testing.TB, seed uint64) *lives {
	tb.Helper()
	l := &lives{
		clocked: &clocked{now: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)}, Rand: rand.New(rand.NewPCG(seed, 11)),
		mortal: &mortal{Engine: memkv.New(nil)}, gone: make(map[string]bool), records: make(map[string]string),
		expires: make(map[string]time.Time), sessions: make(map[string]*spoken),
	}
	l.engine = l.mortal
	root, err := os.OpenRoot(tb.TempDir())
	must(tb, err)
	l.reopen = func(tb testing.TB) {
		tb.Helper()
		if l.Domain != nil {
			_ = l.Close() // it is dead
		}
		l.mortal.left = 0
		l.Domain, err = compose.Open(l.engine, folder{root}, &compose.Options{Now: func() time.Time { return l.now }, Blobs: blob.Options{CollectEvery: -1}})
		must(tb, err)
	}
	l.reopen(tb)
	tb.Cleanup(func() {
		_ = l.Close() // the test is over
		root.Close()
	})
	return l
}

func (l *lives) session(id string) *spoken {
	if l.sessions[id] == nil {
		l.sessions[id] = &spoken{}
	}
	return l.sessions[id]
}

func (l *lives) isOpen(s *spoken) bool {
	return !s.ended && !s.last.IsZero() && l.now.Sub(s.last) < session.DefaultEndAfter
}

// name is a way to name one of the blobs that are there, in a text.
func (l *lives) name() string {
	for range 20 {
		if len(l.blobs) == 0 {
			break
		}
		e := l.blobs[l.IntN(len(l.blobs))]
		if l.gone[e.Home()] {
			continue
		}
		names := append([]string{e.Path, e.Ref[:12], e.Ref, e.StepID}, e.Aliases...)
		return fmt.Sprintf("see %s, please %d", names[l.IntN(len(names))], l.Uint64())
	}
	return "nothing"
}

// needed reports whether a blob is referred to.
func (l *lives) needed(e blob.Entry) bool {
	if s := l.sessions[e.SessionID]; s != nil && l.isOpen(s) {
		return true
	}
	names := append([]string{e.Path, e.Ref[:12], e.StepID + ","}, e.Aliases...)
	in := func(text string) bool {
		for _, name := range names {
			if strings.Contains(text, name) {
				return true
			}
		}
		return false
	}
	for id, text := range l.records {
		if expires := l.expires[id]; in(text) && (expires.IsZero() || expires.After(l.now)) {
			return true
		}
	}
	for _, s := range l.sessions {
		for _, text := range s.texts {
			if l.isOpen(s) && in(text) {
				return true
			}
		}
	}
	return false
}

// act does something; an error other than the engine's death is the test's.
func (l *lives) act(t *testing.T) error {
	id := fmt.Sprint("s", l.IntN(4))
	s := l.session(id)
	scope := []kv.Scope{researcher, eva}[l.IntN(2)]
	recordID := fmt.Sprint("r", l.IntN(12))
	key := scope.String() + "/" + recordID
	text := l.name()
	switch l.IntN(14) {
	case 0, 1, 2:
		e, err := l.record(t, id, fmt.Sprint(l.Uint64()))
		if err != nil {
			return err
		}
		l.blobs = append(l.blobs, e)
		s.last, s.ended = l.now, false
		return nil
	case 3:
		_, err := l.Log.AppendMessages(t.Context(), researcher, id, []session.Message{{Role: session.User, Content: text}}, "")
		if err == nil {
			s.texts, s.last, s.ended = append(s.texts, text), l.now, false
		}
		return err
	case 4:
		_, err := l.Log.AddTask(t.Context(), researcher, session.Task{Action: "x", SessionID: id, Result: text})
		if err == nil {
			s.texts, s.ended = append(s.texts, text), false
		}
		return err
	case 5:
		return l.fold(t, text)
	case 6:
		_, err := l.Log.End(t.Context(), researcher, id)
		s.ended = s.ended || err == nil
		return err
	case 7, 8:
		r := record.Record{ID: recordID, Text: text}
		if l.IntN(3) == 0 {
			r.ExpireTime = l.now.Add(time.Duration(1+l.IntN(48)) * time.Hour)
		}
		_, err := l.Memory.Save(t.Context(), scope, r, "")
		var exists *memory.ExistsError
		if errors.As(err, &exists) {
			return nil
		}
		if err == nil {
			l.records[key], l.expires[key] = text, r.ExpireTime
		}
		return err
	case 9:
		_, err := l.Memory.Update(t.Context(), scope, memory.Update{ID: recordID, Fields: memory.TextField, Values: record.Record{Text: text}}, "")
		var missing *memory.NotFoundError
		if errors.As(err, &missing) {
			return nil
		}
		if err == nil {
			l.records[key] = text
		}
		return err
	case 10:
		_, err := l.Memory.Delete(t.Context(), scope, memory.Deletion{ID: recordID}, "")
		var missing *memory.NotFoundError
		if errors.As(err, &missing) {
			return nil
		}
		if err == nil {
			delete(l.records, key)
			delete(l.expires, key)
		}
		return err
	case 11:
		return l.promote(t)
	case 12:
		l.now = l.now.Add(time.Duration(l.IntN(40)) * time.Hour)
		_, err := l.Memory.Sweep(t.Context())
		return err
	}
	// A record that has expired refers to blobs until it is off the disk.
	if _, err := l.Memory.Sweep(t.Context()); err != nil {
		return err
	}
	_, err := l.Blobs.Collect(t.Context(), researcher, nil)
	if err == nil {
		l.checkGone(t)
	}
	return err
}

// fold names something in a fold of a session of its own, which may be undone.
func (l *lives) fold(t *testing.T, text string) error {
	l.folds++
	id := fmt.Sprint("folded-", l.folds)
	if _, err := l.Log.AppendMessages(t.Context(), researcher, id, []session.Message{{Role: session.User, Content: "x"}}, ""); err != nil {
		return err
	}
	l.session(id).last = l.now
	err := l.Log.AppendFolds(t.Context(), researcher, id, 0, []history.Fold{{
		Policy: history.PolicyLedger, Batch: 1, Level: history.LevelLines, Spans: []history.Span{{First: 1, Last: 1}}, Text: text, Through: 1, Seen: 1,
	}})
	if err != nil {
		return err
	}
	l.session(id).texts = []string{text}
	if l.IntN(2) == 0 {
		_, err = l.Log.Undo(t.Context(), researcher, id, 1, "")
	}
	return err
}

func (l *lives) promote(t *testing.T) error {
	if len(l.blobs) == 0 {
		return nil
	}
	i := l.IntN(len(l.blobs))
	e, err := l.Blobs.Promote(t.Context(), researcher, l.blobs[i].Path, blob.Promotion{Tier: blob.ShortTerm, Name: fmt.Sprint("näme ", i, ".txt")})
	if err == nil {
		l.blobs[i] = e
		return nil
	}
	if errors.Is(err, kv.ErrFull) {
		return err
	}
	return nil // it has gone, or has had too many paths
}

// check checks that whatever is needed is there.
func (l *lives) check(t *testing.T) {
	t.Helper()
	for _, e := range l.blobs {
		if l.gone[e.Home()] {
			continue
		}
		_, err := l.Blobs.Lookup(t.Context(), researcher, e.Path)
		switch {
		case errors.Is(err, blob.ErrCollected):
			if l.needed(e) {
				t.Fatalf("%s (%s, %s) of session %s is needed and was collected", e.Path, e.StepID, e.Ref[:12], e.SessionID)
			}
			l.gone[e.Home()] = true
		case err != nil:
			t.Fatal(err)
		}
	}
}

// checkGone checks that what nobody needs has gone.
func (l *lives) checkGone(t *testing.T) {
	t.Helper()
	for _, e := range l.blobs {
		now, err := l.Blobs.Lookup(t.Context(), researcher, e.Path)
		if err == nil && now.Expired && !l.needed(e) {
			t.Fatalf("%s has expired and stays, though nobody needs it", e.Path)
		}
	}
}

// Whatever is saved, changed, deleted, undone and collected in whatever order, and
// whenever the process is killed meanwhile: a blob that is referred to stays, and one
// that nobody refers to goes.
func TestReferencesAgainstAModel(t *testing.T) {
	for range 2 {
		seed := chance.Seed(t)
		l := newLives(t, seed)
		kills := 0
		for range 400 {
			if l.IntN(8) == 0 {
				l.mortal.left = 1 + l.IntN(4)
			}
			err := l.act(t)
			if err != nil && !errors.Is(err, kv.ErrFull) {
				t.Fatal(err)
			}
			if l.mortal.left < 0 {
				kills++
				l.reopen(t)
			}
			l.mortal.left = 0
			l.check(t)
		}
		if kills == 0 || len(l.gone) == 0 || len(l.gone) == len(l.blobs) {
			t.Errorf("%d kills, %d of %d blobs went", kills, len(l.gone), len(l.blobs))
		}
	}
}
