package stores

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/loom-bridge/loom-bridge/bridge/places"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/bridges"
	"github.com/loom-bridge/loom-bridge/memory/kv/pgkv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	"github.com/loom-bridge/loom-bridge/memory/kv/shardkv"
)

// errMapped: a map was given for what is done with one store.
var errMapped = errors.New("the stores of a map are worked on one by one, each by its address")

// parts are the stores of a map.
type parts struct {
	file   string
	m      *shardkv.Map
	places []Place // in the order of the map
}

// ReadMap reads the file of a map of stores, which is a place then. Its errors hold no address.
func ReadMap(file string) (Place, error) {
	f, err := os.Open(file)
	if err != nil {
		return Place{}, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, shardkv.MaxMapBytes+1))
	if err != nil {
		return Place{}, err
	}
	m, err := shardkv.Parse(text)
	if err != nil {
		return Place{}, err
	}
	p := &parts{file: file, m: m}
	names := make(map[string]string)
	for _, s := range m.Members() {
		place, err := Parse(s.Address)
		switch {
		case err != nil:
			return Place{}, fmt.Errorf("address of store %q: %w", s.Name, err)
		case !place.Far():
			return Place{}, fmt.Errorf("address of store %q is a directory; the stores of a map are in PostgreSQL", s.Name)
		case names[place.address+place.schema] != "":
			return Place{}, fmt.Errorf("stores %q and %q have one address", names[place.address+place.schema], s.Name)
		}
		names[place.address+place.schema] = s.Name
		p.places = append(p.places, place)
	}
	return Place{parts: p}, nil
}

// MaxShared bounds the connections that the stores of a map may share.
const MaxShared = shardkv.MaxStores * maxConnections

// Share divides connections among the stores of a map: those whose address names a number have
// it, and the others as many each of what is left.
func (p Place) Share(connections int) error {
	left, open := connections, 0
	for i := range p.parts.places {
		if left -= p.parts.places[i].connections; p.parts.places[i].connections == 0 {
			open++
		}
	}
	if left < open*minConnections {
		return fmt.Errorf("leaves %d for the %d of %d stores whose addresses name none; each needs %d or more", max(0, left), open, len(p.parts.places), minConnections)
	}
	for i := range p.parts.places {
		if place := &p.parts.places[i]; place.connections == 0 {
			place.connections = min(left/open, maxConnections)
			left -= place.connections
			open--
		}
	}
	return nil
}

// String is the map for people.
func (p *parts) String() string { return fmt.Sprintf("%s (%s)", p.file, p.m) }

// open opens all stores, each as of says.
func (p *parts) open(ctx context.Context, of func(Place) *pgkv.Options) (db *shardkv.DB, division *bridges.Division, err error) {
	var engines []kv.Shared
	for i, place := range p.places {
		engine, err := pgkv.Open(ctx, place.address, of(place))
		if err != nil {
			for _, opened := range engines {
				err = errors.Join(err, opened.Close())
			}
			return nil, nil, fmt.Errorf("store %q of the map: %w", p.m.Members()[i].Name, err)
		}
		engines = append(engines, engine)
	}
	division = &bridges.Division{Epoch: p.m.Epoch(), Digest: p.m.Digest()}
	for i, engine := range engines {
		part := bridges.Part{Name: p.m.Members()[i].Name, Engine: engine, Holds: func(tenant string) bool { return p.m.Of(tenant) == i }}
		if i == p.m.System() {
			division.Own = part
		} else {
			division.Others = append(division.Others, part)
		}
	}
	return shardkv.New(p.m, engines), division, nil
}

// openAlone opens all stores without registering; they must be used by this map.
func (p *parts) openAlone(ctx context.Context, of func(Place) *pgkv.Options) (Engine, error) {
	db, division, err := p.open(ctx, of)
	if err != nil {
		return nil, err
	}
	if err := bridges.CheckDivision(ctx, division); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return alone{db}, nil
}

// join opens all stores together with others.
func (p *parts) join(ctx context.Context, o Options) (Engine, error) {
	durability, err := rockskv.ParseDurability(o.Durability)
	if err != nil {
		return nil, err
	}
	db, division, err := p.open(ctx, func(place Place) *pgkv.Options {
		calls, views := place.split()
		return &pgkv.Options{Schema: place.schema, Connections: calls, Views: views, Shared: true, Unsynced: durability != rockskv.Sync, Logger: o.Logger}
	})
	if err != nil {
		return nil, err
	}
	registry, err := bridges.Join(ctx, division.Own.Engine, &bridges.Options{Name: o.Name, Address: o.Address, Workspace: o.Workspace, Division: division, Logger: o.Logger})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if err := places.Check(registry); err != nil {
		return nil, errors.Join(err, registry.Close(), db.Close())
	}
	return divided{db, registry, division}, nil
}

// divided are the stores of a map that this server has together with others.
type divided struct {
	*shardkv.DB
	*bridges.Registry
	division *bridges.Division
}

// Close ends the registration before the stores.
func (d divided) Close() error { return errors.Join(d.Registry.Close(), d.DB.Close()) }

// Parts tells how each store is used, by its name in the map.
func (d divided) Parts() map[string]func() pgkv.Stats {
	all := make(map[string]func() pgkv.Stats)
	for _, p := range append([]bridges.Part{d.division.Own}, d.division.Others...) {
		if db, ok := p.Engine.(*pgkv.DB); ok {
			all[p.Name] = db.Stats
		}
	}
	return all
}
