// Package migration copies a store into another one, whatever engines they have, key by key
// and with the sequences of all scopes.
//
// A [Frozen] yields everything that it holds in the order of the keys, a [Target] is a store
// that cannot be used until it is complete. Since keys come in order and are written in
// order, the last key of a target is where a copy that was cut off goes on. What is there in
// the end is compared: the number, the bytes and a digest of all keys and values of each
// keyspace, on both sides. A keyspace that differs, as where the source was changed between
// two attempts, is copied once more from its beginning; then it must be the same.
package migration

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"iter"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Frozen is a store that does not change meanwhile.
type Frozen interface {
	kv.Monitored
	// Raw yields the pairs of a keyspace behind a key, nil for all, in the order of their
	// keys. The sequence of a scope is a pair, too: under kv.SequenceKey stand the
	// sequence and, unless it is zero, the token behind it, both be64.
	Raw(ctx context.Context, ks kv.Keyspace, after []byte) iter.Seq2[kv.Pair, error]
}

// Target is a store that is being made.
type Target interface {
	Frozen
	// Last returns the last key of a keyspace, nil if it has none.
	Last(ctx context.Context, ks kv.Keyspace) ([]byte, error)
	// Fill writes pairs as Raw yields them, all or nothing, durably.
	Fill(ctx context.Context, ks kv.Keyspace, pairs []kv.Pair) error
	// Clear deletes everything in a keyspace.
	Clear(ctx context.Context, ks kv.Keyspace) error
	// Finish lets others use the store.
	Finish(ctx context.Context) error
}

// Bounds of one write.
const (
	fillBytes = 1 << 20
	fillPairs = 2000
)

// ErrDiffers: the copy differs from its source.
var ErrDiffers = errors.New("migration: the copy differs from its source")

// Count is what one keyspace of a store holds.
type Count struct {
	Pairs, Bytes, Sequences int64
	// Digest is the SHA-256 of all keys and values in order, each with its size before it.
	Digest string
}

// Stage is what a migration does with a keyspace.
type Stage string

// The stages, in their order.
const (
	Copying   Stage = "copying"
	Comparing Stage = "comparing"
)

// Watcher follows a migration. Its functions run on the goroutine of Run.
type Watcher struct {
	// Step is called now and then with how many pairs of a keyspace are done.
	Step func(ks kv.Keyspace, stage Stage, pairs int64)
	// Done is called for each keyspace that is there and was compared.
	Done func(ks kv.Keyspace, count Count)
	// Again is called for a keyspace that differs and is copied once more.
	Again func(ks kv.Keyspace)
}

// Run copies everything of a source into a target, compares both and finishes the target.
func Run(ctx context.Context, from Frozen, to Target, watch Watcher) error {
	m := &migration{from: from, to: to, watch: watch}
	for _, ks := range kv.Keyspaces() {
		if err := m.keyspace(ctx, ks); err != nil {
			return fmt.Errorf("%s: %w", ks, err)
		}
	}
	if condition, _ := from.Health().Condition(); condition.Failed != nil {
		return fmt.Errorf("the source may have been changed meanwhile: %w", condition.Failed)
	}
	return to.Finish(ctx)
}

type migration struct {
	from  Frozen
	to    Target
	watch Watcher
}

func (m *migration) keyspace(ctx context.Context, ks kv.Keyspace) error {
	last, err := m.to.Last(ctx, ks)
	if err != nil {
		return err
	}
	if err := m.copy(ctx, ks, last); err != nil {
		return err
	}
	count, err := m.compare(ctx, ks)
	if errors.Is(err, ErrDiffers) && last != nil {
		m.watch.Again(ks)
		if err = m.to.Clear(ctx, ks); err == nil {
			err = m.copy(ctx, ks, nil)
		}
		if err == nil {
			count, err = m.compare(ctx, ks)
		}
	}
	if err == nil {
		m.watch.Done(ks, count)
	}
	return err
}

// copy copies what a keyspace of the source has behind a key.
func (m *migration) copy(ctx context.Context, ks kv.Keyspace, after []byte) error {
	var pairs []kv.Pair
	size, done := 0, int64(0)
	flush := func() error {
		if len(pairs) == 0 {
			return nil
		}
		if err := m.to.Fill(ctx, ks, pairs); err != nil {
			return err
		}
		done += int64(len(pairs))
		m.watch.Step(ks, Copying, done)
		pairs, size = pairs[:0], 0
		return nil
	}
	for pair, err := range m.from.Raw(ctx, ks, after) {
		if err != nil {
			return fmt.Errorf("read the source: %w", err)
		}
		pairs = append(pairs, pair)
		if size += len(pair.Key) + len(pair.Value); size < fillBytes && len(pairs) < fillPairs {
			continue
		}
		if err := flush(); err != nil {
			return err
		}
	}
	return flush()
}

// compare returns what both sides hold of a keyspace, or an ErrDiffers.
func (m *migration) compare(ctx context.Context, ks kv.Keyspace) (Count, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	type result struct {
		count Count
		err   error
	}
	other := make(chan result, 1)
	go func() {
		count, err := Digest(ctx, m.from, ks, func(int64) {})
		other <- result{count, err}
	}()
	here, err := Digest(ctx, m.to, ks, func(pairs int64) { m.watch.Step(ks, Comparing, pairs) })
	if err != nil {
		stop()
	}
	there := <-other
	if err := errors.Join(err, there.err); err != nil {
		return here, err
	}
	if here != there.count {
		return here, fmt.Errorf("%w: %+v, the source %+v", ErrDiffers, here, there.count)
	}
	return here, nil
}

// stepPairs is after how many pairs Digest says how many there are.
const stepPairs = 4096

// Digest counts what a store holds of a keyspace.
func Digest(ctx context.Context, of Frozen, ks kv.Keyspace, step func(pairs int64)) (c Count, err error) {
	sum := sha256.New()
	for pair, err := range of.Raw(ctx, ks, nil) {
		if err != nil {
			return c, err
		}
		if kv.IsReserved(pair.Key) {
			c.Sequences++
		} else {
			c.Pairs++
			c.Bytes += int64(len(pair.Key) + len(pair.Value))
		}
		add(sum, pair.Key)
		add(sum, pair.Value)
		if (c.Pairs+c.Sequences)%stepPairs == 0 {
			step(c.Pairs + c.Sequences)
		}
	}
	c.Digest = hex.EncodeToString(sum.Sum(nil))
	return c, nil
}

func add(sum hash.Hash, part []byte) {
	var size [4]byte
	binary.BigEndian.PutUint32(size[:], uint32(len(part))) //nolint:gosec // far less, by the contract
	sum.Write(size[:])
	sum.Write(part)
}
