package blob

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/lease"
	"github.com/loom-bridge/loom-bridge/memory/kv/mention"
)

const (
	// MaxCollected bounds the entries that one call of Collect deletes.
	MaxCollected = 1024
	// maxDeleted bounds the entries of one commit. Calls that store a blob of the owner
	// wait for it, because it looks for references again.
	maxDeleted = 16
	// maxSeen bounds the entries that one scan reads.
	maxSeen = 1024
)

// CollectOptions adjusts one collection. Nil and zero fields mean the defaults.
type CollectOptions struct {
	// DryRun says what would be deleted and deletes nothing. Default false.
	DryRun bool
	// Orphans also deletes chunks that no blob has and that are a day old. Default
	// false.
	Orphans bool
	// RequestID makes the call safe to repeat: the same options again give the
	// first answer, others are kv.ErrRequestReused. Without it a repeated call
	// says what it did itself.
	RequestID string
}

// Collect deletes the owner's expired blobs that nothing refers to. It works in small
// commits, each complete in itself, so that it can be stopped at any point and started
// again. Each commit looks for references again, and is refused and repeated if one was
// added meanwhile. Only calls that store blobs of the owner wait for it. While mentions
// of a tenant are being back-filled, nothing of that tenant is collected.
func (s *Store) Collect(ctx context.Context, scope kv.Scope, opts *CollectOptions) (Collected, error) {
	if err := scope.Validate(); err != nil {
		return Collected{}, err
	}
	c := collection{store: s, scope: scope, sessions: s.opts.Sessions}
	if c.sessions == nil {
		c.sessions = allOpen{}
	}
	if opts != nil {
		c.opts = *opts
	}
	digest := sha256.Sum256(fmt.Appendf(nil, "collect %v %v", c.opts.DryRun, c.opts.Orphans))
	answer, found, err := kv.LookupOnce(ctx, s.engine, s.Ref(scope), c.opts.RequestID, digest)
	if found || err != nil {
		return decodeAnswer(answer), err
	}
	if s.opts.Backfill != nil {
		if complete, err := s.opts.Backfill.Complete(ctx, scope.Tenant); !complete || err != nil {
			return Collected{}, err
		}
	}
	s.noteCollected(scope)
	if err := c.run(ctx); err != nil {
		return c.done, fmt.Errorf("blob: collect %s: %w", scope, err)
	}
	return c.done, c.keepAnswer(ctx, digest)
}

// CollectSessions deletes the owner's blobs that were made in some sessions, expired or
// not, as Collect does; over says which sessions need theirs. It returns how many paths
// went. What is in long-term memory, archived, marked as important, in use, or named by a
// memory record or by a session that needs it stays.
func (s *Store) CollectSessions(ctx context.Context, scope kv.Scope, made map[string]bool, over Sessions) (deleted int64, err error) {
	if s.opts.Backfill != nil {
		if complete, err := s.opts.Backfill.Complete(ctx, scope.Tenant); !complete || err != nil {
			return 0, err
		}
	}
	for more := true; more; {
		c := collection{store: s, scope: scope, sessions: over, of: made}
		err := c.run(ctx)
		if deleted += c.done.Entries; err != nil {
			return deleted, fmt.Errorf("blob: collect sessions of %s: %w", scope, err)
		}
		more = c.done.More
	}
	return deleted, nil
}

// collection is one run of Collect.
type collection struct {
	store    *Store
	scope    kv.Scope
	sessions Sessions
	opts     CollectOptions
	// of are the sessions whose blobs alone are looked at, expired or not; nil: all.
	of   map[string]bool
	done Collected
}

func (c *collection) run(ctx context.Context) error {
	for after, more := "", true; more && !c.done.More; {
		look, err := c.references(ctx, c.store.engine)
		if err != nil {
			return err
		}
		free, last, err := c.candidates(ctx, look, after)
		if err != nil {
			return err
		}
		if err := c.collect(ctx, look, free); err != nil {
			return err
		}
		after, more = last, last != ""
	}
	if !c.opts.Orphans {
		return nil
	}
	return c.sweepOrphans(ctx)
}

// candidate is an entry for which the first look found no reason to keep it.
type candidate struct {
	Entry
	// closed are the sessions that would need it if they were open.
	closed []string
}

// candidates returns those among the next maxSeen entries behind a path, and the path
// of the last one seen, or "" at the end.
func (c *collection) candidates(ctx context.Context, look *references, after string) (free []candidate, last string, err error) {
	seen := 0
	for e, err := range entries(ctx, c.store.engine, c.scope, after, maxSeen) {
		if err != nil {
			return nil, "", err
		}
		seen, last = seen+1, e.Home()
		if c.of != nil && !c.of[e.SessionID] {
			continue
		}
		var closed []string
		kept, err := c.keeps(ctx, look.from, &e, &c.done.Kept, func() (needed bool, err error) {
			needed, closed, err = look.to(ctx, &e)
			return needed, err
		})
		if err != nil {
			return nil, "", err
		}
		if !kept {
			free = append(free, candidate{e, closed})
		}
	}
	if seen < maxSeen {
		last = ""
	}
	return free, last, nil
}

// keeps reports whether there is a reason to keep an entry, and counts that in kept. needed is
// asked for references last.
func (c *collection) keeps(ctx context.Context, from kv.Getter, e *Entry, kept *Kept, needed func() (bool, error)) (bool, error) {
	reason, err := c.reason(ctx, from, e, kept)
	if err == nil && reason == nil {
		var is bool
		if is, err = needed(); is {
			reason = &kept.Referenced
		}
	}
	if err != nil || reason == nil {
		return false, err
	}
	*reason++
	return true, nil
}

// reason returns the counter of the reason to keep an entry, references aside; nil
// without one. It fills in the fields that depend on the time.
func (c *collection) reason(ctx context.Context, from kv.Getter, e *Entry, kept *Kept) (*int64, error) {
	*e = e.seen(c.scope.Owner, c.store.now())
	switch {
	case e.Archive.Category != "":
		return &kept.Archived, nil
	case e.Tier == LongTerm:
		return &kept.LongTerm, nil
	case e.Important:
		return &kept.Important, nil
	case !e.Expired && !c.of[e.SessionID]:
		return &kept.NotExpired, nil
	}
	leased, err := c.store.leased(ctx, from, c.scope, e.Ref)
	if leased {
		return &kept.InUse, err
	}
	return nil, err
}

// maxRest bounds the pause after a commit of a collection. The pause is as long as the
// commit took, so that a collection uses half of the time.
const maxRest = 20 * time.Millisecond

// collect deletes entries that nothing keeps.
func (c *collection) collect(ctx context.Context, look *references, free []candidate) error {
	if room := int(MaxCollected - c.done.Entries); len(free) > room {
		free, c.done.More = free[:room], true
	}
	if c.opts.DryRun {
		all := make([]Entry, len(free))
		for i, e := range free {
			all[i] = e.Entry
		}
		plan, err := c.plan(ctx, c.store.engine, all)
		c.done.add(plan)
		return err
	}
	for some := range slices.Chunk(free, maxDeleted) {
		began := time.Now()
		if err := c.delete(ctx, look, some); err != nil {
			return err
		}
		if !kv.Sleep(ctx, min(time.Since(began), maxRest)) { // others can use the writer and the processors
			return ctx.Err()
		}
	}
	return nil
}

// delete deletes, in one commit, the entries of a batch that may still be deleted.
func (c *collection) delete(ctx context.Context, look *references, batch []candidate) error {
	var planned plan
	var kept Kept
	err := c.store.writer.Do(ctx, lease.Fence(ctx, kv.Request{
		Refs:  []kv.Ref{c.store.Ref(c.scope)},
		Blind: mention.ReadRefs(c.scope),
		Stage: func(ctx context.Context, tx *kv.Tx) error {
			kept = Kept{}
			free, err := c.stillFree(ctx, tx, look, batch, &kept)
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
	}))
	if err != nil {
		return err
	}
	c.done.Kept.add(kept)
	c.done.add(planned)
	return nil
}

// stillFree returns the entries of a batch that have not changed and that nothing has
// referred to since the look. It makes tx fail if a reference is added before the commit.
func (c *collection) stillFree(ctx context.Context, tx *kv.Tx, look *references, batch []candidate, kept *Kept) ([]Entry, error) {
	references, err := c.references(ctx, watching{tx})
	if err != nil {
		return nil, err
	}
	same := references.mentions.Same(look.mentions)
	var free []Entry
	for _, e := range batch {
		now, err := readEntry(ctx, tx, c.scope, e.Home())
		if errors.Is(err, ErrNotFound) || err == nil && now.Ref != e.Ref {
			continue
		}
		if err != nil {
			return nil, err
		}
		stays, err := c.keeps(ctx, references.from, &now, kept, func() (needed bool, err error) {
			if same && now.Path == e.Path { // a new path may have been named before
				return references.anyOpen(ctx, e.closed)
			}
			needed, _, err = references.to(ctx, &now)
			return needed, err
		})
		if err != nil {
			return nil, err
		}
		if !stays {
			free = append(free, now)
		}
	}
	return free, nil
}

// plan lists what a commit deletes.
type plan struct {
	entries []Entry
	refs    []string // blobs that go with their last entry
	bytes   int64
}

// plan finds the blobs to delete with the entries: those without another entry.
func (c *collection) plan(ctx context.Context, from kv.Getter, entries []Entry) (plan, error) {
	p := plan{entries: entries}
	going := make(map[string]bool)
	for _, e := range entries {
		going[e.Home()] = true
	}
	seen := make(map[string]bool)
	for _, e := range entries {
		if seen[e.Ref] {
			continue
		}
		seen[e.Ref] = true
		shared, err := c.shared(ctx, from, e.Ref, going)
		if err != nil {
			return plan{}, err
		}
		if !shared {
			p.refs, p.bytes = append(p.refs, e.Ref), p.bytes+e.Size
		}
	}
	return p, nil
}

// shared reports whether a blob has an entry that is not being deleted.
func (c *collection) shared(ctx context.Context, from kv.Getter, ref string, going map[string]bool) (bool, error) {
	prefix := refPrefix(c.scope, refHash(ref))
	for pair, err := range from.Scan(ctx, kv.Blobs, kv.Prefix(prefix)) {
		if err != nil {
			return false, err
		}
		if !going[string(pair.Key[len(prefix):])] {
			return true, nil
		}
	}
	return false, nil
}

// stage deletes the planned entries and notes the collected names.
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
		tx.Delete(kv.Blobs, append(refPrefix(c.scope, refHash(e.Ref)), e.Home()...))
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
		tx.Delete(kv.Blobs, leaseKey(c.scope, hash))
		tx.Put(kv.Blobs, collectedKey(c.scope, collectedRef, hash), gone)
	}
	used.Blobs -= int64(len(p.refs))
	used.Bytes -= p.bytes
	tx.Put(kv.Blobs, usageKey(c.scope), used.encode())
	return nil
}
