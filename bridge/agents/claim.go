package agents

import (
	"context"
	"errors"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// claim says who keeps the stored gap of an agent. Where several servers share the store, a
// stream claims the gap when it takes it, and later writes are refused unless the claim
// still stands: a server that was suspended finds its streams handed over when it resumes,
// and does not overwrite what another server has stored since.
type claim struct {
	holder string // a server in one of its lives (Options.Holder)
	number uint64 // of the claim, in the process of that server
}

func (c claim) isZero() bool { return c == claim{} }

// encode is what it adds to a stored gap.
func (c claim) encode() []byte { return wire.Marshal(&storev1.Gap{Holder: c.holder, Claim: c.number}) }

// claimOf reads that of a stored gap; zero for one that can't be read, and for none.
func claimOf(gap []byte) claim {
	g, err := decodeGap(gap)
	if err != nil {
		return claim{}
	}
	return g.claim
}

// errElsewhere: another server has claimed the gap.
var errElsewhere = errors.New("agents: another server has the gap")

// shared reports whether other servers have the store.
func (k *gapKeeper) shared() bool { return k.holder != nil }

// newClaim is one that no other has, in the order of the commits that it is staged for.
func (k *gapKeeper) newClaim() (claim, error) {
	holder := k.holder()
	if holder == "" { // others took this server for dead, and it is not back yet
		return claim{}, kv.ErrFenced
	}
	return claim{holder, k.claims.Add(1)}, nil
}

// guard finds the writes whose gap another server has, and gives those a claim that have none:
// it could not be stored when the stream was opened.
func (k *gapKeeper) guard(ctx context.Context, tx *kv.Tx, ref kv.Ref, writes []gapWrite) error {
	keys := make([][]byte, len(writes))
	for i := range writes {
		keys[i] = writes[i].key.stored()
	}
	values, err := tx.Get(ctx, ref.Keyspace, keys...)
	if err != nil {
		return err
	}
	for i := range writes {
		w, stored := &writes[i], claimOf(values[i])
		w.denied, w.written = stored != w.claim, w.claim
		if !w.claim.isZero() {
			continue
		}
		if w.written, err = k.newClaim(); err != nil {
			return err
		}
		w.denied = stored.holder != "" && stored.holder != w.written.holder
	}
	return nil
}

// claimed notes that a stream of this server has claimed a gap in the store. before is the
// slot that there was then; streams that were marked since are newer. A claim that failed is
// made by the next commit.
func (k *gapKeeper) claimed(key gapKey, before *gapSlot, c claim, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.slots[key]
	switch {
	case k.closed:
		return
	case !k.shared():
		if s != nil { // it was handed over, and is back
			s.lost = false
		}
		return
	case err != nil:
		if s != nil && s.lost {
			s.claim, s.lost = claim{}, false
		}
		return
	case s == nil:
		s = &gapSlot{}
		k.slots[key] = s
	case s == before:
		s.takeAll(k.eventTime())
	}
	if c.number > s.claim.number {
		s.claim = c
	}
	s.handed, s.lost, s.opening, s.marked = nil, false, true, k.now().UTC()
}

// handOver stores what the streams of an agent have been sent, for a stream of another server,
// which claims the gap then. From there on that server keeps it. False means that this server
// does not have the gap.
func (k *gapKeeper) handOver(ctx context.Context, key gapKey) (Gap, bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeTime)
	defer cancel()
	k.mu.Lock()
	s := k.slots[key]
	if k.closed || s == nil || s.lost {
		k.mu.Unlock()
		return Gap{}, false, nil
	}
	g, found := s.take(k.eventTime())
	if !found {
		k.mu.Unlock()
		return Gap{}, false, nil
	}
	s.handed = &g
	err := k.storeAndUnlock(ctx, key, s)
	if errors.Is(err, errElsewhere) {
		return Gap{}, false, nil
	}
	return g, true, err
}
