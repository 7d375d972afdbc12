package session

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// MaxPromptIDBytes bounds the id of a prompt, which the server made.
const MaxPromptIDBytes = 128

// Fields of a stored anchor.
const (
	fieldAnchorModel = iota + 1
	fieldAnchorID
	fieldAnchorLocal
	fieldAnchorReal
	fieldAnchorAnswer
)

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
	if err != nil {
		return fmt.Errorf("session: save anchor: %w", err)
	}
	return nil
}

// Anchor returns what SaveAnchor kept last, or the zero Anchor.
func (l *Log) Anchor(ctx context.Context, scope kv.Scope, session string) (tokens.Anchor, error) {
	session, err := scoped(scope, session)
	if err != nil {
		return tokens.Anchor{}, err
	}
	value, err := l.get(ctx, anchorKey(scope, session))
	if err != nil {
		return tokens.Anchor{}, fmt.Errorf("session: read anchor: %w", err)
	}
	return decodeAnchor(value)
}

func encodeAnchor(a tokens.Anchor) []byte {
	dst := wire.AppendText(nil, fieldAnchorModel, a.Model)
	dst = wire.AppendText(dst, fieldAnchorID, a.ID)
	dst = wire.AppendUint(dst, fieldAnchorLocal, uint64(a.Local))
	dst = wire.AppendUint(dst, fieldAnchorReal, uint64(a.Real))
	return wire.AppendUint(dst, fieldAnchorAnswer, uint64(a.Answer))
}

func decodeAnchor(value []byte) (tokens.Anchor, error) {
	var a tokens.Anchor
	for f, err := range wire.Fields(value) {
		if err != nil {
			return tokens.Anchor{}, damaged(err)
		}
		switch f.Number {
		case fieldAnchorModel:
			a.Model = string(f.Bytes)
		case fieldAnchorID:
			a.ID = string(f.Bytes)
		case fieldAnchorLocal:
			a.Local = count(f)
		case fieldAnchorReal:
			a.Real = count(f)
		case fieldAnchorAnswer:
			a.Answer = count(f)
		}
	}
	return a, nil
}

// maxCount is the largest count that is kept; larger ones are read as it.
const maxCount = 1<<31 - 1

// count is a stored number of things.
func count(f wire.Field) int { return int(min(f.Value, maxCount)) }
