package history

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// AppendFold appends the stored form of a fold to dst.
func AppendFold(dst []byte, f Fold) []byte {
	m := &storev1.Fold{
		Rules: f.Policy, Batch: f.Batch, Reason: uint64(f.Reason), Level: uint64(f.Level), Decided: f.Through, MadeAt: f.Seen,
		Text: f.Text, References: f.Refs, Tokens: uint64(f.Tokens), TokensBefore: uint64(f.Before), Turns: uint64(f.Turns),
		Calls: uint64(f.Calls), CutCalls: uint64(f.Cuts), OriginalTokens: uint64(f.Original), Digest: []byte(f.Digest),
	}
	for _, s := range f.Spans {
		m.Runs = append(m.Runs, &storev1.Run{First: s.First, More: s.Last - s.First})
	}
	return append(dst, wire.Marshal(m)...)
}

// DecodeFold reads what AppendFold wrote. Fields of later versions are skipped;
// bytes that are no fold are ErrDamaged. The fold shares no memory with stored.
func DecodeFold(stored []byte) (Fold, error) {
	var m storev1.Fold
	if err := wire.Unmarshal(stored, &m); err != nil {
		return Fold{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	f := Fold{
		Policy: m.Rules, Batch: m.Batch, Reason: Reason(min(m.Reason, 255)), Level: int(min(m.Level, 255)), Through: m.Decided,
		Seen: m.MadeAt, Text: m.Text, Refs: m.References, Tokens: count(m.Tokens), Before: count(m.TokensBefore), Turns: count(m.Turns),
		Calls: count(m.Calls), Cuts: count(m.CutCalls), Original: count(m.OriginalTokens), Digest: string(m.Digest),
	}
	for _, run := range m.Runs {
		f.Spans = append(f.Spans, Span{run.First, run.First + run.More})
	}
	if err := f.check(); err != nil {
		return Fold{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return f, nil
}

// count is a number that fits everywhere.
func count(n uint64) int { return int(min(n, 1<<31-1)) }

// check reports whether a fold can stand in a history.
func (f *Fold) check() error {
	before := uint64(0)
	for _, s := range f.Spans {
		if s.First <= before || s.Last < s.First {
			return errors.New("spans are out of order")
		}
		before = s.Last
	}
	switch {
	case before == 0:
		return errors.New("no spans")
	case f.Level < LevelLines || f.Text == "" || !utf8.ValidString(f.Text):
		return errors.New("no level or no text")
	}
	return nil
}
