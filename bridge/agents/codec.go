package agents

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

func encodeState(s State) []byte {
	return wire.Marshal(&storev1.AgentState{
		Persistent: s.Persistent, Ephemeral: s.Ephemeral, Time: s.UpdatedMillis, Metadata: wire.Pairs(s.Metadata),
	})
}

func decodeState(b []byte) (State, error) {
	var m storev1.AgentState
	if err := wire.Unmarshal(b, &m); err != nil {
		return State{}, damaged(err)
	}
	return State{Persistent: m.Persistent, Ephemeral: m.Ephemeral, UpdatedMillis: m.Time, Metadata: wire.MapOf(m.Metadata)}, nil
}

// storedGap is a gap as it is stored; Ended is zero while the stream is open.
type storedGap struct {
	Gap
	marked time.Time
	claim  claim
}

// encodeGap leaves the ids out while the stream is open: they would be most of the bytes of
// every rewrite.
func encodeGap(g storedGap) []byte {
	m := &storev1.Gap{
		Time: wire.Micros(g.marked), Broke: wire.Micros(g.Ended), Older: wire.Micros(g.Since), Holder: g.claim.holder, Claim: g.claim.number,
	}
	for _, topic := range slices.Sorted(maps.Keys(g.Delivered)) {
		m.Topics = append(m.Topics, &storev1.GapTopic{Name: topic, Sequence: g.Delivered[topic]})
	}
	if !g.Ended.IsZero() {
		m.Ids = g.RecentIDs
	}
	return wire.Marshal(m)
}

func decodeGap(b []byte) (storedGap, error) {
	var m storev1.Gap
	if err := wire.Unmarshal(b, &m); err != nil {
		return storedGap{}, damaged(err)
	}
	g := storedGap{
		Gap:    Gap{Ended: wire.TimeOf(m.Broke), Since: wire.TimeOf(m.Older), RecentIDs: m.Ids},
		marked: wire.TimeOf(m.Time), claim: claim{m.Holder, m.Claim},
	}
	if len(m.Topics) > 0 {
		g.Delivered = make(map[string]uint64, len(m.Topics))
	}
	for _, topic := range m.Topics {
		g.Delivered[topic.Name] = topic.Sequence
	}
	return g, nil
}

// empty reports whether a stream has claimed the gap and has not been marked yet.
func (g *storedGap) empty() bool {
	return !g.claim.isZero() && g.Ended.IsZero() && g.Since.IsZero() && len(g.Delivered) == 0
}

// gap is the gap as its taker sees it: a stream that left it open ended with its
// last mark.
func (g storedGap) gap() Gap {
	if g.Ended.IsZero() {
		g.Ended = g.marked
	}
	return g.Gap
}

// Check reads the stored state of an agent back, or the gaps of a tenant's agents,
// whichever stand in the scope. found is called for each fault; the error is only why
// the check could not go on.
func Check(ctx context.Context, from kv.Reader, scope kv.Scope, found func(error)) error {
	var state []byte
	parts := 0
	err := kv.Walk(ctx, from, kv.System, kv.Prefix(scope.Key(tagState)), found, func(p kv.Pair) error {
		state = append(state, p.Value...)
		parts++
		return nil
	})
	if err != nil {
		return err
	}
	if parts > 0 {
		if _, err := decodeState(state); err != nil {
			found(err)
		}
	}
	if scope != gapRef(scope.Tenant).Scope {
		return nil
	}
	return kv.Walk(ctx, from, kv.System, kv.Prefix(scope.Key(tagGap)), found, func(p kv.Pair) error {
		_, err := decodeGap(p.Value)
		return err
	})
}
