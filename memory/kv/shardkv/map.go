package shardkv

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Limits of a map.
const (
	// Shards is how many shards tenants are divided into. It never changes: a tenant's
	// shard is where its data lies.
	Shards = 1024
	// MaxMapBytes bounds the text of a map.
	MaxMapBytes = 4 << 20
	// MaxStores bounds the stores of a map.
	MaxStores = 64
	// MaxPinned bounds the tenants that are pinned.
	MaxPinned = 20_000
	// maxEpoch is the largest number that every reader of JSON keeps.
	maxEpoch = 1<<53 - 1
)

// ErrMap: a map can't be used.
var ErrMap = errors.New("map of stores")

// Member is a store of a map.
type Member struct {
	Name string
	// Address is where it is. It may hold a password: nobody is shown it.
	Address string
}

// Map says which store has which tenant. It never changes.
type Map struct {
	epoch   uint64
	system  int
	members []Member // in the order of the map
	shards  [Shards]uint8
	pinned  map[string]uint8
}

// written is a map as it is written.
type written struct {
	Epoch  uint64 `json:"epoch"`
	System string `json:"system"`
	Stores []struct {
		Name    string   `json:"name"`
		Address string   `json:"address"`
		Shards  []string `json:"shards"`
	} `json:"stores"`
	Pinned pins `json:"pinned"`
}

// pins are tenants and the names of their stores.
type pins map[string]string

// UnmarshalJSON refuses a tenant that is named twice.
func (p *pins) UnmarshalJSON(text []byte) error {
	*p = make(pins)
	d := json.NewDecoder(bytes.NewReader(text))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return errors.New("pinned is no object of tenants and stores")
	}
	for d.More() {
		var store string
		token, err := d.Token()
		if err == nil {
			err = d.Decode(&store)
		}
		if err != nil {
			return err
		}
		tenant, _ := token.(string) // keys are nothing else
		if _, twice := (*p)[tenant]; twice {
			return fmt.Errorf("tenant %q is pinned twice", tenant)
		}
		if (*p)[tenant] = store; len(*p) > MaxPinned {
			return fmt.Errorf("more than %d tenants are pinned", MaxPinned)
		}
	}
	_, err := d.Token()
	return err
}

var storeName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// Parse reads a map. Its errors are ErrMap and hold no address.
func Parse(text []byte) (*Map, error) {
	m, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMap, err)
	}
	return m, nil
}

func parse(text []byte) (*Map, error) {
	if len(text) > MaxMapBytes {
		return nil, &kv.LimitError{What: "map", Size: len(text), Limit: MaxMapBytes}
	}
	var w written
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&w); err != nil {
		return nil, fmt.Errorf("is no JSON of epoch, system, stores and pinned: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("has something behind its end")
	}
	switch {
	case w.Epoch == 0 || w.Epoch > maxEpoch:
		return nil, fmt.Errorf("epoch %d is not from 1 to %d", w.Epoch, uint64(maxEpoch))
	case len(w.Stores) == 0:
		return nil, errors.New("has no stores")
	case len(w.Stores) > MaxStores:
		return nil, fmt.Errorf("has %d stores, and %d is the most", len(w.Stores), MaxStores)
	}
	m := &Map{epoch: w.Epoch, system: -1, pinned: make(map[string]uint8, len(w.Pinned))}
	if err := m.addStores(w); err != nil {
		return nil, err
	}
	if m.system = m.index(w.System); m.system < 0 {
		return nil, fmt.Errorf("system %q is none of its stores", w.System)
	}
	for _, tenant := range slices.Sorted(maps.Keys(w.Pinned)) {
		at := m.index(w.Pinned[tenant])
		if at < 0 {
			return nil, fmt.Errorf("tenant %q is pinned to %q, which is none of its stores", tenant, w.Pinned[tenant])
		}
		if err := kv.AgentScope(tenant, "a").Validate(); err != nil || tenant == systemTenant {
			return nil, fmt.Errorf("%q is pinned and no name of a tenant", tenant)
		}
		m.pinned[tenant] = uint8(at) //nolint:gosec // below MaxStores
	}
	return m, nil
}

// addStores takes the stores and their shards: each shard has one.
func (m *Map) addStores(w written) error {
	var given [Shards]bool
	for i, s := range w.Stores {
		switch {
		case !storeName.MatchString(s.Name):
			return fmt.Errorf("store %q: a name has small letters, digits, - and _, and 63 of them at most", s.Name)
		case m.index(s.Name) >= 0:
			return fmt.Errorf("store %q is there twice", s.Name)
		case s.Address == "":
			return fmt.Errorf("store %q has no address", s.Name)
		}
		m.members = append(m.members, Member{s.Name, s.Address})
		for _, text := range s.Shards {
			first, last, err := shardRange(text)
			if err != nil {
				return fmt.Errorf("store %q: %w", s.Name, err)
			}
			for shard := first; shard <= last; shard++ {
				if given[shard] {
					return fmt.Errorf("shard %d of store %q is given twice", shard, s.Name)
				}
				given[shard], m.shards[shard] = true, uint8(i) //nolint:gosec // below MaxStores
			}
		}
	}
	if missing := slices.Index(given[:], false); missing >= 0 {
		return fmt.Errorf("shard %d has no store; the shards are 0 to %d", missing, Shards-1)
	}
	return nil
}

// shardRange reads "7" or "0-511".
func shardRange(text string) (first, last int, err error) {
	begin, end, several := strings.Cut(text, "-")
	if !several {
		end = begin
	}
	first, err = strconv.Atoi(begin)
	if err == nil {
		last, err = strconv.Atoi(end)
	}
	if err != nil || first < 0 || first > last || last >= Shards {
		return 0, 0, fmt.Errorf("shards %q are no range such as 0-511 within 0 to %d", text, Shards-1)
	}
	return first, last, nil
}

func (m *Map) index(name string) int {
	return slices.IndexFunc(m.members, func(s Member) bool { return s.Name == name })
}

// Epoch is one more with each change.
func (m *Map) Epoch() uint64 { return m.epoch }

// Members are the stores, in the order of the map; the slice is the map's.
func (m *Map) Members() []Member { return m.members }

// System is the place among Members of the store with what lies under no tenant.
func (m *Map) System() int { return m.system }

// systemTenant stands in keys that lie under no tenant (memory/kv/bridges).
const systemTenant = "*"

// Of is the place among Members of the store that has a tenant.
func (m *Map) Of(tenant string) int {
	if tenant == systemTenant || tenant == "" {
		return m.system
	}
	if at, ok := m.pinned[tenant]; ok {
		return int(at)
	}
	return int(m.shards[Shard(tenant)])
}

// Shard is that of a tenant: the first 16 bits of the SHA-256 of its name, modulo Shards.
func Shard(tenant string) int {
	sum := sha256.Sum256([]byte(tenant))
	return int(binary.BigEndian.Uint16(sum[:])) % Shards
}

// Digest is that of what the map says, its epoch and addresses aside.
func (m *Map) Digest() [32]byte {
	var b strings.Builder
	fmt.Fprintln(&b, m.members[m.system].Name)
	for _, s := range slices.SortedFunc(slices.Values(m.members), func(a, b Member) int { return strings.Compare(a.Name, b.Name) }) {
		fmt.Fprintln(&b, s.Name)
	}
	for _, at := range m.shards {
		fmt.Fprintln(&b, m.members[at].Name)
	}
	for _, tenant := range slices.Sorted(maps.Keys(m.pinned)) {
		fmt.Fprintf(&b, "%q %s\n", tenant, m.members[m.pinned[tenant]].Name)
	}
	return sha256.Sum256([]byte(b.String()))
}

// String is for people: the epoch and the names of the stores.
func (m *Map) String() string {
	names := make([]string, len(m.members))
	for i, s := range m.members {
		names[i] = s.Name
	}
	return fmt.Sprintf("epoch %d, stores %s", m.epoch, strings.Join(names, ", "))
}
