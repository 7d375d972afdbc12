package grants

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// clearAgain is how long after a failure a space is cleared again.
const clearAgain = time.Second

// SpaceScope is the scope of a space's records.
func SpaceScope(tenant, name string) kv.Scope {
	return kv.Scope{Tenant: tenant, Kind: kv.OwnerSpace, Owner: name}
}

// Create makes a space, which the agent administers, and so do those above it: it has no
// more than they have, and they remain when it has ended. ErrExists if the agent has access to
// one of that name; a *DeniedError if others have.
func (s *Store) Create(ctx context.Context, tenant, name, by string) (Space, error) {
	scope := SpaceScope(tenant, name)
	if err := scope.Validate(); err != nil {
		return Space{}, err
	}
	if strings.Contains(by, "*") {
		return Space{}, invalid.Field(ErrInvalid, "agent_id", "holds a *, so it would be a pattern of agents")
	}
	now := record.StoredTime(s.opts.Now())
	made := &memory{maker: by, made: now}
	self := kv.AgentScope(tenant, by)
	sequences, err := s.engine.Sequence(ctx, refOf(self))
	if err != nil {
		return Space{}, wrap("create space", err)
	}
	line, err := s.line(ctx, self, sequences[0])
	if err != nil {
		return Space{}, err
	}
	for _, agent := range slices.Compact(slices.Sorted(slices.Values(line))) {
		if strings.Contains(agent, "*") {
			continue // it would be a pattern of agents
		}
		made.grants = append(made.grants, Grant{agent, Admin, by, now})
	}
	names := directoryOf(tenant)
	err = s.writer.Do(ctx, kv.Request{Refs: []kv.Ref{refOf(names), refOf(scope)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
		values, err := tx.Get(ctx, kv.System, keyOf(scope))
		if err != nil {
			return err
		}
		if values[0] != nil {
			return s.taken(ctx, scope, by, values[0])
		}
		if err := s.room(ctx, tx, names, by); err != nil {
			return err
		}
		tx.Put(kv.System, keyOf(scope), made.encode())
		tx.Put(kv.System, names.Key(tagSpace, []byte(name)), []byte(by))
		return nil
	}})
	if err != nil {
		return Space{}, wrap("create space", err)
	}
	return Space{name, Admin, now}, nil
}

// taken is why a name can't be used.
func (s *Store) taken(ctx context.Context, scope kv.Scope, by string, raw []byte) error {
	m, err := decode(raw)
	if err != nil {
		return err
	}
	_, agents, err := s.read(ctx, scope, by)
	if err != nil {
		return err
	}
	if m.of(agents) == None {
		return &DeniedError{by, scope, Admin}
	}
	return fmt.Errorf("%w: %q", ErrExists, scope.Owner)
}

// room returns ErrFull if there are too many spaces. Who holds shares, such as a credential,
// may make as many as it leaves free: so each finds some that comes later, however many
// agents the others name.
func (s *Store) room(ctx context.Context, tx *kv.Tx, names kv.Scope, by string) error {
	holder, all, own, shared := s.holder(names.Tenant, by), 0, 0, 0
	for pair, err := range tx.Scan(ctx, kv.System, kv.Prefix(names.Key(tagSpace))) {
		if err != nil {
			return err
		}
		maker := string(pair.Value)
		if all++; maker == by {
			own++
		}
		if holder != "" && s.holder(names.Tenant, maker) == holder {
			shared++
		}
	}
	switch {
	case all >= MaxSpaces:
		return fmt.Errorf("%w: the tenant has %d spaces, as many as one may have", ErrFull, all)
	case own >= MaxSpacesMade:
		return fmt.Errorf("%w: agent %q has made %d spaces, as many as one may have", ErrFull, by, own)
	case shared >= MaxSpaces-all:
		return fmt.Errorf("%w: the agents of one credential have made %d of the tenant's %d spaces; one may make as many as it leaves free of %d", ErrFull, shared, all, MaxSpaces)
	}
	return nil
}

// holder is to whose share the spaces of an agent count; empty for none.
func (s *Store) holder(tenant, agent string) string {
	if s.opts.HolderOf == nil {
		return ""
	}
	return s.opts.HolderOf(tenant, agent)
}

// Spaces returns the spaces to which an agent has access, by name.
func (s *Store) Spaces(ctx context.Context, tenant, agent string) ([]Space, error) {
	var names []string
	for pair, err := range s.engine.Scan(ctx, kv.System, kv.Prefix(directoryOf(tenant).Key(tagSpace))) {
		if err != nil {
			return nil, fmt.Errorf("grants: list spaces: %w", err)
		}
		_, rest, err := kv.SplitKey(pair.Key)
		if err != nil {
			return nil, damaged(err)
		}
		names = append(names, string(rest[1:]))
	}
	var all []Space
	for _, name := range names {
		m, agents, err := s.read(ctx, SpaceScope(tenant, name), agent)
		if err != nil {
			return nil, err
		}
		if level := m.of(agents); level > None {
			all = append(all, Space{name, level, m.made})
		}
	}
	return all, nil
}

// Delete deletes a space that by administers, or any if the caller operates. From its commit on no caller has access; the
// records go behind that, and Delete returns when they are gone, or ctx has ended.
func (s *Store) Delete(ctx context.Context, tenant, name, by string) error {
	scope := SpaceScope(tenant, name)
	if err := scope.Validate(); err != nil {
		return err
	}
	permit, err := s.Need(ctx, scope, by, Admin)
	if errors.Is(err, ErrDenied) && callerOf(ctx).Operates {
		permit, err = &Permit{scope: scope, agent: by, need: Admin, level: Admin}, nil
	}
	if err != nil {
		return err
	}
	err = s.changeBy(ctx, "delete space", permit, func(tx *kv.Tx, m *memory) error {
		if m.made.IsZero() {
			return permit.denied()
		}
		m.leaving = true
		tx.Put(kv.System, directoryOf(tenant).Key(tagLeaving, []byte(name)), []byte{})
		return nil
	}, refOf(directoryOf(tenant)))
	if err != nil {
		return err
	}
	select {
	case <-s.clear(scope):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.work.Done():
		return ErrClosed
	}
}

// Start goes on with the spaces whose deletion was interrupted.
func (s *Store) Start(ctx context.Context) error {
	for names, err := range directory.Scopes(ctx, s.engine) {
		if err != nil {
			return fmt.Errorf("grants: start: %w", err)
		}
		for pair, err := range s.engine.Scan(ctx, kv.System, kv.Prefix(names.Key(tagLeaving))) {
			if err != nil {
				return fmt.Errorf("grants: start: %w", err)
			}
			_, rest, err := kv.SplitKey(pair.Key)
			if err != nil {
				return damaged(err)
			}
			s.clear(SpaceScope(names.Tenant, string(rest[1:])))
		}
	}
	return nil
}

// clear removes in the background what is left of a space. The channel is closed when
// nothing is.
func (s *Store) clear(scope kv.Scope) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if gone, runs := s.leaving[scope]; runs {
		return gone
	}
	gone := make(chan struct{})
	if s.closed {
		return gone // Start of the next process goes on
	}
	s.leaving[scope] = gone
	s.running.Go(func() {
		for {
			err := s.clearOnce(scope)
			if err == nil {
				break
			}
			if s.work.Err() != nil {
				return
			}
			s.opts.Logger.Warn("a deleted space is not empty yet", "scope", scope.String(), "again_in", clearAgain, "error", err)
			select {
			case <-s.work.Done():
				return
			case <-time.After(clearAgain):
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.leaving, scope)
		close(gone)
	})
	return gone
}

// errNotLeaving: somebody else has removed the space.
var errNotLeaving = errors.New("grants: the space was deleted")

func (s *Store) clearOnce(scope kv.Scope) error {
	if err := s.opts.Clear(s.work, scope); err != nil {
		return err
	}
	names := directoryOf(scope.Tenant)
	err := s.writer.Do(s.work, kv.Request{Refs: []kv.Ref{refOf(names), refOf(scope)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
		values, err := tx.Get(ctx, kv.System, keyOf(scope))
		if err != nil {
			return err
		}
		m, err := decode(values[0])
		if err != nil {
			return err
		}
		if !m.leaving {
			return errNotLeaving
		}
		tx.Delete(kv.System, keyOf(scope))
		tx.Delete(kv.System, names.Key(tagSpace, []byte(scope.Owner)))
		tx.Delete(kv.System, names.Key(tagLeaving, []byte(scope.Owner)))
		return nil
	}})
	if errors.Is(err, errNotLeaving) {
		return nil
	}
	return err
}
