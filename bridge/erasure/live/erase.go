package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/bridge/erasure"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/bridge/topics"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// maxChanges and maxChangedBytes bound what one commit changes, maxRefs the scopes in
	// it, so that no other commit waits for long.
	maxChanges      = 256
	maxChangedBytes = 1 << 20
	maxRefs         = 16
	// maxRounds bounds how often an erasure begins anew because something of the subject was
	// there again: what came in on a way that the gate does not see.
	maxRounds = 4
)

// shut keeps everybody else from a scope.
func (w *Worker) shut(scope kv.Scope) {
	w.Gate.close(scope)
	w.Writer.Bar(scope, refusal(scope))
}

func (w *Worker) reopen(scope kv.Scope) {
	w.Writer.LiftBar(scope)
	w.Gate.open(scope)
}

// quiet waits until nothing that began before writes to the scope any more.
func (w *Worker) quiet(ctx context.Context, scope kv.Scope) error {
	limited, cancel := context.WithTimeoutCause(ctx, DefaultDrainTime, ErrInUse)
	defer cancel()
	if err := w.Gate.drain(limited, scope); err != nil {
		return err
	}
	switch scope.Kind {
	case kv.OwnerAgent:
		w.Past.Settle(limited, scope)
	case kv.OwnerUser: // prompts of every agent may show the memory, and are counted
		if err := w.settle(limited, scope.Tenant); err != nil {
			return err
		}
	}
	return w.Writer.Drain(ctx)
}

// settle waits until the records of the prompts that a tenant's agents were given are written.
func (w *Worker) settle(ctx context.Context, tenant string) error {
	for scope, err := range kv.ScopesIn(ctx, w.Engine, kv.Log, kv.TenantRange(tenant)) {
		if err != nil {
			return err
		}
		w.Past.Settle(ctx, scope)
	}
	return nil
}

// erase erases the subject of a job. Once the intent is written the scope stays shut until all
// is done.
func (w *Worker) erase(ctx context.Context, j *job) (r Result, err error) {
	before := w.Gate.Closed(j.scope) // an intent is there that is not done with
	w.shut(j.scope)
	begun, resumed, err := w.stored(ctx, j.subject, j.scope)
	if err == nil && !resumed {
		err = w.begin(ctx, j, &begun)
	}
	if err != nil {
		if !before && !errors.Is(err, kv.ErrUnknownOutcome) {
			w.reopen(j.scope)
		}
		return r, err
	}
	r = Result{Holdings: begun.found, Resumed: resumed, Began: begun.began}
	done, err := w.rounds(ctx, j, &begun)
	if err != nil {
		return r, err
	}
	if err := w.forget(ctx, j); err != nil {
		return r, err
	}
	j.at(Reclaiming, 0)
	if r.Reclaimed, err = w.reclaim(ctx, j, &begun); err != nil {
		return r, fmt.Errorf("erasure: the entries are deleted, but their bytes may remain: %w", err)
	}
	if r.Certificate, err = w.certify(ctx, j, &begun, done, r.Reclaimed); err != nil {
		return r, err
	}
	if err := w.note(ctx, &begun, j.scope, true); err != nil {
		return r, err
	}
	w.reopen(j.scope)
	r.Ended = w.opts.Now()
	return r, nil
}

// begin waits for calls of the subject, counts what there is, and writes that down.
func (w *Worker) begin(ctx context.Context, j *job, i *intent) error {
	j.at(Waiting, 0)
	if err := w.quiet(ctx, j.scope); err != nil {
		return err
	}
	picked, err := w.pick(ctx, j.subject)
	if err != nil {
		return err
	}
	found, quoted, err := w.count(ctx, j.subject, picked, func(n int64) { j.at(Counting, n) })
	if err != nil {
		return err
	}
	*i = intent{subject: j.subject, began: w.opts.Now(), found: found, digests: erasure.Digests(picked)}
	if j.subject.Step != 0 {
		i.quoted = quoted
	}
	i.memories = slices.SortedFunc(maps.Keys(picked), func(a, b kv.Scope) int { return strings.Compare(a.String(), b.String()) })
	if err := w.note(ctx, i, j.scope, false); err != nil {
		return err
	}
	// A server that comes to the store from here on finds the intent; one that came before
	// does not.
	if err := w.alone(ctx); err != nil {
		return errors.Join(err, w.note(ctx, i, j.scope, true))
	}
	return nil
}

// maxPicked bounds the records that an erasure on a running server takes out of memories: the
// intent has the digest of each.
const maxPicked = 50_000

// pick finds the records that go, and the memories that lose a name.
func (w *Worker) pick(ctx context.Context, s erasure.Subject) (erasure.Picked, error) {
	if s.Kind == erasure.User && !s.Narrowed() {
		return nil, nil
	}
	picked, err := erasure.Pick(ctx, w.Engine, w.Memory, s)
	if err != nil {
		return nil, err
	}
	total := 0
	for _, ids := range picked {
		total += len(ids)
	}
	if total > maxPicked {
		return nil, fmt.Errorf("%w: a running server takes out %d at most; narrow the filter, or erase while none runs", erasure.ErrTooMany, maxPicked)
	}
	return picked, nil
}

// done is what rounds have done and seen.
type done struct {
	audit  int
	quoted map[string]int64
	left   map[string]int64
}

// rounds erases until a look at everything finds nothing.
func (w *Worker) rounds(ctx context.Context, j *job, i *intent) (all done, err error) {
	for range maxRounds {
		n, err := w.round(ctx, j, i)
		if err != nil {
			return all, fmt.Errorf("erasure: %s: %w", j.subject, err)
		}
		all.audit += n
		e, err := erasure.NewFinder(ctx, j.subject, w.Engine, i.digests)
		if err != nil {
			return all, err
		}
		left, err := e.Count(ctx, w.Engine, func(n int64) { j.at(Checking, n) })
		all.quoted, all.left = e.Quoted(), e.LeftAt()
		if j.subject.Step != 0 {
			all.quoted = i.quoted
		}
		if err != nil || left.Empty() {
			return all, err
		}
	}
	return all, fmt.Errorf("%w: %s: %v", ErrLeft, j.subject, all.left)
}

// round erases once, and returns how many records of calls went.
func (w *Worker) round(ctx context.Context, j *job, i *intent) (audited int, err error) {
	s := j.subject
	if err := w.quiet(ctx, j.scope); err != nil {
		return 0, err
	}
	switch {
	case s.Step != 0:
		audited, err = w.ofStep(ctx, j)
	case s.Kind == erasure.Agent && s.Filter == "":
		audited, err = w.ofAgent(ctx, j)
	}
	if err != nil {
		return audited, err
	}
	picked, err := w.pick(ctx, s)
	if err != nil {
		return audited, err
	}
	if picked == nil {
		picked = make(erasure.Picked)
	}
	for _, scope := range i.memories { // an earlier process may not have come through one
		if picked[scope] == nil {
			picked[scope] = make(map[string]bool)
		}
	}
	e, err := erasure.New(ctx, s, w.Engine, picked)
	if err == nil && s.Step == 0 {
		err = w.entries(ctx, j, e)
	}
	for scope, ids := range picked {
		if err == nil {
			err = w.Memory.Expunge(ctx, scope, s, ids)
		}
	}
	if err == nil && s.Step != 0 { // which leads to the records
		err = w.entries(ctx, j, e)
	}
	if err == nil && !s.Narrowed() {
		err = w.own(ctx, j)
	}
	showed := s.Kind == erasure.User && i.found.Counts[erasure.KindRecords] > 0 || s.Filter != "" && len(picked) > 0
	if err != nil || !showed {
		return audited, err
	}
	// Prompts that were being made may have shown what is gone, and be recorded a little later.
	limited, cancel := context.WithTimeoutCause(ctx, DefaultDrainTime, ErrInUse)
	defer cancel()
	if err := w.Gate.drain(limited, PromptsOf(s.Tenant)); err != nil {
		return audited, err
	}
	if err := w.settle(ctx, s.Tenant); err != nil {
		return audited, err
	}
	e.ShowedMemory()
	return audited, w.entries(ctx, j, e)
}

// ofAgent erases what an agent, or a session of it, has in parts of the store that have ways of
// their own.
func (w *Worker) ofAgent(ctx context.Context, j *job) (audited int, err error) {
	s := j.subject
	var own func(topic string) bool
	if s.Session == "" {
		w.Jobs.EndAgent(j.scope)
		if _, err := w.Agents.DeleteHere(ctx, s.Tenant, s.ID); err != nil {
			return 0, err
		}
		own = func(topic string) bool { return topics.IsOf(s.ID, topic) }
	}
	if audited, err = w.Audit.Erase(ctx, s.Tenant, s.ID, s.Session, 0); err != nil {
		return audited, err
	}
	if _, err = w.Events.Erase(ctx, s.Tenant, store.Erasing{Source: s.ID, Session: s.Session, Own: own}); err == nil {
		_, err = w.Messages.Erase(ctx, s.Tenant, s.ID, s.Session)
	}
	return audited, err
}

// ofStep is ofAgent for a step. Events go that its agent emitted in the session, and that have
// lines of it.
func (w *Worker) ofStep(ctx context.Context, j *job) (audited int, err error) {
	s := j.subject
	e, err := erasure.New(ctx, s, w.Engine, nil)
	if err != nil {
		return 0, err
	}
	place, words := e.Step()
	if place.Position == 0 { // it is gone, or not of the session
		return 0, nil
	}
	if _, err = w.Events.Erase(ctx, s.Tenant, store.Erasing{Source: s.ID, Session: place.Session, Quotes: words.In}); err != nil {
		return 0, err
	}
	return w.Audit.Erase(ctx, s.Tenant, s.ID, place.Session, s.Step)
}

// entries erases what others have of the subject, and what lists have.
func (w *Worker) entries(ctx context.Context, j *job, e *erasure.Eraser) error {
	done := int64(0)
	for phase := range erasure.Phases {
		b := batch{worker: w, whole: j.subject.Step != 0 && phase == erasure.LastPhase}
		err := e.Changes(ctx, w.Engine, phase, func(ks kv.Keyspace, c erasure.Change) error {
			done++
			j.at(Erasing, done)
			return b.add(ctx, ks, c)
		})
		if err = errors.Join(err, b.commit(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// batch are changes that are committed together.
type batch struct {
	worker  *Worker
	refs    []kv.Ref
	changes []keyed
	bytes   int
	// whole says that all of them are one commit.
	whole bool
}

type keyed struct {
	ks kv.Keyspace
	erasure.Change
}

// add takes a change in, and commits those before it where they are enough.
func (b *batch) add(ctx context.Context, ks kv.Keyspace, c erasure.Change) error {
	scope, _, err := kv.SplitKey(c.Key)
	if err != nil {
		return err
	}
	ref := kv.Ref{Keyspace: ks, Scope: scope}
	if last := len(b.refs) - 1; last < 0 || b.refs[last] != ref {
		if len(b.refs) == maxRefs && !b.whole {
			if err := b.commit(ctx); err != nil {
				return err
			}
		}
		b.refs = append(b.refs, ref)
	}
	b.changes = append(b.changes, keyed{ks, c})
	b.bytes += len(c.Key) + len(c.Before)
	if b.whole || len(b.changes) < maxChanges && b.bytes < maxChangedBytes {
		return nil
	}
	return b.commit(ctx)
}

// commit makes the changes of entries that hold what they held; the next round sees to
// others.
func (b *batch) commit(ctx context.Context) error {
	if len(b.changes) == 0 {
		return nil
	}
	changes := b.changes
	err := b.worker.Writer.Do(ctx, kv.Request{Refs: b.refs, Stage: func(ctx context.Context, tx *kv.Tx) error {
		for _, c := range changes {
			now, err := tx.Watch(ctx, c.ks, c.Key)
			switch {
			case err != nil:
				return err
			case now == nil || !bytes.Equal(now, c.Before):
			case c.After == nil:
				tx.Delete(c.ks, c.Key)
			default:
				tx.Put(c.ks, c.Key, c.After)
			}
		}
		return nil
	}})
	b.refs, b.changes, b.bytes = nil, nil, 0
	return err
}

// own erases all of the subject's own scope, a keyspace at once where the engine can, and
// has its sequences go up: whatever is remembered by those is of before.
func (w *Worker) own(ctx context.Context, j *job) error {
	var refs []kv.Ref
	for _, ks := range kv.Keyspaces() {
		all := kv.Prefix(j.scope.AppendPrefix(nil))
		if dropper, ok := w.Engine.(kv.RangeDropper); ok {
			if err := dropper.DropRange(ctx, ks, all); err != nil {
				return err
			}
		} else if err := w.deleteAll(ctx, ks, all); err != nil {
			return err
		}
		refs = append(refs, kv.Ref{Keyspace: ks, Scope: j.scope})
	}
	// A commit raises the sequences that it guards, if it writes anything.
	return w.Writer.Do(ctx, kv.Request{Refs: refs, Stage: func(_ context.Context, tx *kv.Tx) error {
		for _, ref := range refs {
			tx.Delete(ref.Keyspace, j.scope.Key(anyTag))
		}
		return nil
	}})
}

// anyTag is a tag that no keyspace uses.
const anyTag = '~'

func (w *Worker) deleteAll(ctx context.Context, ks kv.Keyspace, all kv.Range) error {
	b := batch{worker: w}
	for p, err := range w.Engine.Scan(ctx, ks, all) {
		if err == nil {
			err = b.add(ctx, ks, erasure.Change{Key: p.Key, Before: p.Value})
		}
		if err != nil {
			return err
		}
	}
	return b.commit(ctx)
}

// forget has everybody forget what they remember of the subject. Prompts of all agents of the
// tenant may have shown a person's memory.
func (w *Worker) forget(ctx context.Context, j *job) error {
	match := func(scope kv.Scope) bool { return scope == j.scope }
	if j.scope.Kind == kv.OwnerUser {
		match = func(scope kv.Scope) bool { return scope.Tenant == j.scope.Tenant }
	}
	w.Memory.Forget(j.scope)
	w.Log.Forget(j.scope.Tenant, match)
	w.Prompts.Forget(match)
	w.mu.Lock()
	others := slices.Clone(w.others)
	w.mu.Unlock()
	for _, forget := range others {
		forget()
	}
	return w.Children.Erased(ctx, j.scope)
}

// reclaim has the engine let go of the bytes, where it can.
func (w *Worker) reclaim(ctx context.Context, j *job, i *intent) (bool, error) {
	engine, ok := w.Engine.(kv.Reclaimer)
	if !ok {
		return false, nil
	}
	picked := make(erasure.Picked)
	for _, scope := range i.memories {
		picked[scope] = nil
	}
	e, err := erasure.New(ctx, j.subject, w.Engine, picked)
	if err != nil {
		return false, err
	}
	return true, engine.Reclaim(ctx, e.Touched())
}
