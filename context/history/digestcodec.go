package history

import (
	"fmt"
	"maps"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/excerpt"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// encode returns the stored form.
func (d *digest) encode() []byte {
	m := &storev1.Digest{First: d.first, Last: d.last, Failed: uint64(d.failed), Lines: d.said}
	for _, name := range slices.Sorted(maps.Keys(d.tools)) {
		m.Tools = append(m.Tools, &storev1.ToolCount{Name: name, Calls: uint64(d.tools[name])})
	}
	for _, id := range d.names.Found {
		m.Names = append(m.Names, &storev1.Name{Name: id.Text, Class: uint64(id.Class), Score: uint64(id.Score)})
	}
	for i := range d.steps {
		s := &d.steps[i]
		m.Newest = append(m.Newest, &storev1.Newest{
			Reference: s.ref, Calls: s.calls, Said: s.words, Failed: s.failed, Lines: s.said, Names: s.names,
		})
	}
	return wire.Marshal(m)
}

// decodeDigest reads what encode wrote. It shares no memory with stored.
func decodeDigest(stored []byte) (*digest, error) {
	var m storev1.Digest
	if err := wire.Unmarshal(stored, &m); err != nil {
		return nil, fmt.Errorf("%w: digest: %w", ErrDamaged, err)
	}
	d := newDigest()
	d.first, d.last, d.failed, d.said = m.First, m.Last, count(m.Failed), m.Lines
	for _, tool := range m.Tools {
		d.tools[tool.Name] = count(tool.Calls)
	}
	for _, name := range m.Names {
		// Whoever joins it puts equal names together.
		d.names.AddOne(excerpt.Identifier{
			Text: name.Name, Class: excerpt.Class(min(name.Class, excerpt.Classes-1)), Score: count(name.Score),
		})
	}
	for _, s := range m.Newest {
		d.steps = append(d.steps, digestStep{ref: s.Reference, calls: s.Calls, words: s.Said, failed: s.Failed, said: s.Lines, names: s.Names})
	}
	return d, nil
}
