package lease

import (
	"context"
	"fmt"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// tagLease marks the only key of a lease's scope.
const tagLease = 'L'

// Name says what a lease is for. It is comparable.
type Name struct {
	tenant, owner string
	term          time.Duration
}

// Tenant names the lease of some work for a whole tenant. Work is a short name that
// never changes.
func Tenant(tenant, work string) Name { return Name{tenant, "lease/" + work, Term} }

// Scope names the lease of some work for a scope. Scopes of a part share one.
func Scope(scope kv.Scope, work string) Name {
	return Name{scope.Tenant, kv.PartOf("lease/"+work, scope.Part()), Term}
}

// Every names the lease of work that is done so often: it outlasts the pauses, so that
// one process goes on with it.
func (n Name) Every(pause time.Duration) Name {
	n.term = min(max(Term, turnsInTerm*pause), maxTerm)
	return n
}

func (n Name) ref() kv.Ref {
	return kv.Ref{Keyspace: kv.System, Scope: kv.Scope{Tenant: n.tenant, Kind: kv.OwnerSystem, Owner: n.owner}}
}

func (n Name) key() []byte { return n.ref().Scope.Key(tagLease) }

// state is a lease as it is stored. Without a holder it is free.
type state struct {
	holder string
	epoch  uint64
	until  time.Time
	term   time.Duration // that until was reckoned with
}

func (s state) encode() []byte {
	return wire.Marshal(&storev1.Lease{Holder: s.holder, Epoch: s.epoch, Until: wire.Micros(s.until), Term: uint64(s.term.Milliseconds())})
}

// read returns the stored form of a lease. One that can't be read counts as free: its
// holder finds by its name that it is no longer theirs.
func (n Name) read(ctx context.Context, get func(context.Context, kv.Keyspace, []byte) ([]byte, error)) (state, error) {
	value, err := get(ctx, kv.System, n.key())
	if err != nil {
		return state{}, fmt.Errorf("lease: read %s: %w", n.owner, err)
	}
	var m storev1.Lease
	if wire.Unmarshal(value, &m) != nil {
		return state{}, nil
	}
	term := time.Duration(min(m.Term, uint64(maxTerm.Milliseconds()))) * time.Millisecond
	return state{m.Holder, m.Epoch, wire.TimeOf(m.Until), term}, nil
}

// free reports whether somebody else may take the lease. A time that no right clock can
// have written does not bind.
func (s state) free(now time.Time) bool {
	return s.holder == "" || !now.Before(s.until.Add(MaxSkew)) || s.until.Sub(now) > s.term+MaxSkew
}
