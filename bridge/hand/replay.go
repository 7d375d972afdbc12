package hand

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Fields of a kept answer (memory/FORMAT.md). Everything else stands in the
// step.
const (
	keptStep      protowire.Number = 1 // varint: number of the step
	keptOutput    protowire.Number = 2 // bytes: the output's JSON text
	keptTruncated protowire.Number = 3 // varint: 1 when it was cut
	keptBlob      protowire.Number = 4 // text: path of the answer's blob
)

// errKept: a kept answer can't be read.
var errKept = errors.New("hand: kept answer is damaged")

func encodeKept(number uint64, a Answer) []byte {
	dst := protowire.AppendVarint(protowire.AppendTag(nil, keptStep, protowire.VarintType), number)
	if a.Output != nil {
		dst = protowire.AppendBytes(protowire.AppendTag(dst, keptOutput, protowire.BytesType), a.Output)
	}
	if a.Truncated {
		dst = protowire.AppendVarint(protowire.AppendTag(dst, keptTruncated, protowire.VarintType), 1)
	}
	if a.Blob != nil {
		dst = protowire.AppendString(protowire.AppendTag(dst, keptBlob, protowire.BytesType), a.Blob.Path)
	}
	return dst
}

// decodeKept reads what encodeKept wrote; of the blob it knows the path alone.
func decodeKept(value []byte) (number uint64, a Answer, err error) {
	for len(value) > 0 {
		field, kind, n := protowire.ConsumeTag(value)
		if n < 0 {
			return 0, Answer{}, errKept
		}
		value = value[n:]
		switch {
		case field == keptStep && kind == protowire.VarintType:
			number, n = protowire.ConsumeVarint(value)
		case field == keptTruncated && kind == protowire.VarintType:
			var v uint64
			v, n = protowire.ConsumeVarint(value)
			a.Truncated = v != 0
		case field == keptOutput && kind == protowire.BytesType:
			a.Output, n = protowire.ConsumeBytes(value)
		case field == keptBlob && kind == protowire.BytesType:
			a.Blob = &blob.Entry{}
			a.Blob.Path, n = protowire.ConsumeString(value)
		default:
			n = protowire.ConsumeFieldValue(field, kind, value)
		}
		if n < 0 {
			return 0, Answer{}, errKept
		}
		value = value[n:]
	}
	return number, a, nil
}

// replay gives the answer an equal request got before, if there is one.
func (h *Hand) replay(ctx context.Context, c *call) (Answer, bool, error) {
	value, found, err := kv.LookupOnce(ctx, h.Engine, h.Log.Ref(c.Scope), c.RequestID, c.digest)
	if err != nil || !found {
		return Answer{}, false, err
	}
	a, err := h.kept(ctx, c.Scope, value)
	return a, err == nil, err
}

// kept completes a kept answer from the step and the blob it names.
func (h *Hand) kept(ctx context.Context, scope kv.Scope, value []byte) (Answer, error) {
	number, a, err := decodeKept(value)
	if err != nil {
		return Answer{}, err
	}
	entry, err := h.Log.Step(ctx, scope, number)
	if err != nil {
		return Answer{}, fmt.Errorf("hand: read the first answer: %w", err)
	}
	s := *entry.Step
	a.Success = s.Success()
	a.ErrorMessage, a.ErrorCode = s.Error, tools.Code(s.ErrorCode)
	a.Step, a.Position = &s, entry.Position
	a.Observation = s.ToObservation(h.style)
	a.Recorded, a.Replayed = true, true
	if a.Blob != nil {
		e, err := h.Blobs.Lookup(ctx, scope, a.Blob.Path)
		if err != nil {
			return Answer{}, fmt.Errorf("hand: read the first answer: %w", err)
		}
		a.Blob = &e
	}
	return a, nil
}
