package blob

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// MaxCollected bounds the entries that one call of Collect deletes.
	MaxCollected = 1024
	// maxDoomed bounds those of one commit, which keeps the owner's writers
	// waiting while it looks for references once more.
	maxDoomed = 256
	// maxCandidates bounds the entries for which all texts are looked through at
	// once.
	maxCandidates = 4096
)

// CollectOptions adjusts one collection. Nil and zero fields mean the defaults.
type CollectOptions struct {
	// DryRun tells what would be deleted and deletes nothing. Default false.
	DryRun bool
	// Orphans also deletes chunks that belong to no blob and are a day old.
	// Default false.
	Orphans bool
	// RequestID makes the call safe to repeat: the same options again give the
	// first answer, others are kv.ErrRequestReused. Without it a repeated call
	// tells what it did itself.
	RequestID string
}

// Collected is what a collection did, or would have done.
type Collected struct {
	// Entries is how many paths were deleted.
	Entries int64
	// Refs are the blobs that went with their last path, and Bytes what they
	// held.
	Refs  []string
	Bytes int64
	// Kept is what stayed.
	Kept Kept
	// Orphans is how many chunks of no blob were deleted, OrphanBytes what they
	// took in the store.
	Orphans, OrphanBytes int64
	// More says that there may be more to delete: MaxCollected were.
	More bool
}

// Kept counts the entries that stay, each by the first reason that holds.
type Kept struct {
	// Archived, LongTerm and Important ones are never deleted; NotExpired ones not
	// yet.
	Archived, LongTerm, Important, NotExpired int64
	// InUse are about to be referred to.
	InUse int64
	// Referenced are named by a session that has not ended, or by a memory
	// record.
	Referenced int64
}

// Collect deletes the owner's blobs that have expired and that nobody needs. It
// works in small commits, each complete in itself, so that it may end at any
// point and begin again. Each of them looks for references once more under the
// guard of whatever could bring a new one.
func (s *Store) Collect(ctx context.Context, scope kv.Scope, opts *CollectOptions) (Collected, error) {
	if err := scope.Validate(); err != nil {
		return Collected{}, err
	}
	c := collection{store: s, scope: scope, referrers: s.opts.Referrers}
	if c.referrers == nil {
		c.referrers = nobody{}
	}
	if opts != nil {
		c.opts = *opts
	}
	digest := sha256.Sum256(fmt.Appendf(nil, "collect %v %v", c.opts.DryRun, c.opts.Orphans))
	answer, found, err := kv.LookupOnce(ctx, s.engine, s.Ref(scope), c.opts.RequestID, digest)
	if found || err != nil {
		return decodeAnswer(answer), err
	}
	s.noteCollected(scope)
	if err := c.run(ctx); err != nil {
		return c.done, fmt.Errorf("blob: collect %s: %w", scope, err)
	}
	return c.done, c.keepAnswer(ctx, digest)
}

// collection is one Collect under way.
type collection struct {
	store     *Store
	scope     kv.Scope
	referrers Referrers
	opts      CollectOptions
	done      Collected
}

func (c *collection) run(ctx context.Context) error {
	for after, more := "", true; more && !c.done.More; {
		batch, last, err := c.candidates(ctx, after)
		if err != nil {
			return err
		}
		if err := c.collect(ctx, batch); err != nil {
			return err
		}
		after, more = last, last != ""
	}
	if !c.opts.Orphans {
		return nil
	}
	return c.sweepOrphans(ctx)
}

// candidates returns entries behind a path that nothing but a reference can
// save, and the path of the last entry seen, or "" at the end.
func (c *collection) candidates(ctx context.Context, after string) ([]Entry, string, error) {
	var batch []Entry
	sessions := c.sessions(c.store.engine)
	for e, err := range entries(ctx, c.store.engine, c.scope, after) {
		if err != nil {
			return nil, "", err
		}
		reason, err := c.reason(ctx, &e, sessions, &c.done.Kept)
		if err != nil {
			return nil, "", err
		}
		if reason != nil {
			*reason++
			continue
		}
		if batch = append(batch, e); len(batch) == maxCandidates {
			return batch, e.Home(), nil
		}
	}
	return batch, "", nil
}

// reason is the counter of why an entry stays, or nil if only a text that names
// it can save it. It fills in what depends on the time.
func (c *collection) reason(ctx context.Context, e *Entry, sessions *sessions, kept *Kept) (*int64, error) {
	*e = e.seen(c.scope.Owner, c.store.now())
	switch {
	case e.Archive.Category != "":
		return &kept.Archived, nil
	case e.Tier == LongTerm:
		return &kept.LongTerm, nil
	case e.Important:
		return &kept.Important, nil
	case !e.Expired:
		return &kept.NotExpired, nil
	case c.store.uses.holds(useKey{c.scope, e.Ref}):
		return &kept.InUse, nil
	case e.StepID == "":
		return nil, nil
	}
	// Its step names it as long as the step's session goes on.
	open, err := sessions.open(ctx, e.SessionID)
	if open {
		return &kept.Referenced, err
	}
	return nil, err
}

// sessions remembers which sessions are open, for one look at the store.
type sessions struct {
	ask   func(ctx context.Context, id string) (bool, error)
	known map[string]bool
}

func (c *collection) sessions(from View) *sessions {
	return &sessions{known: make(map[string]bool), ask: func(ctx context.Context, id string) (bool, error) {
		return c.referrers.Open(ctx, from, c.scope, id)
	}}
}

func (s *sessions) open(ctx context.Context, id string) (bool, error) {
	open, known := s.known[id]
	if known {
		return open, nil
	}
	open, err := s.ask(ctx, id)
	s.known[id] = open
	return open, err
}

// collect deletes what no text names of a batch.
func (c *collection) collect(ctx context.Context, batch []Entry) error {
	engine := c.store.engine
	free, err := c.unnamed(ctx, batch,
		c.referrers.Texts(ctx, engine, c.scope), c.referrers.Elsewhere(ctx, engine, c.scope))
	if err != nil {
		return err
	}
	c.done.Kept.Referenced += int64(len(batch) - len(free))
	if room := int(MaxCollected - c.done.Entries); len(free) > room {
		free, c.done.More = free[:room], true
	}
	if c.opts.DryRun {
		plan, err := c.plan(ctx, engine, free)
		c.done.add(plan)
		return err
	}
	for some := range slices.Chunk(free, maxDoomed) {
		if err := c.delete(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// unnamed returns the entries that no text names.
func (c *collection) unnamed(ctx context.Context, batch []Entry, texts ...iter.Seq2[[]byte, error]) ([]Entry, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	names := newNames(batch)
	for _, some := range texts {
		for text, err := range some {
			if err := errors.Join(err, ctx.Err()); err != nil {
				return nil, err
			}
			names.mark(text)
		}
	}
	var free []Entry
	for i, e := range batch {
		if !names.found[i] {
			free = append(free, e)
		}
	}
	return free, nil
}

// delete deletes a batch, in one commit, as far as it may still be deleted.
func (c *collection) delete(ctx context.Context, batch []Entry) error {
	s := c.store
	batch = c.doom(batch)
	defer func() {
		for _, e := range batch {
			s.uses.spare(useKey{c.scope, e.Ref})
		}
	}()
	var planned plan
	err := s.writer.Do(ctx, kv.Request{
		Refs: append([]kv.Ref{s.Ref(c.scope)}, c.referrers.Refs(c.scope)...),
		Stage: func(ctx context.Context, tx *kv.Tx) error {
			free, err := c.stillFree(ctx, tx, batch)
			if err != nil {
				return err
			}
			if planned, err = c.plan(ctx, tx, free); err != nil {
				return err
			}
			return c.stage(ctx, tx, planned)
		},
		// Not synced: what comes back after a power loss is collected again.
		Lazy: true,
	})
	if err != nil {
		return err
	}
	c.done.Kept.Referenced += int64(len(batch) - len(planned.entries))
	c.done.add(planned)
	return nil
}

// doom takes those out that somebody is about to refer to, and lets nobody
// begin to.
func (c *collection) doom(batch []Entry) []Entry {
	var free []Entry
	for _, e := range batch {
		if c.store.uses.doom(useKey{c.scope, e.Ref}) {
			free = append(free, e)
		} else {
			c.done.Kept.InUse++
		}
	}
	return free
}

// stillFree returns the entries of a batch that are there as they were and that
// nobody has begun to need.
func (c *collection) stillFree(ctx context.Context, tx *kv.Tx, batch []Entry) ([]Entry, error) {
	var kept Kept
	var free []Entry
	sessions := c.sessions(tx)
	for _, e := range batch {
		values, err := tx.Get(ctx, kv.Blobs, pathKey(c.scope, e.Home()))
		if err != nil {
			return nil, err
		}
		if values[0] == nil {
			continue
		}
		now, err := decodeEntry(e.Home(), values[0])
		if err != nil {
			return nil, err
		}
		if now.Ref != e.Ref {
			continue
		}
		reason, err := c.reason(ctx, &now, sessions, &kept)
		if err != nil {
			return nil, err
		}
		if reason == nil {
			free = append(free, now)
		}
	}
	return c.unnamed(ctx, free, c.referrers.Texts(ctx, tx, c.scope))
}

// plan is what a commit deletes.
type plan struct {
	entries []Entry
	refs    []string // those that go with their last entry
	bytes   int64
}

// plan finds out which blobs go with the entries.
func (c *collection) plan(ctx context.Context, from View, doomed []Entry) (plan, error) {
	p := plan{entries: doomed}
	if len(doomed) == 0 {
		return p, nil
	}
	going, left := make(map[string]bool), make(map[string]int64)
	for _, e := range doomed {
		going[e.Home()], left[e.Ref] = true, e.Size
	}
	for e, err := range entries(ctx, from, c.scope, "") {
		if err != nil {
			return plan{}, err
		}
		if !going[e.Home()] {
			delete(left, e.Ref)
		}
	}
	for _, e := range doomed {
		if size, last := left[e.Ref]; last {
			delete(left, e.Ref)
			p.refs, p.bytes = append(p.refs, e.Ref), p.bytes+size
		}
	}
	return p, nil
}

// stage deletes what is planned and leaves word of it.
func (c *collection) stage(ctx context.Context, tx *kv.Tx, p plan) error {
	if len(p.entries) == 0 {
		return nil
	}
	used, err := readUsage(ctx, tx, c.scope)
	if err != nil {
		return err
	}
	gone := encodeCollected(c.store.now())
	for _, e := range p.entries {
		tx.Delete(kv.Blobs, pathKey(c.scope, e.Home()))
		tx.Put(kv.Blobs, collectedKey(c.scope, collectedPath, e.Home()), gone)
		if e.Path == e.Home() {
			continue
		}
		for _, alias := range slices.Concat(e.Aliases[1:], []string{e.Path}) {
			tx.Delete(kv.Blobs, aliasKey(c.scope, alias))
			tx.Put(kv.Blobs, collectedKey(c.scope, collectedPath, alias), gone)
		}
	}
	for _, ref := range p.refs {
		hash := refHash(ref)
		tx.Delete(kv.Blobs, manifestKey(c.scope, hash))
		tx.Put(kv.Blobs, collectedKey(c.scope, collectedRef, hash), gone)
	}
	used.Blobs -= int64(len(p.refs))
	used.Bytes -= p.bytes
	tx.Put(kv.Blobs, usageKey(c.scope), used.encode())
	return nil
}

func (d *Collected) add(p plan) {
	d.Entries += int64(len(p.entries))
	d.Refs = append(d.Refs, p.refs...)
	d.Bytes += p.bytes
}
