package agents

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Gap says which events an agent had been sent when its stream ended. It belongs to the
// agent, not to the stream: an agent has at most one.
type Gap struct {
	// Ended is when the stream ended or, if the process was killed, when the stream was
	// last marked.
	Ended time.Time
	// Since is a time that the stream chose: the events that it was sent of topics that
	// are not in Delivered are older.
	Since time.Time
	// Delivered has the last sequence sent of each topic.
	Delivered map[string]uint64
	// RecentIDs are ids of the last events sent, the newest last. They are stored when
	// the stream ends, so there are none after the process was killed.
	RecentIDs []string
}

// gapOwner is the system scope of a tenant's gaps. They share one, so that a thousand of
// them can be written by one commit with one guard.
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

// TakeGap returns the gap of an agent and deletes it, so that it is taken once, even if
// the process is killed right after. False means that there is none: the last stream
// ended in order, the gap was taken, or it is older than DefaultKeepGaps.
//
// If there is no gap and a stream of the agent still seems to be open, the new stream
// takes over from it: the gap is what the old stream has been sent, and later marks of
// the old stream count again only when the new one has ended. In both cases the open
// streams are notified (Link.GapTaken). So call TakeGap once for each new stream, before its
// first mark.
//
// On a store that other bridges have, too, the gap is claimed and not deleted: what a bridge
// that stood still stores after another one has claimed the gap is dropped, and its streams
// are notified that another server has taken over.
//
// If ctx ends, the gap is taken all the same. A gap that comes with an error is valid,
// but could not be deleted in the store, so it may be taken again after a kill. If a gap
// can't be read, it is lost, and the error is an ErrDamaged.
func (d *Directory) TakeGap(ctx context.Context, tenant, id string) (Gap, bool, error) {
	if id == "" {
		return Gap{}, false, nil // it names no server
	}
	far, there := d.takeElsewhere(ctx, tenant, id)
	g, found, err := d.gaps.take(ctx, newGapKey(tenant, id))
	if err != nil {
		err = fmt.Errorf("agents: take gap: %w", err)
	}
	if there && (!found || !g.Ended.After(far.Ended)) { // it is the same, or could not be stored
		g, found = far, true
	}
	if !found || d.now().Sub(g.Ended) > DefaultKeepGaps {
		return Gap{}, false, err
	}
	return g, true, err
}

// HandOverGap stores what an agent was sent by streams of this bridge for a stream of another
// one, which takes over from them with TakeGap. False means that this bridge does not have the
// gap.
func (d *Directory) HandOverGap(ctx context.Context, tenant, id string) (Gap, bool, error) {
	g, found, err := d.gaps.handOver(ctx, newGapKey(tenant, id))
	if err != nil {
		err = fmt.Errorf("agents: hand a gap over: %w", err)
	}
	return g, found, err
}

// MarkGap sets what the link has been sent so far; Ended is ignored. It takes effect in
// memory at once. For the newest marked link it is stored soon after, if the sequences or
// Since have changed. What exceeds the limits is dropped. Links without an id, and those
// that were ended, are ignored.
func (d *Directory) MarkGap(l *Link, g Gap) {
	d.gaps.mark(l, func(m *marks) bool { return m.replace(g) })
}

// MarkSent adds one event to what the link has been sent. It is cheap enough to be called
// for every event. An event without a sequence has an empty topic, and one without an id
// an empty id. Sequences only rise.
func (d *Directory) MarkSent(l *Link, topic string, sequence uint64, eventID string) {
	d.gaps.mark(l, func(m *marks) bool { return m.sent(topic, sequence, eventID) })
}

// MarkSince raises Gap.Since of the link; an earlier time changes nothing.
func (d *Directory) MarkSince(l *Link, since time.Time) {
	d.gaps.mark(l, func(m *marks) bool {
		if !since.After(m.since) {
			return false
		}
		m.since = since
		return true
	})
}

// EndGap says how the link ends: abnormally, so that there is a gap to take, or in order,
// so that there is none. Call it once, before Close or right after; a link that is closed
// without it ends abnormally with its last mark. Links that a newer one has replaced, and
// links without a mark, are ignored. When EndGap returns nil, the gap is stored and
// survives a kill.
//
// If an older link of the agent is still open, that one continues to serve the agent, and
// its marks are stored instead. The gap of the link that broke then stays in memory until
// a new stream takes it.
func (d *Directory) EndGap(ctx context.Context, l *Link, abnormal bool) error {
	if err := d.gaps.finish(ctx, l, abnormal); err != nil {
		return fmt.Errorf("agents: end gap: %w", err)
	}
	return nil
}
