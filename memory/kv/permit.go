package kv

import (
	"bytes"
	"context"
)

// Permit is what a key must have so that a call may write. A call that meets it on its
// way, in a round trip that it makes anyway, need not read the key before it begins.
type Permit struct {
	Keyspace Keyspace
	Key      []byte
	// Check returns why the call may not go on with what the key has; nil is missing.
	Check func(value []byte) error
}

type permitKey struct{}

// WithPermit binds the calls of ctx to a permit: each commit that a Writer makes for
// it is refused with the permit's error unless it is met.
func WithPermit(ctx context.Context, p *Permit) context.Context {
	return context.WithValue(ctx, permitKey{}, p)
}

// PermitOf is the condition that calls of ctx are bound to; nil for none.
func PermitOf(ctx context.Context) *Permit {
	p, _ := ctx.Value(permitKey{}).(*Permit)
	return p
}

// Foresee adds what Meet reads.
func (p *Permit) Foresee(along *Reads) {
	if p != nil {
		along.Get(p.Keyspace, p.Key)
	}
}

// Meet returns the error of the permit as a reader has it.
func (p *Permit) Meet(ctx context.Context, from Getter) error {
	if p == nil {
		return nil
	}
	values, err := from.Get(ctx, p.Keyspace, p.Key)
	if err != nil {
		return err
	}
	return p.Check(values[0])
}

// Of reports whether the permit is about a key.
func (p *Permit) Of(ks Keyspace, key []byte) bool {
	return p != nil && p.Keyspace == ks && bytes.Equal(p.Key, key)
}
