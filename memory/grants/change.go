package grants

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// CheckPattern returns an *invalid.Error for what is no pattern of agents: an id, or the
// beginning of ids and one `*`.
func CheckPattern(field, pattern string) error {
	head := strings.TrimSuffix(pattern, "*")
	switch {
	case pattern == "":
		return invalid.Field(ErrInvalid, field, "is required")
	case len(pattern) > MaxPatternBytes:
		return invalid.Field(ErrInvalid, field, "has %d bytes, more than %d", len(pattern), MaxPatternBytes)
	case strings.Contains(head, "*"):
		return invalid.Field(ErrInvalid, field, "is neither an id nor a beginning and one *")
	}
	return nil
}

// change changes the grants of a memory that an agent administers. alter changes m, and
// may write to also.
func (s *Store) change(ctx context.Context, operation string, scope kv.Scope, agent string, alter func(tx *kv.Tx, m *memory) error, also ...kv.Ref) error {
	permit, err := s.administering(ctx, scope, agent)
	if err != nil {
		return err
	}
	return s.changeBy(ctx, operation, permit, alter, also...)
}

// administering is the permit of who administers a memory: of a space whose maker was erased,
// and with it the last administrator, who operates the server.
func (s *Store) administering(ctx context.Context, scope kv.Scope, agent string) (*Permit, error) {
	permit, err := s.Need(ctx, scope, agent, Admin)
	if !errors.Is(err, ErrDenied) || !callerOf(ctx).Operates {
		return permit, err
	}
	m, _, readErr := s.read(ctx, scope, agent)
	if readErr != nil || !m.orphaned() {
		return nil, err
	}
	return &Permit{scope: scope, agent: agent, need: Admin, level: Admin}, nil
}

// changeBy does so with a permit.
func (s *Store) changeBy(ctx context.Context, operation string, permit *Permit, alter func(tx *kv.Tx, m *memory) error, also ...kv.Ref) error {
	scope := permit.scope
	err := s.writer.Do(ctx, kv.Request{Refs: append(also, refOf(scope)), Stage: func(ctx context.Context, tx *kv.Tx) error {
		if err := permit.Check(ctx, tx); err != nil {
			return err
		}
		values, err := tx.Get(ctx, kv.System, keyOf(scope))
		if err != nil {
			return err
		}
		m, err := decode(values[0])
		if err != nil {
			return err
		}
		if err := alter(tx, m); err != nil {
			return err
		}
		if scope.Kind == kv.OwnerSpace && !m.admins() && !m.orphaned() {
			return ErrLastAdmin
		}
		if value := m.encode(); len(value) > 0 {
			tx.Put(kv.System, keyOf(scope), value)
		} else {
			tx.Delete(kv.System, keyOf(scope))
		}
		return nil
	}})
	if err != nil {
		return wrap(operation, err)
	}
	s.bell.Ring(scope)
	return nil
}

// wrap adds the operation to errors other than errors about the request.
func wrap(operation string, err error) error {
	for _, own := range []error{ErrDenied, ErrInvalid, ErrExists, ErrLastAdmin, ErrNotFound, ErrFull, ErrClosed} {
		if errors.Is(err, own) {
			return err
		}
	}
	return fmt.Errorf("grants: %s: %w", operation, err)
}

// Grant gives agents access to a memory that by administers, or another access than they
// were granted.
func (s *Store) Grant(ctx context.Context, scope kv.Scope, by, pattern string, level Level) (Grant, error) {
	if err := CheckPattern("grantee", pattern); err != nil {
		return Grant{}, err
	}
	if level < Read || level > Admin {
		return Grant{}, invalid.Field(ErrInvalid, "access", "is not read, write or admin")
	}
	g := Grant{Pattern: pattern, Level: level, By: by, Time: record.StoredTime(s.opts.Now())}
	err := s.change(ctx, "grant", scope, by, func(_ *kv.Tx, m *memory) error {
		at, there := m.find(pattern)
		switch {
		case there:
			m.grants[at] = g
		case len(m.grants) >= MaxGrants:
			return fmt.Errorf("%w: the memory has %d grants, as many as one may have", ErrFull, len(m.grants))
		default:
			m.grants = slices.Insert(m.grants, at, g)
		}
		return nil
	})
	return g, err
}

// Revoke removes the grant of a pattern.
func (s *Store) Revoke(ctx context.Context, scope kv.Scope, by, pattern string) error {
	if err := CheckPattern("grantee", pattern); err != nil {
		return err
	}
	return s.change(ctx, "revoke", scope, by, func(_ *kv.Tx, m *memory) error {
		at, there := m.find(pattern)
		if !there {
			return fmt.Errorf("%w: %q", ErrNotFound, pattern)
		}
		m.grants = slices.Delete(m.grants, at, at+1)
		return nil
	})
}

// Grants returns the grants of a memory that by administers, by pattern.
func (s *Store) Grants(ctx context.Context, scope kv.Scope, by string) ([]Grant, error) {
	if _, err := s.administering(ctx, scope, by); err != nil {
		return nil, err
	}
	m, _, err := s.read(ctx, scope, by)
	if err != nil {
		return nil, err
	}
	return slices.Clone(m.grants), nil
}
