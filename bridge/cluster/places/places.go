package places

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/mesh"
	"github.com/loom-bridge/loom-bridge/bridge/cluster/registry"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// FolderOwner is whose folder a workspace is.
type FolderOwner struct {
	// Folder names it, as registry.Bridge.Workspace.
	Folder string
	// Server and Address are the server's name and address when it was given the workspace.
	Server, Address string
	// Since is when that was.
	Since time.Time
	// Here says that it is this server's folder, and Away that no server which is
	// registered has it.
	Here, Away bool
}

// Elsewhere reaches the other servers.
type Elsewhere interface {
	// Forward has a peer answer a call. It returns the errors of mesh.Mesh.Request.
	Forward(ctx context.Context, at mesh.Peer, payload []byte) ([]byte, error)
}

// Options adjusts Places. Nil and zero fields mean the defaults.
type Options struct {
	// PerAgent says that each agent has its own workspace. Default: all agents of a
	// tenant have one.
	PerAgent bool
	// Elsewhere reaches the others. Default: nothing does.
	Elsewhere Elsewhere
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Places are the workspaces. All methods are safe for concurrent use.
type Places struct {
	registry *registry.Registry
	engine   kv.Reader // the one that writer writes to
	writer   *kv.Writer
	opts     Options
	handlers sync.Map // name of a method: Handler
}

// Handler answers calls that other servers forward. An answer is not empty.
type Handler func(ctx context.Context, payload []byte) []byte

// New returns the workspaces of a server; nil where they have no owner: on a store that this
// server has alone, and where all servers share one folder.
func New(engine kv.Reader, writer *kv.Writer, registry *registry.Registry, opts *Options) *Places {
	if registry.Workspace() == "" {
		return nil
	}
	p := &Places{registry: registry, engine: engine, writer: writer}
	if opts != nil {
		p.opts = *opts
	}
	if p.opts.Now == nil {
		p.opts.Now = time.Now
	}
	return p
}

// Check refuses a server that shares its folder on a store where others do not, or the
// other way round, with ErrMixed.
func Check(registry *registry.Registry) error {
	all, _ := registry.All()
	self := registry.Self()
	for _, b := range all {
		if b.ID != self.ID && (b.Workspace == "") != (registry.Workspace() == "") {
			return fmt.Errorf("%w: %q at %s is started otherwise", ErrMixed, b.Name, b.Address)
		}
	}
	return nil
}

const tagWorkspace = 'w' // agent: an Owner (memory/FORMAT.md)

func scopeOf(tenant string) kv.Scope {
	return kv.Scope{Tenant: tenant, Kind: kv.OwnerSystem, Owner: "workspaces"}
}

// key is where the owner of an agent's workspace stands.
func (p *Places) key(scope kv.Scope) []byte {
	agent := ""
	if p.opts.PerAgent {
		agent = scope.Owner
	}
	return scopeOf(scope.Tenant).Key(tagWorkspace, []byte(agent))
}

func (o *FolderOwner) encode() []byte {
	return wire.Marshal(&storev1.WorkspaceOwner{Folder: o.Folder, Name: o.Server, Address: o.Address, Since: wire.Micros(o.Since)})
}

// decode reads an owner; one that can't be read has no folder.
func decode(value []byte) FolderOwner {
	var m storev1.WorkspaceOwner
	if wire.Unmarshal(value, &m) != nil {
		return FolderOwner{}
	}
	return FolderOwner{Folder: m.Folder, Server: m.Name, Address: m.Address, Since: wire.TimeOf(m.Since)}
}

// at is an owner with its present state, and the server that has the folder.
func (p *Places) at(o FolderOwner) (FolderOwner, registry.Bridge) {
	self := p.registry.Self()
	o.Away = false
	if o.Here = o.Folder == self.Workspace; o.Here {
		return o, self
	}
	all, _ := p.registry.All()
	for _, b := range slices.Backward(all) { // before it, the life of it that was killed
		if b.Workspace == o.Folder {
			return o, b
		}
	}
	o.Away = true
	return o, registry.Bridge{}
}

// Of says whose folder the workspace of an agent is; false without an owner yet. A nil Places
// is ErrNowhere.
func (p *Places) Of(ctx context.Context, scope kv.Scope) (FolderOwner, bool, error) {
	if p == nil {
		return FolderOwner{}, false, ErrNowhere
	}
	values, err := p.engine.Get(ctx, kv.System, p.key(scope))
	if err != nil {
		return FolderOwner{}, false, fmt.Errorf("places: %w", err)
	}
	o := decode(values[0])
	if o.Folder == "" {
		return FolderOwner{}, false, nil
	}
	o, _ = p.at(o)
	return o, true, nil
}

// Where says which server runs what touches the workspace of an agent: the zero Peer for
// this one, which becomes the owner of a workspace without one. It fails with an *Error
// where the owner can't be reached.
func (p *Places) Where(ctx context.Context, scope kv.Scope) (mesh.Peer, error) {
	return p.where(ctx, scope, true)
}

// where is Where; without take a workspace without an owner stays so, and counts as this
// server's.
func (p *Places) where(ctx context.Context, scope kv.Scope, take bool) (mesh.Peer, error) {
	if p == nil {
		return mesh.Peer{}, nil
	}
	o, found, err := p.Of(ctx, scope)
	if err == nil && !found {
		if !take {
			return mesh.Peer{}, nil
		}
		o, err = p.write(ctx, scope, p.ownerOf(p.registry.Self()), false)
	}
	switch {
	case err != nil:
		return mesh.Peer{}, err
	case o.Here:
		return mesh.Peer{}, nil
	}
	o, b := p.at(o)
	if o.Away {
		if err := p.registry.Refresh(ctx); err != nil {
			return mesh.Peer{}, fmt.Errorf("places: %w", err)
		}
		o, b = p.at(o)
	}
	switch {
	case o.Away:
		return mesh.Peer{}, &Error{ErrAway, o}
	case p.opts.Elsewhere == nil:
		return mesh.Peer{}, &Error{ErrUnjoined, o}
	}
	return mesh.Peer{ID: b.ID, Epoch: b.Epoch}, nil
}

func (p *Places) ownerOf(b registry.Bridge) FolderOwner {
	return FolderOwner{Folder: b.Workspace, Server: b.Name, Address: b.Address, Since: p.opts.Now().UTC().Truncate(time.Microsecond)}
}

// write gives a workspace to an owner, and returns whose it is then: unless it is to be
// taken away, that of the one who was faster.
func (p *Places) write(ctx context.Context, scope kv.Scope, to FolderOwner, takeAway bool) (FolderOwner, error) {
	if to.Folder == "" {
		return FolderOwner{}, fmt.Errorf("places: %w", kv.ErrFenced) // others took this server for dead
	}
	key := p.key(scope)
	var now FolderOwner
	err := p.writer.Do(ctx, kv.Request{
		Refs: []kv.Ref{{Keyspace: kv.System, Scope: scopeOf(scope.Tenant)}},
		Stage: func(ctx context.Context, tx *kv.Tx) error {
			values, err := tx.Get(ctx, kv.System, key)
			if err != nil {
				return err
			}
			if now = decode(values[0]); now.Folder != "" && !takeAway {
				return nil
			}
			now = to
			tx.Put(kv.System, key, to.encode())
			return nil
		},
	})
	if err != nil {
		return FolderOwner{}, fmt.Errorf("places: %w", err)
	}
	now, _ = p.at(now)
	return now, nil
}

// Move gives the workspace of an agent to a server that is registered, by its name or its
// folder, and returns the owner before, without a folder if it had none, and the one after. Its
// files stay where they are, and calls that run end where they run. It fails with ErrUnknown
// or ErrNowhere.
func (p *Places) Move(ctx context.Context, scope kv.Scope, to string) (before, after FolderOwner, err error) {
	if p == nil {
		return FolderOwner{}, FolderOwner{}, ErrNowhere
	}
	b, err := p.named(to)
	if err != nil {
		return FolderOwner{}, FolderOwner{}, err
	}
	if before, _, err = p.Of(ctx, scope); err != nil {
		return FolderOwner{}, FolderOwner{}, err
	}
	after, err = p.write(ctx, scope, p.ownerOf(b), true)
	return before, after, err
}

// named is the server of a name or a folder.
func (p *Places) named(to string) (registry.Bridge, error) {
	all, _ := p.registry.All()
	var found registry.Bridge
	var names []string
	for _, b := range all {
		names = append(names, fmt.Sprintf("%q (%s)", b.Name, b.Workspace))
		if b.Workspace == "" || b.Name != to && b.Workspace != to {
			continue
		}
		if found.Workspace != "" && found.Workspace != b.Workspace {
			return registry.Bridge{}, fmt.Errorf("%w: %q is the name of several; name the folder: %s", ErrUnknown, to, strings.Join(names, ", "))
		}
		found = b
	}
	if found.Workspace == "" {
		return registry.Bridge{}, fmt.Errorf("%w: %q is not registered; registered are: %s", ErrUnknown, to, strings.Join(names, ", "))
	}
	return found, nil
}

// Forward has another server answer a call of a method that touches the workspace of an
// agent.
func (p *Places) Forward(ctx context.Context, scope kv.Scope, at mesh.Peer, method string, payload []byte) ([]byte, error) {
	answer, err := p.opts.Elsewhere.Forward(ctx, at, wire.AppendItem(wire.AppendText(nil, fieldMethod, method), fieldPayload, payload))
	var kind error
	switch {
	case errors.Is(err, mesh.ErrNotSent), err == nil && len(answer) == 0:
		kind = ErrAway
	case errors.Is(err, mesh.ErrLost), errors.Is(err, mesh.ErrClosed):
		kind = ErrLost
	default:
		return answer, err
	}
	// What is known of the call is said also when the store does not say who the owner is.
	o, _, _ := p.Of(ctx, scope)
	return nil, &Error{kind, o}
}

// Fields of a call that is forwarded.
const (
	fieldMethod = iota + 1
	fieldPayload
)

// Serve has calls of a method answered that other servers forward. Until then the answer is
// that this server is not there.
func (p *Places) Serve(method string, h Handler) { p.handlers.Store(method, h) }

// Handle answers a call of another server; one of a method that is not served by nothing,
// which says so.
func (p *Places) Handle(ctx context.Context, call []byte) []byte {
	if p == nil {
		return nil
	}
	var method string
	var payload []byte
	for f, err := range wire.Fields(call) {
		if err != nil {
			return nil
		}
		switch f.Number {
		case fieldMethod:
			method = string(f.Bytes)
		case fieldPayload:
			payload = f.Bytes
		}
	}
	h, ok := p.handlers.Load(method)
	if !ok {
		return nil
	}
	return h.(Handler)(ctx, payload)
}
