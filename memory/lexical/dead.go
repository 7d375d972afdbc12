package lexical

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// deadPerChunk is how many ordinals share a key of the dead set. A death
// writes one chunk, which takes at most 2 KiB; a reader reads all of them.
const deadPerChunk = 16 << 10

// bitset is a set of ordinals or slots.
type bitset []uint64

func (s *bitset) reset(n int) {
	words := (n + 63) / 64
	if cap(*s) < words {
		*s = make(bitset, words)
		return
	}
	*s = (*s)[:words]
	clear(*s)
}

func (s bitset) set(i uint32)      { s[i/64] |= 1 << (i % 64) }
func (s bitset) has(i uint32) bool { return s[i/64]&(1<<(i%64)) != 0 }

// contains is has for any number, whatever the size of the set.
func (s bitset) contains(i uint32) bool { return int(i/64) < len(s) && s.has(i) }

// count is how many numbers from first to last are in the set.
func (s bitset) count(first, last uint32) (n uint64) {
	for i := first; i <= last && int(i/64) < len(s); {
		if i%64 == 0 && last-i >= 63 {
			n += uint64(bits.OnesCount64(s[i/64]))
			i += 64
			continue
		}
		if s.has(i) {
			n++
		}
		i++
	}
	return n
}

// The forms of a chunk of the dead set: which takes less room is used.
const (
	deadListed = 1 // steps from one to the next, uvarint
	deadBits   = 2 // a bit for each, the lowest first
)

// encodeDead packs a chunk of the dead set, its first ordinal being bit zero.
func encodeDead(set bitset) []byte {
	listed := append(binary.AppendUvarint(nil, layout), deadListed)
	last := -1
	for i := range deadPerChunk {
		if set.contains(uint32(i)) {
			listed = binary.AppendUvarint(listed, uint64(i-last))
			last = i
		}
	}
	if len(listed) <= deadPerChunk/8 {
		return listed
	}
	plain := append(binary.AppendUvarint(nil, layout), deadBits)
	for _, word := range set {
		plain = binary.LittleEndian.AppendUint64(plain, word)
	}
	return plain
}

// decodeDead reads a chunk into set, whose bit zero is the chunk's first
// ordinal. Nil is an empty chunk.
func decodeDead(b []byte, set bitset) error {
	if b == nil {
		return nil
	}
	p := parser{bytes: b}
	if err := p.format(); err != nil {
		return fmt.Errorf("%w: dead documents", err)
	}
	form := p.uint()
	switch form {
	case deadListed:
		for at := uint64(0); !p.done(); {
			step := p.uint()
			if at += step; step == 0 || at > deadPerChunk || int((at-1)/64) >= len(set) {
				p.fail()
				break
			}
			set.set(uint32(at - 1))
		}
	case deadBits:
		rest := p.take(uint64(len(b) - p.at))
		if len(rest)%8 != 0 || len(rest) > deadPerChunk/8 {
			p.fail()
			break
		}
		for i := 0; i < len(rest); i += 8 {
			word := binary.LittleEndian.Uint64(rest[i:])
			if i/8 >= len(set) && word != 0 {
				p.fail()
				break
			}
			if word != 0 {
				set[i/8] = word
			}
		}
	default:
		p.fail()
	}
	if p.bad {
		return fmt.Errorf("%w: dead documents", ErrDamaged)
	}
	return nil
}

// deadSet is the dead among the ordinals of some chunks, by chunk.
type deadSet map[uint32]bitset

func (d deadSet) has(ordinal uint32) bool {
	return d[ordinal/deadPerChunk].contains(ordinal % deadPerChunk)
}

// chunks are those that have a dead document, ascending.
func (d deadSet) chunks() []uint32 { return slices.Sorted(maps.Keys(d)) }

// count is how many ordinals from first to last are dead.
func (d deadSet) count(first, last uint32) (n uint64) {
	for chunk := first / deadPerChunk; first <= last && chunk <= last/deadPerChunk; chunk++ {
		start := chunk * deadPerChunk
		n += d[chunk].count(max(first, start)-start, min(last-start, deadPerChunk-1))
	}
	return n
}

// all is how many ordinals are dead.
func (d deadSet) all() (n uint64) {
	for _, set := range d {
		n += set.count(0, deadPerChunk-1)
	}
	return n
}

// chunksOf are the chunks of the dead set with the ordinals from first to last.
func chunksOf(first, last uint32) (chunks []uint32) {
	for chunk := first / deadPerChunk; first <= last && chunk <= last/deadPerChunk; chunk++ {
		chunks = append(chunks, chunk)
	}
	return chunks
}

// readDead returns the dead among the ordinals of those chunks.
func (h head) readDead(ctx context.Context, from getter, chunks []uint32) (deadSet, error) {
	if len(chunks) == 0 {
		return deadSet{}, nil
	}
	keys := make([][]byte, len(chunks))
	for i, chunk := range chunks {
		keys[i] = h.deadSet(chunk)
	}
	values, err := from.Get(ctx, kv.Index, keys...)
	if err != nil {
		return nil, err
	}
	dead := make(deadSet)
	for i, value := range values {
		if value == nil {
			continue
		}
		set := newBitset(deadPerChunk - 1)
		if err := decodeDead(value, set); err != nil {
			return nil, err
		}
		dead[chunks[i]] = set
	}
	return dead, nil
}

// readAllDead returns all dead ordinals.
func (h head) readAllDead(ctx context.Context, from getter) (deadSet, error) {
	dead, err := h.readDead(ctx, from, chunksOf(0, h.stats.Last))
	if err != nil {
		return nil, err
	}
	if n := dead.count(1, h.stats.Last); n != h.stats.Dead || n != dead.all() {
		return nil, fmt.Errorf("%w: %d dead documents instead of %d", ErrDamaged, n, h.stats.Dead)
	}
	return dead, nil
}
