package vector

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
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

// The fields of a directory and of a space in it.
//
// By hand: the generated message takes 2.5 times as long to read (1.7 to 0.7 µs), which each search by vectors does.
const (
	dirFormat = 1
	dirLast   = 2
	dirSpace  = 3

	spaceNumber    = 1
	spaceName      = 2
	spaceDimension = 3
	spaceDropped   = 4
	spaceBy        = 5
)

func (d directory) encode() []byte {
	b := wire.AppendUint(nil, dirFormat, format)
	b = wire.AppendUint(b, dirLast, uint64(d.last))
	for _, s := range d.spaces {
		m := wire.AppendUint(nil, spaceNumber, uint64(s.number))
		m = wire.AppendText(m, spaceName, s.name)
		m = wire.AppendUint(m, spaceDimension, uint64(s.dimension))
		if s.dropped {
			m = wire.AppendUint(m, spaceDropped, 1)
		}
		m = wire.AppendText(m, spaceBy, s.by)
		b = wire.AppendItem(b, dirSpace, m)
	}
	return b
}

func decodeDirectory(b []byte) (directory, error) {
	var d directory
	if b == nil {
		return d, nil
	}
	version := uint64(0)
	for f, err := range wire.Fields(b) {
		if err != nil {
			return directory{}, fmt.Errorf("%w: spaces: %w", ErrDamaged, err)
		}
		switch f.Number {
		case dirFormat:
			version = f.Value
		case dirLast:
			d.last = uint16(f.Value)
		case dirSpace:
			s, err := decodeSpace(f.Bytes)
			if err != nil {
				return directory{}, err
			}
			d.spaces = append(d.spaces, s)
		}
	}
	return d, checkFormat("spaces", version)
}

func decodeSpace(b []byte) (entry, error) {
	var s entry
	for f, err := range wire.Fields(b) {
		if err != nil {
			return entry{}, fmt.Errorf("%w: space: %w", ErrDamaged, err)
		}
		switch f.Number {
		case spaceNumber:
			s.number = uint16(f.Value)
		case spaceName:
			s.name = string(f.Bytes)
		case spaceDimension:
			s.dimension = int(min(f.Value, MaxDimension+1))
		case spaceDropped:
			s.dropped = f.Value != 0
		case spaceBy:
			s.by = string(f.Bytes)
		}
	}
	if s.dimension < 1 || s.dimension > MaxDimension {
		return entry{}, fmt.Errorf("%w: space of dimension %d", ErrDamaged, s.dimension)
	}
	return s, nil
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
