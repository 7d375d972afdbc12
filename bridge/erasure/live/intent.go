package live

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/erasure"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// The fields of an intent (memory/FORMAT.md).
const (
	fieldKind = iota + 1
	fieldID
	fieldSession
	fieldFilter
	fieldBegan
	fieldEntries
	fieldBytes
	fieldCount
	fieldShared
	fieldMemory
	fieldDigest
	fieldStep
	fieldQuoted
)

// The fields of a count.
const (
	fieldCountKind = iota + 1
	fieldCountNumber
)

// intent is an erasure that has begun and has not ended.
type intent struct {
	subject erasure.Subject
	began   time.Time
	// found is what there was when it began, quoted who else had lines of a step then.
	found  erasure.Found
	quoted map[string]int64
	// memories lose records or names, and are gone through again by whoever goes on. digests
	// stand for the records that go.
	memories []kv.Scope
	digests  []string
}

func refOf(subject kv.Scope) kv.Ref { return erasure.Erasures.Ref(subject) }

// keyOf is where the intent of a subject stands: a filter and a session may be longer than a
// key.
func keyOf(s erasure.Subject, scope kv.Scope) []byte {
	sum := sha256.Sum256(encodeSubject(s))
	return refOf(scope).Scope.Key(erasure.ErasureTag, sum[:])
}

func encodeSubject(s erasure.Subject) []byte {
	b := wire.AppendText(nil, fieldKind, string(s.Kind))
	b = wire.AppendText(b, fieldID, s.ID)
	b = wire.AppendText(b, fieldSession, s.Session)
	b = wire.AppendText(b, fieldFilter, s.Filter)
	b = wire.AppendText(b, fieldShared, string(s.Shared))
	return wire.AppendUint(b, fieldStep, s.Step)
}

func (i *intent) encode() []byte {
	b := wire.AppendTime(encodeSubject(i.subject), fieldBegan, i.began)
	b = wire.AppendInt(b, fieldEntries, i.found.Entries)
	b = wire.AppendInt(b, fieldBytes, i.found.Bytes)
	b = appendCounts(b, fieldCount, i.found.Counts)
	for _, m := range i.memories {
		b = wire.AppendItem(b, fieldMemory, string(rune(m.Kind))+m.Owner)
	}
	for _, d := range i.digests {
		raw, _ := hex.DecodeString(d) // which it is
		b = wire.AppendItem(b, fieldDigest, raw)
	}
	return appendCounts(b, fieldQuoted, i.quoted)
}

func appendCounts(b []byte, field int, counts map[string]int64) []byte {
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		count := wire.AppendInt(wire.AppendText(nil, fieldCountKind, kind), fieldCountNumber, counts[kind])
		b = wire.AppendItem(b, field, count)
	}
	return b
}

func decodeCount(message []byte) (kind string, n int64, err error) {
	for f, err := range wire.Fields(message) {
		if err != nil {
			return "", 0, err
		}
		switch f.Number {
		case fieldCountKind:
			kind = string(f.Bytes)
		case fieldCountNumber:
			n = f.Int()
		}
	}
	return kind, n, nil
}

func decodeIntent(tenant string, value []byte) (i intent, err error) {
	i.subject.Tenant, i.found.Counts = tenant, make(map[string]int64)
	for f, err := range wire.Fields(value) {
		if err != nil {
			return i, fmt.Errorf("%w: an intent to erase: %w", kv.ErrDamaged, err)
		}
		switch f.Number {
		case fieldKind:
			i.subject.Kind = erase.Kind(f.Bytes)
		case fieldID:
			i.subject.ID = string(f.Bytes)
		case fieldSession:
			i.subject.Session = string(f.Bytes)
		case fieldFilter:
			i.subject.Filter = string(f.Bytes)
		case fieldShared:
			i.subject.Shared = erase.Shared(f.Bytes)
		case fieldMemory:
			if len(f.Bytes) > 1 {
				i.memories = append(i.memories, kv.Scope{Tenant: tenant, Kind: kv.OwnerKind(f.Bytes[0]), Owner: string(f.Bytes[1:])})
			}
		case fieldDigest:
			i.digests = append(i.digests, hex.EncodeToString(f.Bytes))
		case fieldBegan:
			i.began = f.Time()
		case fieldEntries:
			i.found.Entries = f.Int()
		case fieldBytes:
			i.found.Bytes = f.Int()
		case fieldStep:
			i.subject.Step = f.Value
		case fieldCount, fieldQuoted:
			kind, n, err := decodeCount(f.Bytes)
			switch {
			case err != nil:
				return i, fmt.Errorf("%w: an intent to erase: %w", kv.ErrDamaged, err)
			case f.Number == fieldCount:
				i.found.Counts[kind] = n
			case i.quoted == nil:
				i.quoted = map[string]int64{kind: n}
			default:
				i.quoted[kind] = n
			}
		}
	}
	if err := erasure.Check(i.subject); err != nil {
		return i, fmt.Errorf("%w: an intent to erase: %w", kv.ErrDamaged, err)
	}
	return i, nil
}

// intents are the erasures of a store that have not ended.
func intents(ctx context.Context, engine kv.Engine) (all []intent, err error) {
	for scope, err := range erasure.Erasures.Scopes(ctx, engine) {
		if err != nil {
			return nil, err
		}
		for p, err := range engine.Scan(ctx, kv.System, kv.Prefix(scope.Key(erasure.ErasureTag))) {
			if err != nil {
				return nil, err
			}
			i, err := decodeIntent(scope.Tenant, p.Value)
			if err != nil {
				return nil, err
			}
			all = append(all, i)
		}
	}
	return all, nil
}

// stored is the intent of a subject; false where there is none.
func (w *Worker) stored(ctx context.Context, s erasure.Subject, scope kv.Scope) (i intent, found bool, err error) {
	values, err := w.Engine.Get(ctx, kv.System, keyOf(s, scope))
	if err != nil || values[0] == nil {
		return i, false, err
	}
	i, err = decodeIntent(s.Tenant, values[0])
	return i, err == nil, err
}

// note writes an intent, or deletes it.
func (w *Worker) note(ctx context.Context, i *intent, scope kv.Scope, deleted bool) error {
	key := keyOf(i.subject, scope)
	return w.Writer.Do(ctx, kv.Request{Refs: []kv.Ref{refOf(scope)}, Stage: func(_ context.Context, tx *kv.Tx) error {
		if deleted {
			tx.Delete(kv.System, key)
		} else {
			tx.Put(kv.System, key, i.encode())
		}
		return nil
	}})
}
