package vector

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// Limits of spaces and vectors.
const (
	// MaxSpaces bounds the spaces of a scope: a search reads each that it has a
	// query vector for, and a caller that makes up names is stopped.
	MaxSpaces = 64
	// MaxSpaceBytes bounds the name of a space.
	MaxSpaceBytes = 128
	// MaxDimension bounds the numbers of a vector.
	MaxDimension = 4096
)

// format is the version of everything stored here.
const format = 1

// Space describes the vectors of one model in a scope.
type Space struct {
	// Name is the space's.
	Name string
	// Dimension is how many numbers each of its vectors has.
	Dimension int
	// Count is how many vectors there are.
	Count int
}

// entry is a space in the directory.
type entry struct {
	number    uint16
	name      string
	dimension int
	dropped   bool   // hidden, and being deleted
	by        string // the agent that made it, where several share the scope
}

// directory lists the spaces of a scope. Numbers are never used again.
type directory struct {
	last   uint16
	spaces []entry
}

func (d directory) encode() []byte {
	m := &storev1.Spaces{Format: format, Last: uint64(d.last)}
	for _, s := range d.spaces {
		m.Spaces = append(m.Spaces, &storev1.Space{
			Number: uint64(s.number), Name: s.name, Dimension: uint64(s.dimension), Dropped: s.dropped, Agent: s.by,
		})
	}
	return wire.Marshal(m)
}

func decodeDirectory(b []byte) (directory, error) {
	if b == nil {
		return directory{}, nil
	}
	var m storev1.Spaces
	if err := wire.Unmarshal(b, &m); err != nil {
		return directory{}, fmt.Errorf("%w: spaces: %w", ErrDamaged, err)
	}
	d := directory{last: uint16(m.Last)}
	for _, s := range m.Spaces {
		if s.Dimension < 1 || s.Dimension > MaxDimension {
			return directory{}, fmt.Errorf("%w: space of dimension %d", ErrDamaged, s.Dimension)
		}
		d.spaces = append(d.spaces, entry{number: uint16(s.Number), name: s.Name, dimension: int(s.Dimension), dropped: s.Dropped, by: s.Agent})
	}
	return d, checkFormat("spaces", m.Format)
}

func checkFormat(what string, version uint64) error {
	switch {
	case version == 0:
		return fmt.Errorf("%w: %s without format", ErrDamaged, what)
	case version > format:
		return fmt.Errorf("%w: %s of format %d", ErrNewer, what, version)
	}
	return nil
}

// find returns the space with that name, unless it is dropped.
func (d directory) find(name string) (entry, bool) {
	for _, s := range d.spaces {
		if s.name == name && !s.dropped {
			return s, true
		}
	}
	return entry{}, false
}

// keptSpaces is the part of the free spaces of a scope that is kept for agents that
// have made fewer: one in so many.
const keptSpaces = 16

// room reports whether an agent may make one more space. In a scope that several agents
// share, one agent may use nearly all of them; some are left for agents that come later.
func (d directory) room(by string) bool {
	own := 0
	for _, s := range d.spaces {
		if by != "" && s.by == by {
			own++
		}
	}
	free := MaxSpaces - len(d.spaces)
	return free > 0 && (own == 0 || own+1 <= (keptSpaces-1)*(free-1))
}

type agentKey struct{}

// By returns a context in which new spaces of a shared scope are counted for an agent.
func By(ctx context.Context, agent string) context.Context {
	return context.WithValue(ctx, agentKey{}, agent)
}

func agentOf(ctx context.Context) string {
	agent, _ := ctx.Value(agentKey{}).(string)
	return agent
}

func readDirectory(ctx context.Context, from kv.Getter, scope kv.Scope) (directory, error) {
	values, err := from.Get(ctx, kv.Records, spacesKey(scope))
	if err != nil {
		return directory{}, err
	}
	return decodeDirectory(values[0])
}

// findSpace returns a space of the scope; false when there is none.
func findSpace(ctx context.Context, from kv.Getter, scope kv.Scope, name string) (entry, bool, error) {
	d, err := readDirectory(ctx, from, scope)
	if err != nil {
		return entry{}, false, err
	}
	s, ok := d.find(name)
	return s, ok, nil
}

// needSpace returns the space for a vector of that dimension, and stages a new
// one where there is none.
func needSpace(ctx context.Context, tx *kv.Tx, scope kv.Scope, name string, dimension int) (entry, error) {
	d, err := readDirectory(ctx, tx, scope)
	if err != nil {
		return entry{}, err
	}
	if s, ok := d.find(name); ok {
		if s.dimension != dimension {
			return entry{}, &DimensionError{Space: name, Want: s.dimension, Got: dimension}
		}
		return s, nil
	}
	if name == "" || len(name) > MaxSpaceBytes {
		return entry{}, fmt.Errorf("%w: name of a space has %d bytes", ErrInvalid, len(name))
	}
	by := agentOf(ctx)
	if !d.room(by) || d.last == 1<<16-1 {
		return entry{}, ErrTooManySpaces
	}
	d.last++
	s := entry{number: d.last, name: name, dimension: dimension, by: by}
	d.spaces = append(d.spaces, s)
	tx.Put(kv.Records, spacesKey(scope), d.encode())
	return s, nil
}
