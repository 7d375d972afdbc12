package session

import (
	"context"

	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// MaxPromptIDBytes bounds the id of a prompt, which the server made.
const MaxPromptIDBytes = 128

// SaveAnchor keeps what a provider counted of the session's last prompt; it
// takes the place of the one before. It survives the death of the process but
// is not synced: without it the next prompt is counted a little less exactly.
func (l *Log) SaveAnchor(ctx context.Context, scope kv.Scope, session string, a tokens.Anchor) error {
	session, err := sessionID(session)
	if err != nil {
		return err
	}
	switch {
	case len(a.Model) > MaxModelBytes:
		return invalid.Field(ErrInvalid, "model", "is longer than %d bytes", MaxModelBytes)
	case len(a.ID) > MaxPromptIDBytes:
		return invalid.Field(ErrInvalid, "prompt_id", "is longer than %d bytes", MaxPromptIDBytes)
	case a.Local < 0 || a.Real < 0 || a.Answer < 0:
		return invalid.Field(ErrInvalid, "prompt_tokens", "are negative")
	}
	err = l.writer.Do(ctx, kv.Request{
		Blind: []kv.Ref{l.Ref(scope)},
		Stage: func(_ context.Context, tx *kv.Tx) error {
			tx.Put(kv.Log, anchorKey(scope, session), encodeAnchor(a))
			return nil
		},
		Lazy: true,
	})
	return wrap("save anchor", err)
}

// Anchor returns what SaveAnchor kept last, or the zero Anchor.
func (l *Log) Anchor(ctx context.Context, scope kv.Scope, session string) (tokens.Anchor, error) {
	return readOne(ctx, l, scope, session, "anchor", anchorKey, decodeAnchor)
}

func encodeAnchor(a tokens.Anchor) []byte {
	return wire.Marshal(&storev1.Anchor{
		Model: a.Model, Prompt: a.ID, Counted: uint64(a.Local), Reported: uint64(a.Real), Answer: uint64(a.Answer),
	})
}

func decodeAnchor(value []byte) (tokens.Anchor, error) {
	var m storev1.Anchor
	if err := wire.Unmarshal(value, &m); err != nil {
		return tokens.Anchor{}, damaged(err)
	}
	return tokens.Anchor{Model: m.Model, ID: m.Prompt, Local: count(m.Counted), Real: count(m.Reported), Answer: count(m.Answer)}, nil
}

// maxCount is the largest count that is kept; larger ones are read as it.
const maxCount = 1<<31 - 1

// count is a stored number of things.
func count(n uint64) int { return int(min(n, maxCount)) }
