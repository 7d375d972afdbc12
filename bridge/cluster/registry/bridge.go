package registry

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// Limits of what a bridge says about itself.
const (
	MaxNameBytes    = 128
	MaxAddressBytes = 256
	// MaxWorkspaceBytes bounds the name of a folder: a server's name and a path.
	MaxWorkspaceBytes = 4096 + MaxNameBytes + 1
	// MaxBridges bounds the bridges registered with one store at a time.
	MaxBridges = 256
)

var (
	// ErrInvalid: a name or an address can't be registered.
	ErrInvalid = errors.New("registry: invalid")
	// ErrSkew: the clock of this machine is too far from that of the store.
	ErrSkew = errors.New("registry: the clock of this machine differs from that of the store")
	// ErrTooMany: MaxBridges are registered.
	ErrTooMany = fmt.Errorf("registry: %d servers share the store already", MaxBridges)
)

// Bridge is a server that is registered. It is comparable.
type Bridge struct {
	// ID is unique for as long as its process runs.
	ID string
	// Epoch is one more with each registration at the store.
	Epoch uint64
	// Name is what its operator calls it; two may have the same.
	Name string
	// Address is where other bridges reach it, host:port; empty where they don't.
	Address string
	// Mesh is where its mesh is reached, host:port; empty where it does not listen.
	Mesh string
	// Workspace names the folder that its tools work in, the same after a restart; empty
	// where all bridges on the store have one folder.
	Workspace string
	// Since is when this registration was made, by the store's clock.
	Since time.Time
}

// String names this registration of the bridge: it is what leases and intents are held
// under.
func (b Bridge) String() string {
	if b == (Bridge{}) {
		return ""
	}
	return b.ID + "@" + strconv.FormatUint(b.Epoch, 10)
}

// scope holds the registry. No tenant has such a name, as each names a folder.
var scope = kv.Scope{Tenant: "*", Kind: kv.OwnerSystem, Owner: "bridges"}

var ref = kv.Ref{Keyspace: kv.System, Scope: scope}

// Tags of the keys in that scope (memory/FORMAT.md).
const (
	tagBridge = 'b' // id: a registration
	tagEpoch  = 'e' // the last epoch that was given
	tagLease  = 'h' // id: when its lease runs out
)

func bridgeKey(id string) []byte { return scope.Key(tagBridge, []byte(id)) }

func leaseKey(id string) []byte { return scope.Key(tagLease, []byte(id)) }

func (b Bridge) encode() []byte {
	// The time always stood last.
	return wire.Marshal(
		&storev1.Registration{Epoch: b.Epoch, Name: b.Name, Address: b.Address, Folder: b.Workspace},
		&storev1.Registration{Since: wire.Micros(b.Since)},
	)
}

// decodeBridge reads a registration; one that can't be read has the epoch zero, which is
// no server's.
func decodeBridge(id string, value []byte) Bridge {
	var m storev1.Registration
	if wire.Unmarshal(value, &m) != nil {
		return Bridge{ID: id}
	}
	return Bridge{ID: id, Epoch: m.Epoch, Name: m.Name, Address: m.Address, Workspace: m.Folder, Since: wire.TimeOf(m.Since)}
}

// lease is when the lease of a bridge runs out, by the store's clock.
func encodeLease(epoch uint64, until time.Time) []byte {
	return wire.Marshal(&storev1.BridgeLease{Epoch: epoch, Until: wire.Micros(until)})
}

// decodeLease reads a lease; one that can't be read ran out long ago.
func decodeLease(value []byte) (until time.Time) {
	var m storev1.BridgeLease
	if wire.Unmarshal(value, &m) != nil {
		return time.Time{}
	}
	return wire.TimeOf(m.Until)
}

// decodeEpoch reads the last epoch that was given.
func decodeEpoch(value []byte) uint64 {
	var m storev1.Epoch
	_ = wire.Unmarshal(value, &m) // what can't be read gave none
	return m.Last
}

// check refuses what can't be registered.
func check(name, address, workspace string) error {
	for _, c := range []struct {
		what, text string
		limit      int
	}{{"name", name, MaxNameBytes}, {"address", address, MaxAddressBytes}, {"workspace", workspace, MaxWorkspaceBytes}} {
		switch {
		case len(c.text) > c.limit:
			return fmt.Errorf("%w: %s of %d bytes exceeds %d", ErrInvalid, c.what, len(c.text), c.limit)
		case !utf8.ValidString(c.text) || strings.ContainsFunc(c.text, func(r rune) bool { return r < ' ' }):
			return fmt.Errorf("%w: %s holds control characters or is not UTF-8", ErrInvalid, c.what)
		}
	}
	return nil
}
