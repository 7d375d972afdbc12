package approval

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/policy"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// Grant is an approval that is remembered.
type Grant struct {
	// ID names it: it follows from what it covers.
	ID         string
	Capability policy.Capability
	// Scope is ForSession, ForAgent or ForAll. Agent and Session are whose it is, as far as
	// the scope says.
	Scope          Ruling
	Agent, Session string
	// Above are the agents above Agent when it was given: it holds under them alone.
	Above []string
	// By is the agent that the person spoke as, Time when.
	By   string
	Time time.Time
}

// MaxGrants bounds the grants of a tenant.
const MaxGrants = 10_000

// tagGrant is the tag of grants (memory/FORMAT.md).
const tagGrant = 'g'

func scopeOf(tenant string) kv.Scope {
	return kv.Scope{Tenant: tenant, Kind: kv.OwnerSystem, Owner: "approvals"}
}

// grant is what a request would be granted for a scope.
func grant(r Request, scope Ruling) Grant {
	g := Grant{Capability: r.Capability, Scope: scope}
	if scope != ForAll {
		g.Agent, g.Above = r.Agent, r.Above
	}
	if scope == ForSession {
		g.Session = r.Session
	}
	id := sha256.Sum256(g.identity())
	g.ID = hex.EncodeToString(id[:16])
	return g
}

// identity is what distinguishes grants.
func (g *Grant) identity() []byte {
	return wire.Marshal(&storev1.ApprovalGrant{
		Kind: g.Capability.Kind, Name: g.Capability.Name, Scope: string(g.Scope), Agent: g.Agent, Session: g.Session,
		Above: slices.DeleteFunc(slices.Clone(g.Above), func(agent string) bool { return agent == "" }),
	})
}

// covering are the capabilities that have one in them: itself, for a place all that it lies
// in, and to read a place also to write it.
func covering(c policy.Capability) []policy.Capability {
	kinds := []string{c.Kind}
	switch c.Kind {
	case policy.KindRead:
		kinds = append(kinds, policy.KindWrite)
	case policy.KindWrite:
	default:
		return []policy.Capability{c}
	}
	var all []policy.Capability
	for place := c.Name; ; place = filepath.Dir(place) {
		for _, kind := range kinds {
			all = append(all, policy.Capability{Kind: kind, Name: place})
		}
		if place == filepath.Dir(place) {
			return all
		}
	}
}

func key(tenant, id string) []byte { return scopeOf(tenant).Key(tagGrant, []byte(id)) }

// granted is the scope of a grant that covers a request; empty for none.
func (b *Broker) granted(ctx context.Context, r Request) (Ruling, error) {
	var scopes []Ruling
	var keys [][]byte
	for _, scope := range []Ruling{ForSession, ForAgent, ForAll} {
		wider := r
		for _, wider.Capability = range covering(r.Capability) {
			scopes, keys = append(scopes, scope), append(keys, key(r.Tenant, grant(wider, scope).ID))
		}
	}
	values, err := b.engine.Get(ctx, kv.System, keys...)
	if err != nil {
		return "", fmt.Errorf("approval: look for a grant: %w", err)
	}
	for i, value := range values {
		if value != nil {
			return scopes[i], nil
		}
	}
	return "", nil
}

// remember writes a grant.
func (b *Broker) remember(ctx context.Context, by Decider, r Request, scope Ruling) error {
	g := grant(r, scope)
	value := append(g.identity(), wire.Marshal(&storev1.ApprovalGrant{By: by.Agent, Time: wire.Micros(b.now())})...)
	ref := kv.Ref{Keyspace: kv.System, Scope: scopeOf(r.Tenant)}
	err := b.writer.Do(ctx, kv.Request{Refs: []kv.Ref{ref}, Stage: func(ctx context.Context, tx *kv.Tx) error {
		all, count := kv.Prefix(scopeOf(r.Tenant).Key(tagGrant)), 0
		for pair, err := range tx.Scan(ctx, kv.System, all) {
			if err != nil {
				return err
			}
			if !bytes.Equal(pair.Key, key(r.Tenant, g.ID)) { // which is renewed
				count++
			}
		}
		if count >= MaxGrants {
			return &kv.LimitError{What: "remembered approvals", Size: count + 1, Limit: MaxGrants}
		}
		tx.Put(kv.System, key(r.Tenant, g.ID), value)
		return nil
	}})
	if err != nil {
		return fmt.Errorf("approval: remember: %w", err)
	}
	return nil
}

// Grants returns the grants that by may see, by their ids.
func (b *Broker) Grants(ctx context.Context, by Decider) ([]Grant, error) {
	var out []Grant
	for pair, err := range b.engine.Scan(ctx, kv.System, kv.Prefix(scopeOf(by.Tenant).Key(tagGrant))) {
		var g Grant
		if err == nil {
			g, err = decode(pair)
		}
		if err != nil {
			return nil, fmt.Errorf("approval: list: %w", err)
		}
		if by.may(g) {
			out = append(out, g)
		}
	}
	return out, nil
}

// may reports whether the decider may see and revoke a grant.
func (d Decider) may(g Grant) bool { return d.All || g.Scope != ForAll && d.Approves(g.Agent) }

// Revoke takes a grant back: the next call is asked for again.
func (b *Broker) Revoke(ctx context.Context, by Decider, id string) error {
	ref := kv.Ref{Keyspace: kv.System, Scope: scopeOf(by.Tenant)}
	err := b.writer.Do(ctx, kv.Request{Refs: []kv.Ref{ref}, Stage: func(ctx context.Context, tx *kv.Tx) error {
		at := key(by.Tenant, id)
		values, err := tx.Get(ctx, kv.System, at)
		if err != nil {
			return err
		}
		var g Grant
		if values[0] != nil {
			g, err = decode(kv.Pair{Key: at, Value: values[0]})
		}
		if err != nil {
			return err
		}
		if values[0] == nil || !by.may(g) {
			return fmt.Errorf("%w: no approval is remembered as %q", ErrNotFound, id)
		}
		tx.Delete(kv.System, at)
		return nil
	}})
	if err != nil {
		return fmt.Errorf("approval: revoke: %w", err)
	}
	return nil
}

func decode(pair kv.Pair) (Grant, error) {
	_, rest, err := kv.SplitKey(pair.Key)
	if err != nil {
		return Grant{}, err
	}
	var m storev1.ApprovalGrant
	if err := wire.Unmarshal(pair.Value, &m); err != nil {
		return Grant{}, err
	}
	return Grant{
		ID: string(rest[1:]), Capability: policy.Capability{Kind: m.Kind, Name: m.Name}, Scope: Ruling(m.Scope), Agent: m.Agent,
		Session: m.Session, Above: m.Above, By: m.By, Time: wire.TimeOf(m.Time),
	}, nil
}
