package kv

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"time"
)

// ErrRequestReused: a request id came again with other content.
var ErrRequestReused = errors.New("kv: request id was used before with other content")

// MaxRequestIDBytes bounds a request id.
const MaxRequestIDBytes = 128

// onceTag marks the keys of answered requests, in every keyspace.
const onceTag = 'q'

// A kept request is: digest (32 bytes), acknowledgement time (8 bytes, big
// endian, nanoseconds since the epoch), answer.
const (
	onceDigest = 32
	onceHeader = onceDigest + 8
)

// LookupOnce looks for the answer a request got before under ref. An empty id
// is always new. The same id with the same digest returns the kept answer and
// true; with another digest it is ErrRequestReused.
func LookupOnce(ctx context.Context, from Getter, ref Ref, requestID string, digest [32]byte) ([]byte, bool, error) {
	if requestID == "" {
		return nil, false, nil
	}
	if len(requestID) > MaxRequestIDBytes {
		return nil, false, &LimitError{What: "request id", Size: len(requestID), Limit: MaxRequestIDBytes}
	}
	values, err := from.Get(ctx, ref.Keyspace, AnswerKey(ref, requestID))
	if err != nil || values[0] == nil {
		return nil, false, err
	}
	kept := values[0]
	if len(kept) < onceHeader {
		return nil, false, ErrDamaged
	}
	if !bytes.Equal(kept[:onceDigest], digest[:]) {
		return nil, false, ErrRequestReused
	}
	return kept[onceHeader:], true, nil
}

// StageOnce keeps the answer of a request, so that LookupOnce finds it, until the
// sweeper of the package answers deletes it. An empty id keeps nothing. Stage it in the
// commit that does the request's work.
func StageOnce(tx *Tx, ref Ref, requestID string, digest [32]byte, answer []byte, at time.Time) {
	if requestID == "" {
		return
	}
	value := make([]byte, 0, onceHeader+len(answer))
	value = append(value, digest[:]...)
	value = binary.BigEndian.AppendUint64(value, uint64(at.UnixNano()))
	tx.Put(ref.Keyspace, AnswerKey(ref, requestID), append(value, answer...))
}

// AnswerKey is the key of the answer that is kept for a request.
func AnswerKey(ref Ref, requestID string) []byte { return ref.Scope.Key(onceTag, []byte(requestID)) }

// AnswersOf is the range of the keys of a scope's kept answers.
func AnswersOf(s Scope) Range { return Prefix(s.Key(onceTag)) }

// AnswerIn is what is kept of an answer, and when it was given; nothing of one that can't be
// read.
func AnswerIn(kept []byte) (answer []byte, at time.Time) {
	if len(kept) < onceHeader {
		return nil, time.Time{}
	}
	return kept[onceHeader:], time.Unix(0, int64(binary.BigEndian.Uint64(kept[onceDigest:]))) //nolint:gosec // what StageOnce wrote
}

// AnsweredBefore reports whether a kept answer was given before a time; false for one that
// can't be read.
func AnsweredBefore(kept []byte, before time.Time) bool {
	return len(kept) >= onceHeader && int64(binary.BigEndian.Uint64(kept[onceDigest:])) < before.UnixNano()
}
