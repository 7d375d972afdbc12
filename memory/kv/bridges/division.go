package bridges

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// ErrDivision: the store is divided from others by another map than this server has.
var ErrDivision = errors.New("bridges: the map of stores is not the one that the store is used by")

// Part is one of several stores that the tenants are divided over.
type Part struct {
	// Name is what the map calls it.
	Name   string
	Engine kv.Shared
	// Holds tells whether the map gives a tenant to this store.
	Holds func(tenant string) bool
}

// Division is the map that the tenants are divided by. The registry is in one of the stores;
// in each of the others a server that is registered has a row of its own, the fence of its
// commits there.
type Division struct {
	// Epoch is one more with each change of the map, and Digest that of what it says.
	Epoch  uint64
	Digest [32]byte
	// Own is the store of the registry, and Others are the rest.
	Own    Part
	Others []Part
}

// Tags of what a store has of the map (memory/FORMAT.md).
const (
	tagDivision = 'd' // the map that the store is used by
	tagStore    = 'i' // what tells the store from all others
)

// Fields of the entry of a map.
const (
	fieldDigest = iota + 2
	fieldPart
	fieldSystem
	fieldMember
)

// entry of a map as a store has it. It is comparable.
type division struct {
	epoch  uint64
	digest string
	part   string // what the map calls this store
	system string // the id of the store with the registry
	// members are the names and ids of all stores, in the store with the registry: a name
	// with its id behind a NUL each.
	members string
}

func (d division) encode() []byte {
	if d == (division{}) {
		return nil
	}
	b := wire.AppendUint(nil, fieldEpoch, d.epoch)
	b = wire.AppendText(b, fieldDigest, d.digest)
	b = wire.AppendText(b, fieldPart, d.part)
	b = wire.AppendText(b, fieldSystem, d.system)
	return wire.AppendText(b, fieldMember, d.members)
}

// decodeDivision reads an entry; one that can't be read is nobody's.
func decodeDivision(value []byte) (d division) {
	for f, err := range wire.Fields(value) {
		if err != nil {
			return division{part: "?"}
		}
		switch f.Number {
		case fieldEpoch:
			d.epoch = f.Value
		case fieldDigest:
			d.digest = string(f.Bytes)
		case fieldPart:
			d.part = string(f.Bytes)
		case fieldSystem:
			d.system = string(f.Bytes)
		case fieldMember:
			d.members = string(f.Bytes)
		}
	}
	return d
}

func (d division) String() string {
	if d == (division{}) {
		return "no map"
	}
	return fmt.Sprintf("epoch %d of a map, as its store %q", d.epoch, d.part)
}

// all are the stores of a division, that of the registry first.
func (d *Division) all() []Part { return append([]Part{d.Own}, d.Others...) }

// ids gives each store an id that has none, and returns them. Two names of one store are
// refused.
func (d *Division) ids(ctx context.Context) ([]string, error) {
	var ids []string
	for i, p := range d.all() {
		made, err := once(ctx, p.Engine, tagStore)
		if err != nil {
			return nil, p.wrap(err)
		}
		id := hex.EncodeToString(made)
		if before := slices.Index(ids, id); before >= 0 {
			return nil, fmt.Errorf("%w: its stores %q and %q are one", ErrDivision, d.all()[before].Name, d.all()[i].Name)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func (p Part) wrap(err error) error { return fmt.Errorf("store %q of the map: %w", p.Name, err) }

// entries are what this map writes into each of its stores.
func (d *Division) entries(ids []string) []division {
	all := d.all()
	entries := make([]division, len(all))
	var members []string
	for i, p := range all {
		entries[i] = division{epoch: d.Epoch, digest: string(d.Digest[:]), part: p.Name, system: ids[0]}
		members = append(members, p.Name+"\x00"+ids[i])
	}
	slices.Sort(members)
	entries[0].members = strings.Join(members, "\x00")
	return entries
}

// check compares what a map would write into a store with what is there.
func (p Part) check(found, want division) error {
	switch {
	case found == (division{}):
		return nil
	case found.system != want.system || found.part != want.part:
		return p.wrap(fmt.Errorf("%w: it is used by %s; a store keeps its name and its map, and the map its system store", ErrDivision, found))
	case found.epoch > want.epoch:
		return p.wrap(fmt.Errorf("%w: servers use it by epoch %d, this map has %d; start with the newer map", ErrDivision, found.epoch, want.epoch))
	case found.epoch == want.epoch && (found.digest != want.digest || found.members != want.members):
		return p.wrap(fmt.Errorf("%w: servers use it by another map of the same epoch %d; give all servers one map, and each change of it a higher epoch", ErrDivision, want.epoch))
	}
	before, after := strings.Split(found.members, "\x00"), strings.Split(want.members, "\x00")
	for i := 0; found.members != "" && i+1 < len(before); i += 2 {
		if at := slices.Index(after, before[i]); at < 0 || at+1 >= len(after) || after[at+1] != before[i+1] {
			return fmt.Errorf("%w: store %q of epoch %d is missing, or another one has its name; a map keeps its stores", ErrDivision, before[i], found.epoch)
		}
	}
	return nil
}

// misplaced refuses a store that holds data of tenants which the map gives to others.
func (p Part) misplaced(ctx context.Context) error {
	const most = 5 // are named
	var wrong []string
	for _, ks := range kv.Keyspaces() {
		for r := (kv.Range{Limit: 1}); ; {
			tenant, found, err := firstTenant(ctx, p.Engine, ks, r)
			if err != nil {
				return p.wrap(err)
			}
			if !found {
				break
			}
			if tenant != scope.Tenant && !p.Holds(tenant) && !slices.Contains(wrong, tenant) {
				wrong = append(wrong, tenant)
			}
			if r.Start = kv.TenantRange(tenant).End; len(wrong) == most {
				break
			}
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return p.wrap(fmt.Errorf("%w: it has data of tenants that the map gives to other stores, such as %q; no data is moved: pin them to %q", ErrDivision, wrong, p.Name))
}

func firstTenant(ctx context.Context, from kv.Reader, ks kv.Keyspace, r kv.Range) (string, bool, error) {
	for pair, err := range from.Scan(ctx, ks, r) {
		if err != nil {
			return "", false, err
		}
		tenant, _, found := bytes.Cut(pair.Key, []byte{0})
		return string(tenant), found, nil
	}
	return "", false, nil
}

// claim makes the map of this server that of all stores, unless they are used by a newer one
// or another one. Where it takes the place of an older one, nobody who has that commits to a
// store from then on: all registrations and rows there are deleted with it.
func (r *Registry) claim(ctx context.Context) error {
	d := r.opts.Division
	ids, err := d.ids(ctx)
	if err != nil {
		return err
	}
	all := d.all()
	r.divisions = d.entries(ids)
	claimed := make([]bool, len(all))
	for i, p := range all {
		values, err := p.Engine.Get(ctx, kv.System, scope.Key(tagDivision))
		if err != nil {
			return p.wrap(err)
		}
		found := decodeDivision(values[0])
		if err := p.check(found, r.divisions[i]); err != nil {
			return err
		}
		claimed[i] = found == r.divisions[i]
	}
	unclaimed := func(do func(i int) error) error {
		for i := range all { // that of the registry first: no older map gets in behind it
			if !claimed[i] {
				if err := do(i); err != nil {
					return err
				}
			}
		}
		return nil
	}
	misplaced := func(i int) error { return all[i].misplaced(ctx) }
	if err := unclaimed(misplaced); err != nil {
		return err
	}
	if err := unclaimed(func(i int) error { return all[i].claim(ctx, r.divisions[i]) }); err != nil {
		return err
	}
	return unclaimed(misplaced) // what servers of the older map wrote meanwhile
}

// claim writes the entry of a map into a store.
func (p Part) claim(ctx context.Context, entry division) error {
	for range registerAttempts {
		sequences, err := p.Engine.Sequence(ctx, ref)
		if err != nil {
			return p.wrap(err)
		}
		e, err := entriesOf(ctx, p.Engine)
		if err != nil {
			return p.wrap(err)
		}
		found := decodeDivision(e.division)
		if err := p.check(found, entry); err != nil || found == entry {
			return err
		}
		c := kv.Commit{Guards: []kv.Guard{{Ref: ref, Sequence: sequences[0]}}, Batch: new(kv.Batch), Unfenced: true}
		c.Batch.Put(kv.System, scope.Key(tagDivision), entry.encode())
		for id := range e.bridges {
			c.Batch.Delete(kv.System, bridgeKey(id))
			c.Batch.Delete(kv.System, leaseKey(id))
			c.Batch.Delete(kv.System, meshKey(id))
		}
		err = p.Engine.Commit(ctx, c)
		if err == nil {
			return nil
		}
		if !errors.Is(err, kv.ErrConflict) && !errors.Is(err, kv.ErrUnknownOutcome) {
			return p.wrap(err)
		}
	}
	return p.wrap(kv.ErrConflict)
}

// CheckDivision returns an error unless the stores are used by the map, or by none yet. It
// writes nothing.
func CheckDivision(ctx context.Context, d *Division) error {
	var ids []string
	for _, p := range d.all() {
		values, err := p.Engine.Get(ctx, kv.System, scope.Key(tagStore))
		if err != nil {
			return p.wrap(err)
		}
		ids = append(ids, hex.EncodeToString(values[0]))
	}
	for i, want := range d.entries(ids) {
		p := d.all()[i]
		values, err := p.Engine.Get(ctx, kv.System, scope.Key(tagDivision))
		if err != nil {
			return p.wrap(err)
		}
		if found := decodeDivision(values[0]); found != want && found != (division{}) {
			if err := p.check(found, want); err != nil {
				return err
			}
			return p.wrap(fmt.Errorf("%w: servers use it by epoch %d, this map has %d", ErrDivision, found.epoch, want.epoch))
		}
	}
	return nil
}

// once returns random bytes that a store has under a tag. The first who asks makes them.
func once(ctx context.Context, engine kv.Engine, tag byte) ([]byte, error) {
	key := scope.Key(tag)
	for range registerAttempts {
		sequences, err := engine.Sequence(ctx, ref)
		if err != nil {
			return nil, err
		}
		values, err := engine.Get(ctx, kv.System, key)
		if err != nil || len(values[0]) == secretBytes {
			return bytes.Clone(values[0]), err
		}
		made := make([]byte, secretBytes)
		_, _ = rand.Read(made) // never fails
		c := kv.Commit{Guards: []kv.Guard{{Ref: ref, Sequence: sequences[0]}}, Batch: new(kv.Batch)}
		c.Batch.Put(kv.System, key, made)
		if err = engine.Commit(ctx, c); err != nil && !errors.Is(err, kv.ErrConflict) && !errors.Is(err, kv.ErrUnknownOutcome) {
			return nil, err
		}
	}
	return nil, kv.ErrConflict
}
