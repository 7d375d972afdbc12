package kv

import (
	"context"
	"sync/atomic"
)

// Gate bounds what tenants store. A Writer asks it before each commit of a call that is
// Bounded, and reports to it what every commit has written. All methods are safe for concurrent
// use and must not block.
type Gate interface {
	// Admit returns why a tenant may not store n bytes more; nil if it may.
	Admit(tenant string, n int) error
	// Stored counts n bytes that a commit of the tenant has written. Deletes says that it
	// has deleted something, too.
	Stored(tenant string, n int, deletes bool)
}

// bound is what a call that is bounded has in its context.
type bound struct {
	each  bool
	wrote atomic.Bool
}

// Reserver is an Engine that keeps room back for what frees room.
type Reserver interface {
	// Reserved is an ErrFull while there is no other room left. What is not bounded is
	// committed nevertheless.
	Reserved() error
}

type boundKey struct{}

// Bounded returns a context whose commits are made only while the gate of the Writer
// admits their tenant. Commits that only delete are always made, and so is what belongs to
// a call that has written already, since it would leave half of its work behind; with each
// every commit is asked for, which is for calls of any length. Without Bounded a commit is
// not asked for: expiry, sweeps, indexes and all other background work goes on when the
// store is full.
func Bounded(ctx context.Context, each bool) context.Context {
	return context.WithValue(ctx, boundKey{}, &bound{each: each})
}

func boundOf(ctx context.Context) *bound {
	b, _ := ctx.Value(boundKey{}).(*bound)
	return b
}

// admit asks the gate for what a call has staged.
func (w *Writer) admit(c *call, tx *Tx) error {
	if c.bound == nil || !tx.batch.puts || c.bound.wrote.Load() && !c.bound.each {
		return nil
	}
	if w.reserver != nil {
		if err := w.reserver.Reserved(); err != nil {
			return err
		}
	}
	if w.gate == nil {
		return nil
	}
	return w.gate.Admit(c.req.tenant(), tx.batch.size)
}

// count reports to the gate what a commit of calls has written.
func (w *Writer) count(group []*call, commit *Commit) {
	for _, c := range group {
		if c.bound != nil && c.err == nil {
			c.bound.wrote.Store(true)
		}
	}
	if w.gate != nil && commit.Batch.Len() > 0 {
		w.gate.Stored(commit.Guards[0].Scope.Tenant, commit.Batch.Size(), commit.Batch.deletes)
	}
}

// tenant is whose the request is.
func (r *Request) tenant() string {
	for _, refs := range [][]Ref{r.Refs, r.Blind} {
		if len(refs) > 0 {
			return refs[0].Scope.Tenant
		}
	}
	return ""
}
