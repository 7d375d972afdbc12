package secret

import (
	"maps"
	"sync"
	"sync/atomic"
)

// everyone is no tenant's name.
const everyone = "\x00"

// Set are the values that a server was given. All methods are safe for concurrent use; the nil
// Set has none.
type Set struct {
	masks atomic.Pointer[map[string]*Mask] // by tenant; that of "" has the operator's alone

	mu     sync.Mutex
	values map[string]map[string]map[string]string // guarded by mu; by tenant and owner
	tables map[string]*table                       // guarded by mu; by tenant
}

// Put takes in the values of an owner, such as a server, by their names, in place of those
// that it had; none take it out. The owner's
// name may say that they are secret, as that of a value may (see New). Those of the tenant "" are the operator's, which are looked for
// whatever the tenant.
func (s *Set) Put(tenant, owner string, values map[string]string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		s.values, s.tables = map[string]map[string]map[string]string{}, map[string]*table{}
	}
	owners := s.values[tenant]
	if maps.Equal(owners[owner], values) {
		return
	}
	if owners == nil {
		owners = map[string]map[string]string{}
		s.values[tenant] = owners
	}
	owners[owner] = maps.Clone(values)
	if len(values) == 0 {
		delete(owners, owner)
	}
	all := map[entry]string{}
	for owner, values := range owners {
		for name, value := range values {
			all[entry{owner, name}] = value
		}
	}
	s.tables[tenant] = newTable(all)
	s.publish()
}

// publish makes the masks anew. The caller holds mu.
func (s *Set) publish() {
	masks := make(map[string]*Mask, len(s.tables)+1)
	all := &Mask{}
	for tenant, own := range s.tables {
		m := &Mask{}
		for _, t := range []*table{s.tables[""], own} {
			if t != nil && (len(m.tables) == 0 || m.tables[0] != t) {
				m.tables = append(m.tables, t)
			}
		}
		if len(m.tables) > 0 {
			masks[tenant] = m
		}
		if own != nil {
			all.tables = append(all.tables, own)
		}
	}
	if len(all.tables) > 0 {
		masks[everyone] = all
	}
	s.masks.Store(&masks)
}

// For finds the values of the operator and of a tenant.
func (s *Set) For(tenant string) *Mask {
	if s == nil {
		return nil
	}
	masks := s.masks.Load()
	if masks == nil {
		return nil
	}
	if m, ok := (*masks)[tenant]; ok {
		return m
	}
	return (*masks)[""]
}

// All finds the values of the operator and of every tenant, for what the operator alone reads.
func (s *Set) All() *Mask {
	if s == nil || s.masks.Load() == nil {
		return nil
	}
	return (*s.masks.Load())[everyone]
}
