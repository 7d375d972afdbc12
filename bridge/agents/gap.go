package agents

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Gap is how far an agent had been served when its stream ended. It belongs to
// the agent, not to the stream: at most one waits to be taken.
type Gap struct {
	// Ended is when the stream ended or, where nobody saw it end, when it was
	// last marked.
	Ended time.Time
	// Since is a time of the stream's own choice: what it had been given of topics
	// that are not in Delivered is older.
	Since time.Time
	// Delivered has the last sequence sent of each topic.
	Delivered map[string]uint64
	// RecentIDs are ids of the last events sent, the newest last. They are stored
	// when the stream ends and not before: one that died with its process leaves
	// none.
	RecentIDs []string
}

// gapOwner is the system scope of a tenant's gaps. They share one, so that a
// thousand of them are one commit with one guard.
const gapOwner = "gaps"

// Tag of the gaps' scope (memory/FORMAT.md).
const tagGap = 'g' // SHA-256 of the agent's id: a gap

// gapKey names the gap of an agent. The id is hashed because it may be anything.
type gapKey struct {
	tenant string
	agent  [sha256.Size]byte
}

func newGapKey(tenant, id string) gapKey { return gapKey{tenant, sha256.Sum256([]byte(id))} }

func gapRef(tenant string) kv.Ref {
	return kv.Ref{Keyspace: kv.System, Scope: kv.Scope{Tenant: tenant, Kind: kv.OwnerSystem, Owner: gapOwner}}
}

func (k gapKey) stored() []byte { return gapRef(k.tenant).Scope.Key(tagGap, k.agent[:]) }

// TakeGap returns the gap of an agent and forgets it, so that it is taken once,
// even if the process is killed right after. False means that there is none:
// the last stream ended as it should, the gap was taken, or it is older than
// Options.KeepGaps. Where nothing waits and a stream of the agent seems to be
// open still, the new one takes over from it: what it has been given so far is
// the gap, and what is marked for it counts again only when the new one has
// ended. Either way the streams that are open are told (Link.GapTaken). So call
// TakeGap once for each new stream, before that stream is marked for the first
// time.
//
// The end of ctx takes nothing back: the gap is the caller's all the same. A gap
// that comes with an error counts as well, but may be taken once more after a
// kill, because it could not be deleted in the store. A gap that can't be read is
// gone; the error is an ErrDamaged then.
func (d *Directory) TakeGap(ctx context.Context, tenant, id string) (Gap, bool, error) {
	if id == "" {
		return Gap{}, false, nil // it names nobody
	}
	g, found, err := d.gaps.take(ctx, newGapKey(tenant, id))
	if err != nil {
		err = fmt.Errorf("agents: take gap: %w", err)
	}
	if !found || d.now().Sub(g.Ended) > d.opts.KeepGaps {
		return Gap{}, false, err
	}
	return g, true, err
}

// MarkGap says what the link has been given so far, in place of what was said
// before; Ended is ignored. It is in memory at once. What the newest link that
// was marked has been given is stored soon, if its places or its Since have
// changed. What is over the limits is forgotten. A link without an id, and one
// that was ended, are ignored.
func (d *Directory) MarkGap(l *Link, g Gap) {
	d.gaps.mark(l, func(m *marks) bool { return m.replace(g) })
}

// MarkSent adds one event to what the link has been given, as cheaply as it can
// be done for every event. One without a place in its topic comes with an empty
// topic, one without an id with an empty id. Sequences only rise.
func (d *Directory) MarkSent(l *Link, topic string, sequence uint64, eventID string) {
	d.gaps.mark(l, func(m *marks) bool { return m.sent(topic, sequence, eventID) })
}

// MarkSince moves the Since of what the link has been given forward; an earlier
// one changes nothing.
func (d *Directory) MarkSince(l *Link, since time.Time) {
	d.gaps.mark(l, func(m *marks) bool { return m.raise(since) })
}

// EndGap says how the link ends: abnormally, and its gap waits to be taken, or
// as it should, and there is none. Call it once, before Close or right after; a
// link closed without it counts as ended with its last mark. A link that a newer
// one has taken over from is ignored, and so is one that was never marked. When
// EndGap returns nil it is stored, and survives a kill.
//
// Where an older link of the agent is still open, the agent is served by that one
// from then on: what it has been given is stored instead. The gap of the one that
// broke waits in memory then, for a stream that comes back.
func (d *Directory) EndGap(ctx context.Context, l *Link, abnormal bool) error {
	if err := d.gaps.finish(ctx, l, abnormal); err != nil {
		return fmt.Errorf("agents: end gap: %w", err)
	}
	return nil
}
