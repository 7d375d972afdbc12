package history

import (
	"fmt"
	"maps"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/excerpt"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// Field numbers of a stored digest.
const (
	fieldDigestFirst = iota + 1
	fieldDigestLast
	fieldDigestFailed
	fieldDigestTool
	fieldDigestSaid
	fieldDigestName
	fieldDigestStep
)

// Field numbers of a tool and of a name in it.
const (
	fieldToolName = iota + 1
	fieldToolCalls
)

const (
	fieldNameText = iota + 1
	fieldNameClass
	fieldNameScore
)

// Field numbers of a step in it.
const (
	fieldStepRef = iota + 1
	fieldStepCall
	fieldStepWords
	fieldStepFailed
	fieldStepSaid
	fieldStepName
)

// encode returns the stored form.
func (d *digest) encode() []byte {
	dst := wire.AppendText(nil, fieldDigestFirst, d.first)
	dst = wire.AppendText(dst, fieldDigestLast, d.last)
	dst = wire.AppendUint(dst, fieldDigestFailed, uint64(d.failed))
	var part []byte
	for _, name := range slices.Sorted(maps.Keys(d.tools)) {
		part = wire.AppendText(part[:0], fieldToolName, name)
		dst = wire.AppendItem(dst, fieldDigestTool, wire.AppendUint(part, fieldToolCalls, uint64(d.tools[name])))
	}
	for _, text := range d.said {
		dst = wire.AppendItem(dst, fieldDigestSaid, text)
	}
	for _, id := range d.names.Found {
		part = wire.AppendText(part[:0], fieldNameText, id.Text)
		part = wire.AppendUint(part, fieldNameClass, uint64(id.Class))
		dst = wire.AppendItem(dst, fieldDigestName, wire.AppendUint(part, fieldNameScore, uint64(id.Score)))
	}
	for i := range d.steps {
		part = d.steps[i].append(part[:0])
		dst = wire.AppendItem(dst, fieldDigestStep, part)
	}
	return dst
}

func (s *digestStep) append(dst []byte) []byte {
	dst = wire.AppendText(dst, fieldStepRef, s.ref)
	for _, text := range s.calls {
		dst = wire.AppendItem(dst, fieldStepCall, text)
	}
	dst = wire.AppendText(dst, fieldStepWords, s.words)
	if s.failed {
		dst = wire.AppendUint(dst, fieldStepFailed, 1)
	}
	for _, text := range s.said {
		dst = wire.AppendItem(dst, fieldStepSaid, text)
	}
	for _, name := range s.names {
		dst = wire.AppendItem(dst, fieldStepName, name)
	}
	return dst
}

// decodeDigest reads what encode wrote. It shares no memory with stored.
func decodeDigest(stored []byte) (*digest, error) {
	d := newDigest()
	for f, err := range wire.Fields(stored) {
		if err == nil {
			err = d.set(f)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: digest: %w", ErrDamaged, err)
		}
	}
	return d, nil
}

func (d *digest) set(f wire.Field) error {
	switch f.Number {
	case fieldDigestFirst:
		d.first = string(f.Bytes)
	case fieldDigestLast:
		d.last = string(f.Bytes)
	case fieldDigestFailed:
		d.failed = count(f)
	case fieldDigestTool:
		return d.setTool(f.Bytes)
	case fieldDigestSaid:
		d.said = append(d.said, string(f.Bytes))
	case fieldDigestName:
		return d.setName(f.Bytes)
	case fieldDigestStep:
		return d.setStep(f.Bytes)
	}
	return nil
}

// count is a number that fits everywhere.
func count(f wire.Field) int { return int(min(f.Value, 1<<31-1)) }

func (d *digest) setTool(stored []byte) error {
	name, calls := "", 0
	for f, err := range wire.Fields(stored) {
		if err != nil {
			return err
		}
		switch f.Number {
		case fieldToolName:
			name = string(f.Bytes)
		case fieldToolCalls:
			calls = count(f)
		}
	}
	d.tools[name] = calls
	return nil
}

func (d *digest) setName(stored []byte) error {
	var id excerpt.Identifier
	for f, err := range wire.Fields(stored) {
		if err != nil {
			return err
		}
		switch f.Number {
		case fieldNameText:
			id.Text = string(f.Bytes)
		case fieldNameClass:
			id.Class = excerpt.Class(min(f.Value, excerpt.Classes-1))
		case fieldNameScore:
			id.Score = count(f)
		}
	}
	// Whoever joins it puts equal names together.
	d.names.AddOne(id)
	return nil
}

func (d *digest) setStep(stored []byte) error {
	var s digestStep
	for f, err := range wire.Fields(stored) {
		if err != nil {
			return err
		}
		switch f.Number {
		case fieldStepRef:
			s.ref = string(f.Bytes)
		case fieldStepCall:
			s.calls = append(s.calls, string(f.Bytes))
		case fieldStepWords:
			s.words = string(f.Bytes)
		case fieldStepFailed:
			s.failed = f.Value != 0
		case fieldStepSaid:
			s.said = append(s.said, string(f.Bytes))
		case fieldStepName:
			s.names = append(s.names, string(f.Bytes))
		}
	}
	d.steps = append(d.steps, s)
	return nil
}
