package kv

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"
)

// LookupOnceOf is LookupOnce for a request id that belongs to one agent of several
// that share a scope: another one's same id is another request. Without an agent it
// is LookupOnce.
func LookupOnceOf(ctx context.Context, from Getter, ref Ref, agent, requestID string, digest [32]byte) ([]byte, bool, error) {
	if agent == "" || requestID == "" {
		return LookupOnce(ctx, from, ref, requestID, digest)
	}
	answer, replayed, err := LookupOnce(ctx, from, ref, OnceKey(agent, requestID), digest)
	if replayed || err != nil {
		return answer, replayed, err
	}
	// Stores of older versions have the ids of all agents under their own names; the
	// digest says whose it is.
	if answer, replayed, err = LookupOnce(ctx, from, ref, requestID, digest); errors.Is(err, ErrRequestReused) {
		return nil, false, nil
	}
	return answer, replayed, err
}

// ForeseeOnceOf adds what LookupOnceOf reads.
func ForeseeOnceOf(along *Reads, ref Ref, agent, requestID string) {
	if requestID == "" || len(requestID) > MaxRequestIDBytes {
		return
	}
	along.Get(ref.Keyspace, AnswerKey(ref, requestID))
	if agent != "" {
		along.Get(ref.Keyspace, AnswerKey(ref, OnceKey(agent, requestID)))
	}
}

// StageOnceOf is StageOnce for LookupOnceOf.
func StageOnceOf(tx *Tx, ref Ref, agent, requestID string, digest [32]byte, answer []byte, at time.Time) {
	StageOnce(tx, ref, OnceKey(agent, requestID), digest, answer, at)
}

// OnceKey is the request id that an agent's one is kept under.
func OnceKey(agent, requestID string) string {
	if agent == "" || requestID == "" {
		return requestID
	}
	h := sha256.New()
	for _, text := range []string{agent, requestID} {
		_ = binary.Write(h, binary.BigEndian, uint64(len(text))) // a hash takes everything
		h.Write([]byte(text))
	}
	return hex.EncodeToString(h.Sum(nil))
}
