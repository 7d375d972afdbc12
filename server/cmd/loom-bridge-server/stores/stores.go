// Package stores opens the store that the settings name: of RocksDB in a directory, or in a
// schema of a PostgreSQL.
package stores

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/migration"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/places"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/registry"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/pgkv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
)

// ErrNoFiles: the operation works on the files of a store, and PostgreSQL has its own.
var ErrNoFiles = errors.New("the store is in PostgreSQL, which has its own files")

// ErrMixed: some of the servers on the store share one workspace folder, and some do not.
var ErrMixed = places.ErrMixed

// Engine is an open store.
type Engine interface {
	kv.Engine
	kv.Monitored
}

// Copied is a store that is copied.
type Copied interface {
	Engine
	migration.Frozen
}

// Target is a store that another one is copied into.
type Target interface {
	Engine
	migration.Target
}

// far is an Engine in PostgreSQL. Where it is no kv.Notifier it is open for this process
// alone, which holds it by a session that ends with the process.
type far interface {
	Engine
	kv.RangeDropper
	kv.Far
	kv.Sizer
}

// alone is a far Engine without what it offers to several processes.
type alone struct{ far }

// together is a store in PostgreSQL that this server has together with others.
type together struct {
	*pgkv.DB
	*registry.Registry
}

// Close ends the registration before the store.
func (t together) Close() error { return errors.Join(t.Registry.Close(), t.DB.Close()) }

// Place says where a store is.
type Place struct {
	// Dir is its directory, unless it is far.
	Dir string
	// address is that of PostgreSQL, with the password; empty for a directory.
	address string
	schema  string
	// connections is how many this process may have open; zero for the default.
	connections int
}

// Far reports whether the store is in PostgreSQL.
func (p Place) Far() bool { return p.address != "" }

// Password is that of the address, if it has one.
func (p Place) Password() string {
	address, err := url.Parse(p.address)
	if err != nil {
		return ""
	}
	if password, ok := address.User.Password(); ok {
		return password
	}
	return address.Query().Get("password")
}

// String is the place for people: without the password and without parameters.
func (p Place) String() string {
	switch {
	case p.Far() && p.schema != pgkv.DefaultSchema:
		return Hide(p.address) + ", schema " + p.schema
	case p.Far():
		return Hide(p.address)
	case p.Dir != "":
		return rocks + p.Dir
	}
	return ""
}

// Apart returns an error if two places are one store, or the directory of one is in that of
// the other.
func (p Place) Apart(from Place) error {
	if p.Far() != from.Far() {
		return nil
	}
	if p.Far() {
		if p.address == from.address && p.schema == from.schema {
			return errors.New("is the store itself that is to be copied")
		}
		return nil
	}
	to, source := resolved(p.Dir), resolved(from.Dir)
	switch {
	case to == source:
		return errors.New("is the store itself that is to be copied")
	case within(to, source):
		return errors.New("lies within the store that is to be copied")
	case within(source, to):
		return errors.New("has within it the store that is to be copied")
	}
	return nil
}

func within(path, dir string) bool {
	rest, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rest)
}

// resolved is a path without links, as far as it is there.
func resolved(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if found, err := filepath.EvalSymlinks(path); err == nil {
		return found
	}
	if above := filepath.Dir(path); above != path {
		return filepath.Join(resolved(above), filepath.Base(path))
	}
	return path
}

// rocks begins the place of a store in a directory.
const rocks = "rocksdb:"

// Parameters of an address that are ours.
const (
	schemaParameter      = "schema"
	connectionsParameter = "connections"
)

// Bounds of connections. Two of them listen and hold the store, a quarter of the others are
// for calls and commits, the rest for snapshots.
const (
	minConnections = 10
	maxConnections = 10_000
)

// split divides the connections that a store may have.
func (p Place) split() (calls, views int) {
	if p.connections == 0 {
		return 0, 0 // the engine's own
	}
	calls = (p.connections - 2) / 4
	return calls, p.connections - 2 - calls
}

var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// Parse reads a place: rocksdb:DIR or postgres://user@host:5432/database?schema=name. Its
// errors hold nothing of the text.
func Parse(text string) (Place, error) {
	if dir, ok := strings.CutPrefix(text, rocks); ok {
		if dir == "" {
			return Place{}, errors.New("the directory is missing")
		}
		return Place{Dir: dir}, nil
	}
	address, err := url.Parse(text)
	if err != nil || address.Scheme != "postgres" && address.Scheme != "postgresql" {
		return Place{}, errors.New("give rocksdb:DIRECTORY or postgres://user@host:5432/database")
	}
	query, err := url.ParseQuery(address.RawQuery)
	if err != nil {
		return Place{}, errors.New("its parameters can't be read")
	}
	schema := pgkv.DefaultSchema
	if query.Has(schemaParameter) {
		if schema = query.Get(schemaParameter); !schemaName.MatchString(schema) || strings.HasPrefix(schema, "pg_") {
			return Place{}, errors.New("a schema has small letters, digits and _, and 63 of them at most")
		}
		query.Del(schemaParameter)
		address.RawQuery = query.Encode()
	}
	connections := 0
	if query.Has(connectionsParameter) {
		if connections, err = strconv.Atoi(query.Get(connectionsParameter)); err != nil || connections < minConnections || connections > maxConnections {
			return Place{}, fmt.Errorf("connections are a number from %d to %d", minConnections, maxConnections)
		}
		query.Del(connectionsParameter)
		address.RawQuery = query.Encode()
	}
	if err := pgkv.CheckAddress(address.String()); err != nil {
		return Place{}, err
	}
	return Place{address: address.String(), schema: schema, connections: connections}, nil
}

// Hide is an address without the secrets that no log may have: password and parameters.
func Hide(text string) string {
	address, err := url.Parse(text)
	switch {
	case err == nil && address.Host != "":
		if address.User != nil {
			address.User = url.User(address.User.Username())
		}
		address.RawQuery, address.Fragment = "", ""
		return address.String()
	case strings.HasPrefix(text, rocks):
		return text
	}
	for _, scheme := range []string{"postgres:", "postgresql:"} {
		if strings.HasPrefix(text, scheme) {
			return scheme + "…"
		}
	}
	return "…"
}

// Options says how a store is opened.
type Options struct {
	// Durability is sync, wal or none. In PostgreSQL the last two do not wait for the disk.
	Durability string
	// Wait is how long another process may still have it open.
	Wait time.Duration
	// Name is what a server that joins others is called, and Address where they reach it.
	Name, Address string
	// Workspace names its folder, as registry.Bridge.Workspace.
	Workspace string
	Logger    *slog.Logger
}

const (
	// poll is the time between two attempts at a store that another process has open.
	poll = 20 * time.Millisecond
	// farPoll is the same for one in PostgreSQL.
	farPoll = 200 * time.Millisecond
	// farWait is how long a server of PostgreSQL may take to notice that a process ended.
	farWait = 2 * time.Second
)

// Join opens a store for a server: one in PostgreSQL together with others, among which it is
// registered, one in a directory for itself alone. It waits as Open does.
func (p Place) Join(ctx context.Context, o Options) (Engine, error) {
	if !p.Far() {
		return p.Open(ctx, o)
	}
	return p.await(ctx, o, p.join)
}

// Open opens a store for this process alone, and waits for another one that has it open for
// as long as o says.
func (p Place) Open(ctx context.Context, o Options) (Engine, error) {
	return p.await(ctx, o, p.open)
}

// await opens a store when no process has it open any more that excludes others.
func (p Place) await(ctx context.Context, o Options, open func(context.Context, Options) (Engine, error)) (Engine, error) {
	wait, pause := o.Wait, poll
	if p.Far() {
		wait, pause = max(wait, farWait), farPoll
	}
	for end := time.Now().Add(wait); ; {
		engine, err := open(ctx, o)
		if !errors.Is(err, kv.ErrLocked) || time.Now().After(end) {
			return engine, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause):
		}
	}
}

func (p Place) join(ctx context.Context, o Options) (Engine, error) {
	durability, err := rockskv.ParseDurability(o.Durability)
	if err != nil {
		return nil, err
	}
	calls, views := p.split()
	db, err := pgkv.Open(ctx, p.address, &pgkv.Options{Schema: p.schema, Connections: calls, Views: views, Shared: true, Unsynced: durability != rockskv.Sync, Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	registry, err := registry.Join(ctx, db, &registry.Options{Name: o.Name, Address: o.Address, Workspace: o.Workspace, Logger: o.Logger})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if err := places.Check(registry); err != nil {
		return nil, errors.Join(err, registry.Close(), db.Close())
	}
	return together{db, registry}, nil
}

func (p Place) open(ctx context.Context, o Options) (Engine, error) {
	durability, err := rockskv.ParseDurability(o.Durability)
	if err != nil {
		return nil, err
	}
	if p.Far() {
		db, err := pgkv.Open(ctx, p.address, &pgkv.Options{
			Schema: p.schema, Exclusive: true, Unsynced: durability != rockskv.Sync, Logger: o.Logger,
		})
		if err != nil {
			return nil, err
		}
		return alone{db}, nil
	}
	if err := os.MkdirAll(p.Dir, 0o700); err != nil {
		return nil, err
	}
	db, err := rockskv.Open(p.Dir, &rockskv.Options{Durability: durability})
	if err != nil { // not as an interface that holds nil
		return nil, err
	}
	return db, nil
}

// OpenReadOnly opens a store for reading alone: a store in a directory only while no other
// process has it open, a store in PostgreSQL even while servers use it.
func (p Place) OpenReadOnly(ctx context.Context) (Engine, error) {
	if p.Far() {
		db, err := pgkv.Open(ctx, p.address, &pgkv.Options{Schema: p.schema, ReadOnly: true})
		if err != nil {
			return nil, err
		}
		return alone{db}, nil
	}
	db, err := rockskv.OpenReadOnly(p.Dir, nil)
	if err != nil {
		return nil, err
	}
	return db, nil
}

// OpenSource opens a store to be copied, which no other process may have open meanwhile.
func (p Place) OpenSource(ctx context.Context) (Copied, error) {
	if !p.Far() {
		db, err := rockskv.OpenReadOnly(p.Dir, nil)
		if err != nil {
			return nil, err
		}
		return db, nil
	}
	db, err := pgkv.Open(ctx, p.address, &pgkv.Options{Schema: p.schema, ReadOnly: true, Exclusive: true})
	if err != nil {
		return nil, err
	}
	return db, nil
}

// OpenAlone is OpenSource, and waits as Open does for a process that has just ended.
func (p Place) OpenAlone(ctx context.Context) (Copied, error) {
	var source Copied
	_, err := p.await(ctx, Options{}, func(ctx context.Context, _ Options) (_ Engine, err error) {
		source, err = p.OpenSource(ctx)
		return source, err
	})
	return source, err
}

// OpenTarget makes a store into which the one at another place is copied, or goes on with
// one. Nobody else may open it before it is complete.
func (p Place) OpenTarget(ctx context.Context, from Place) (Target, error) {
	if !p.Far() {
		db, err := rockskv.Open(p.Dir, &rockskv.Options{Fill: from.whole()})
		if err != nil {
			return nil, err
		}
		return db, nil
	}
	db, err := pgkv.Open(ctx, p.address, &pgkv.Options{Schema: p.schema, Fill: from.whole()})
	if err != nil {
		return nil, err
	}
	return db, nil
}

// whole is String with the whole path of a directory.
func (p Place) whole() string {
	if dir, err := filepath.Abs(p.Dir); err == nil && !p.Far() {
		p.Dir = dir
	}
	return p.String()
}

// Files returns the directory of a store, or an ErrNoFiles that says what to use instead.
func (p Place) Files(instead string) (string, error) {
	if p.Far() {
		return "", fmt.Errorf("%w: %s", ErrNoFiles, instead)
	}
	return p.Dir, nil
}
