package audit

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// maxLinked bounds the records that one link seals, and the spans that it says were
// removed.
const maxLinked = 256

// RemovalReason says why records were removed. The words are part of the on-disk format.
type RemovalReason string

// The reasons.
const (
	ByAge     RemovalReason = "age"     // older than they are kept
	ByErasure RemovalReason = "erasure" // records of an erased agent
)

// recordSpan are records of an epoch that follow each other: both ends are in it.
type recordSpan struct{ epoch, first, last uint64 }

func (s recordSpan) has(p recordPlace) bool {
	return s.epoch == p.epoch && s.first <= p.number && p.number <= s.last
}

// sealed is one record in a link.
type sealed struct {
	number uint64
	digest digest
}

// link seals the records of its epoch with the numbers from first to last that were
// committed. One that seals none has last = first - 1.
type link struct {
	recordPlace
	time        time.Time
	before      recordPlace // the link before it; zero for the tenant's first
	prev        digest      // of that link
	first, last uint64
	records     []sealed
	removed     []recordSpan
	reason      RemovalReason // of the removal
	beside      bool          // another server may have written links since before
	head        digest        // of the link itself
}

// encode writes the link, and sets its head. Epoch and number stand in the key; the value ends
// with the head, of 32 bytes.
func (l *link) encode(key []byte) []byte {
	m := &storev1.AuditLink{
		Time: wire.Micros(l.time), PreviousEpoch: l.before.epoch, PreviousNumber: l.before.number, PreviousHead: l.prev[:],
		First: l.first, Last: l.last, Why: string(l.reason), Shared: l.beside,
	}
	for _, r := range l.records {
		m.Records = append(m.Records, &storev1.Sealed{Number: r.number, Digest: r.digest[:]})
	}
	for _, s := range l.removed {
		m.Removed = append(m.Removed, &storev1.Removed{Epoch: s.epoch, First: s.first, Last: s.last})
	}
	dst := wire.Marshal(m)
	l.head = digestOf(key, dst)
	return append(dst, l.head[:]...)
}

// decodeLink reads what encode wrote under a key, and checks the head.
func decodeLink(key, value []byte) (link, error) {
	var l link
	var tag byte
	if tag, l.recordPlace = placeOf(key); tag != tagLink || len(value) < sha256.Size {
		return link{}, fmt.Errorf("%w: no link", ErrDamaged)
	}
	body := value[:len(value)-sha256.Size]
	if l.head = digestOf(key, body); !bytes.Equal(l.head[:], value[len(body):]) {
		return l, fmt.Errorf("%w: the link does not have the digest that it says", ErrDamaged)
	}
	var m storev1.AuditLink
	if err := wire.Unmarshal(body, &m); err != nil {
		return l, fmt.Errorf("%w: link: %w", ErrDamaged, err)
	}
	l.time, l.before, l.first, l.last = wire.TimeOf(m.Time), recordPlace{m.PreviousEpoch, m.PreviousNumber}, m.First, m.Last
	l.reason, l.beside = RemovalReason(m.Why), m.Shared
	copy(l.prev[:], m.PreviousHead)
	for _, s := range m.Records {
		r := sealed{number: s.Number}
		copy(r.digest[:], s.Digest)
		l.records = append(l.records, r)
	}
	for _, s := range m.Removed {
		l.removed = append(l.removed, recordSpan{s.Epoch, s.First, s.Last})
	}
	return l, nil
}
