package audit

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// maxLinked bounds the records that one link seals, and the spans that it says were
// removed.
const maxLinked = 256

// Reason says why records were removed. The words are part of the on-disk format.
type Reason string

// The reasons.
const (
	ByAge     Reason = "age"     // older than they are kept
	ByErasure Reason = "erasure" // those of an agent that was erased
)

// span are records of an epoch that follow each other: both ends are in it.
type span struct{ epoch, first, last uint64 }

func (s span) has(p place) bool {
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
	place
	time        time.Time
	before      place  // the link before it; zero for the tenant's first
	prev        digest // of that link
	first, last uint64
	records     []sealed
	removed     []span
	reason      Reason // of the removal
	beside      bool   // another server may have written links since before
	head        digest // of the link itself
}

// Fields of a stored link (memory/FORMAT.md). Epoch and number stand in the key. The value
// ends with its head, of 32 bytes.
const (
	fieldLinkTime = iota + 1
	fieldLinkBeforeEpoch
	fieldLinkBeforeNumber
	fieldLinkPrev
	fieldLinkFirst
	fieldLinkLast
	fieldLinkRecord
	fieldLinkRemoved
	fieldLinkReason
	fieldLinkBeside
)

// Fields of the messages in a link.
const (
	fieldSealedNumber = 1
	fieldSealedDigest = 2
	fieldSpanEpoch    = 1
	fieldSpanFirst    = 2
	fieldSpanLast     = 3
)

// encode writes the link, and sets its head.
func (l *link) encode(key []byte) []byte {
	dst := wire.AppendTime(nil, fieldLinkTime, l.time)
	dst = wire.AppendUint(dst, fieldLinkBeforeEpoch, l.before.epoch)
	dst = wire.AppendUint(dst, fieldLinkBeforeNumber, l.before.number)
	dst = wire.AppendItem(dst, fieldLinkPrev, l.prev[:])
	dst = wire.AppendUint(dst, fieldLinkFirst, l.first)
	dst = wire.AppendUint(dst, fieldLinkLast, l.last)
	for _, r := range l.records {
		item := wire.AppendItem(wire.AppendUint(nil, fieldSealedNumber, r.number), fieldSealedDigest, r.digest[:])
		dst = wire.AppendItem(dst, fieldLinkRecord, item)
	}
	for _, s := range l.removed {
		item := wire.AppendUint(nil, fieldSpanEpoch, s.epoch)
		item = wire.AppendUint(item, fieldSpanFirst, s.first)
		dst = wire.AppendItem(dst, fieldLinkRemoved, wire.AppendUint(item, fieldSpanLast, s.last))
	}
	dst = wire.AppendText(dst, fieldLinkReason, l.reason)
	if l.beside {
		dst = wire.AppendNumber(dst, fieldLinkBeside, 1)
	}
	l.head = digestOf(key, dst)
	return append(dst, l.head[:]...)
}

// decodeLink reads what encode wrote under a key, and checks the head.
func decodeLink(key, value []byte) (link, error) {
	var l link
	var tag byte
	if tag, l.place = placeOf(key); tag != tagLink || len(value) < sha256.Size {
		return link{}, fmt.Errorf("%w: no link", ErrDamaged)
	}
	body := value[:len(value)-sha256.Size]
	if l.head = digestOf(key, body); !bytes.Equal(l.head[:], value[len(body):]) {
		return l, fmt.Errorf("%w: the link does not have the digest that it says", ErrDamaged)
	}
	for f, err := range wire.Fields(body) {
		if err == nil {
			err = l.set(f)
		}
		if err != nil {
			return l, fmt.Errorf("%w: link: %w", ErrDamaged, err)
		}
	}
	return l, nil
}

func (l *link) set(f wire.Field) error {
	switch f.Number {
	case fieldLinkTime:
		l.time = f.Time()
	case fieldLinkBeforeEpoch:
		l.before.epoch = f.Value
	case fieldLinkBeforeNumber:
		l.before.number = f.Value
	case fieldLinkPrev:
		copy(l.prev[:], f.Bytes)
	case fieldLinkFirst:
		l.first = f.Value
	case fieldLinkLast:
		l.last = f.Value
	case fieldLinkBeside:
		l.beside = f.Value != 0
	case fieldLinkReason:
		l.reason = Reason(f.Bytes)
	case fieldLinkRecord:
		var r sealed
		err := eachField(f.Bytes, func(f wire.Field) {
			switch f.Number {
			case fieldSealedNumber:
				r.number = f.Value
			case fieldSealedDigest:
				copy(r.digest[:], f.Bytes)
			}
		})
		l.records = append(l.records, r)
		return err
	case fieldLinkRemoved:
		var s span
		err := eachField(f.Bytes, func(f wire.Field) {
			switch f.Number {
			case fieldSpanEpoch:
				s.epoch = f.Value
			case fieldSpanFirst:
				s.first = f.Value
			case fieldSpanLast:
				s.last = f.Value
			}
		})
		l.removed = append(l.removed, s)
		return err
	}
	return nil
}

func eachField(message []byte, do func(wire.Field)) error {
	for f, err := range wire.Fields(message) {
		if err != nil {
			return err
		}
		do(f)
	}
	return nil
}
