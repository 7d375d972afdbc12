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
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// intent is an erasure that has begun and has not ended.
type intent struct {
	subject erasure.Subject
	began   time.Time
	// found is what there was when it began, quoted who else had lines of a step then.
	found  erasure.Holdings
	quoted map[string]int64
	// memories lose records or names; a resumed erasure processes all of them again. digests
	// identify the records to be removed.
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
	return wire.Marshal(&storev1.Erasure{
		Kind: string(s.Kind), Id: s.ID, Session: s.Session, Filter: s.Filter, Shared: string(s.Shared), Step: s.Step,
	})
}

// encode is the subject, and behind it what else there is.
func (i *intent) encode() []byte {
	m := &storev1.Erasure{
		Time: wire.Micros(i.began), Entries: i.found.Entries, Bytes: i.found.Bytes,
		Counts: numbersOf(i.found.Counts), Quoted: numbersOf(i.quoted),
	}
	for _, of := range i.memories {
		m.Memories = append(m.Memories, string(rune(of.Kind))+of.Owner)
	}
	for _, d := range i.digests {
		raw, _ := hex.DecodeString(d) // which it is
		m.Digests = append(m.Digests, raw)
	}
	return append(encodeSubject(i.subject), wire.Marshal(m)...)
}

func numbersOf(counts map[string]int64) (numbers []*storev1.KindNumber) {
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		numbers = append(numbers, &storev1.KindNumber{Kind: kind, Number: counts[kind]})
	}
	return numbers
}

func decodeIntent(tenant string, value []byte) (i intent, err error) {
	var m storev1.Erasure
	if err := wire.Unmarshal(value, &m); err != nil {
		return i, fmt.Errorf("%w: an intent to erase: %w", kv.ErrDamaged, err)
	}
	i.subject = erasure.Subject{
		Tenant: tenant, Kind: erase.Kind(m.Kind), ID: m.Id, Session: m.Session, Filter: m.Filter, Shared: erase.Shared(m.Shared), Step: m.Step,
	}
	i.began, i.found.Entries, i.found.Bytes, i.found.Counts = wire.TimeOf(m.Time), m.Entries, m.Bytes, make(map[string]int64)
	for _, count := range m.Counts {
		i.found.Counts[count.Kind] = count.Number
	}
	for _, count := range m.Quoted {
		if i.quoted == nil {
			i.quoted = make(map[string]int64)
		}
		i.quoted[count.Kind] = count.Number
	}
	for _, of := range m.Memories {
		if len(of) > 1 {
			i.memories = append(i.memories, kv.Scope{Tenant: tenant, Kind: kv.OwnerKind(of[0]), Owner: of[1:]})
		}
	}
	for _, d := range m.Digests {
		i.digests = append(i.digests, hex.EncodeToString(d))
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
