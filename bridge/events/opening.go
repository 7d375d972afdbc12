package events

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
)

const (
	// maxOpeningTopics bounds the topics of a call with patterns that have Since whose
	// cursors know of what is new at once. With PerSelection no others are brought
	// back; otherwise they have detached cursors.
	maxOpeningTopics = 4096
	// maxOpeningClaims bounds them where several selections want the same topics,
	// each counted for each.
	maxOpeningClaims = maxPendingClaims / 2
)

// opening is a selection of several topics whose past is wanted.
type opening struct {
	sel   *selection
	since time.Time
	// mark stands for the selection in its own index, with its place among the opening
	// ones.
	mark *selection
}

func newOpening(sel *selection, since time.Time) opening {
	return opening{sel: sel, since: since, mark: &selection{pattern: sel.pattern}}
}

// storedPast is a topic whose past selections want.
type storedPast struct {
	topic  *topic // held, unless it is detached
	last   uint64
	claims []claim
	// detached says that the topic's cursor may be one that only the replay knows.
	detached bool
}

// openPast brings back the past of all topics that selections match, and joins them with
// topics that were emitted on meanwhile. Where there are too many, PerSelection gets those
// with the newest events.
func (s *Subscription) openPast(ctx context.Context, all []opening) error {
	// Those who emit without knowing of the selections are to be through, so that
	// the store has their events.
	if err := s.bus.emitting.wait(ctx); err != nil {
		return err
	}
	x := pattern.NewIndex[*selection]()
	for i, o := range all {
		o.mark.place = i
		x.Add(o.sel.pattern, o.mark, uint64(i+1))
	}
	topics, left, err := s.pastTopics(ctx, all, x)
	if err != nil {
		return err
	}
	var found []storedPast
	defer func() {
		for _, r := range found {
			if !r.detached {
				s.bus.release(r.topic)
			}
		}
	}()
	room := maxOpeningClaims
	for i, stored := range topics {
		claims, err := s.bus.pastClaims(ctx, stored, all, x)
		if err != nil {
			return err
		}
		if room -= len(claims); room < 0 && s.perSelection {
			left++
			continue
		}
		r := storedPast{topic: &topic{scope: stored.Scope}, last: stored.Last, claims: claims, detached: true}
		if i < maxOpeningTopics {
			r.topic, r.detached = s.bus.hold(stored.Scope, true), false
		}
		found = append(found, r)
	}
	if err := s.roomForDetached(len(topics) - maxOpeningTopics); err != nil {
		return err
	}
	s.open(all, found, left)
	return nil
}

// roomForDetached returns an error when so many detached cursors would exceed the
// share of the tenant.
func (s *Subscription) roomForDetached(n int) error {
	if n <= 0 {
		return nil
	}
	if err := s.index.queued.Add(int64(n) * detachedBytes); err != nil {
		return fmt.Errorf("events: %d topics with a past: %w", n, err)
	}
	s.index.queued.Sub(int64(n) * detachedBytes)
	return nil
}

// pastTopics returns the stored topics with a past that selections want, those with
// the newest events first, and with PerSelection how many it left out.
func (s *Subscription) pastTopics(ctx context.Context, all []opening, x *pattern.Index[*selection]) (topics []store.Topic, left int, err error) {
	since := slices.MinFunc(all, func(a, b opening) int { return a.since.Compare(b.since) }).since
	cut := func() {
		slices.SortFunc(topics, func(a, b store.Topic) int { return b.LastTime.Compare(a.LastTime) })
		if s.perSelection {
			kept := min(len(topics), maxOpeningTopics)
			left += len(topics) - kept
			topics = topics[:kept]
		}
	}
	var room [4][]*selection
	for _, prefix := range prefixesOf(all) {
		for stored, err := range store.Topics(ctx, s.bus.engine, store.TopicsOf(s.tenant, prefix)) {
			if err != nil {
				return nil, 0, err
			}
			if !stored.MayHaveSince(since) || !s.mayRead(stored.Scope.Owner) || len(x.MatchPatterns(room[:0], stored.Scope.Owner)) == 0 {
				continue
			}
			topics = append(topics, stored)
			switch {
			case s.perSelection && len(topics) == 2*maxOpeningTopics:
				cut()
			case !s.perSelection && len(topics)%maxOpeningTopics == 0:
				if err := s.roomForDetached(len(topics)); err != nil {
					return nil, 0, err
				}
			}
		}
	}
	cut()
	return topics, left, nil
}

// prefixesOf returns what the topics of the selections begin with, without those
// that begin with another.
func prefixesOf(all []opening) []string {
	prefixes := make([]string, len(all))
	for i, o := range all {
		prefixes[i] = o.sel.pattern.Prefix()
	}
	slices.Sort(prefixes)
	kept := prefixes[:1]
	for _, prefix := range prefixes[1:] {
		if !strings.HasPrefix(prefix, kept[len(kept)-1]) {
			kept = append(kept, prefix)
		}
	}
	return kept
}

// pastClaims returns what each selection wants of a stored topic.
func (b *Bus) pastClaims(ctx context.Context, stored store.Topic, all []opening, x *pattern.Index[*selection]) ([]claim, error) {
	var claims []claim
	froms := make(map[time.Time]uint64, 1)
	var room [4][]*selection
	for _, group := range x.MatchPatterns(room[:0], stored.Scope.Owner) {
		for _, mark := range group {
			o := all[mark.place]
			if !stored.MayHaveSince(o.since) {
				continue
			}
			from, known := froms[o.since]
			if !known {
				var err error
				if from, err = store.FirstSince(ctx, b.engine, stored.Scope, stored.Record, o.since); err != nil {
					return nil, err
				}
				froms[o.since] = from
			}
			claims = append(claims, claim{sel: o.sel, from: from, past: &replayClaim{since: o.since, until: stored.Last}})
		}
	}
	return claims, nil
}

// open ends the opening of selections.
func (s *Subscription) open(all []opening, found []storedPast, left int) {
	s.mu.Lock()
	defer s.unlock()
	if s.over != nil {
		return
	}
	s.leftOut += left
	for _, r := range found {
		r.topic.raise(r.last)
		if r.detached && s.staysDetached(r) {
			s.detach(r)
			continue
		}
		for _, cl := range r.claims {
			if cl.sel.gone {
				continue
			}
			if touch, ok := cl.sel.touched[r.topic.scope.Owner]; ok {
				cl.from, cl.past.until = min(cl.from, touch.from), min(cl.past.until, touch.from-1)
			}
			c := s.cursorFor(cl.sel, r.topic)
			c.topic.raise(r.last)
			s.enter(c, cl, true)
		}
	}
	for _, o := range all {
		if o.sel.gone {
			continue
		}
		for _, touch := range o.sel.touched {
			if c := s.cursorFor(o.sel, touch.topic); !c.hasClaim(o.sel) {
				s.enter(c, claim{sel: o.sel, from: touch.from}, true)
			}
		}
		o.sel.opened()
	}
}

// staysDetached reports whether nothing of a topic has been asked for or emitted
// meanwhile.
func (s *Subscription) staysDetached(r storedPast) bool {
	for _, cl := range r.claims {
		_, touched := cl.sel.touched[r.topic.scope.Owner]
		if touched || cl.sel.gone || s.cursors[s.keyOf(cl.sel, r.topic.scope.Owner)] != nil {
			return false
		}
	}
	return true
}
