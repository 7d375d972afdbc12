package vector

import (
	"context"
	"maps"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// maxExact bounds the whole vectors of a space that are cached: the vectors of several small
// sets, such as the documents of a kind, that one question after another compares.
const maxExact = 4 * exactAllowed

// exact are whole vectors of a space. It is never changed.
type exact struct {
	// changes and last belong to the newest head that it was read under: while changes
	// stays, so does the vector of a document that has one.
	changes, last uint32
	values        map[uint32][]byte
}

func (e *exact) bytes() int {
	size := entryMemory
	for _, value := range e.values {
		size += entryMemory + len(value)
	}
	return size
}

// readExact returns the whole vectors of a few documents, nil for each that has none, reading
// only vectors that are not cached.
func (x *Index) readExact(ctx context.Context, view kv.Getter, h head, ordinals []uint32) ([][]byte, error) {
	key := h.cacheKey(partExact, 0)
	var known [1]part
	x.cache.get([]cacheKey{key}, known[:])
	old, ok := known[0].(*exact)
	switch {
	case !ok || old.changes < h.changes:
		old = &exact{}
	case old.changes > h.changes || old.last > h.last: // the view is older
		return readValues(ctx, view, h.place, ordinals)
	}
	values := make([][]byte, len(ordinals))
	var missing []uint32
	for i, ordinal := range ordinals {
		if values[i] = old.values[ordinal]; values[i] == nil {
			missing = append(missing, ordinal)
		}
	}
	if len(missing) == 0 {
		return values, nil
	}
	read, err := readValues(ctx, view, h.place, missing)
	if err != nil {
		return nil, err
	}
	now := &exact{h.changes, h.last, make(map[uint32][]byte, len(old.values)+len(missing))}
	if len(old.values)+len(missing) <= maxExact {
		maps.Copy(now.values, old.values)
	}
	found := false
	for i, next := 0, 0; i < len(ordinals); i++ {
		if values[i] == nil {
			values[i] = read[next]
			found, next = found || values[i] != nil, next+1
		}
		if values[i] != nil {
			now.values[ordinals[i]] = values[i]
		}
	}
	if found {
		x.cache.put(key, now)
	}
	return values, nil
}
