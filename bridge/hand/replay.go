package hand

import (
	"context"
	"errors"
	"fmt"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// Fields of a kept answer (memory/FORMAT.md). Everything else stands in the
// step.
const (
	keptStep      = 1 // varint: number of the step
	keptOutput    = 2 // bytes: the output's JSON text
	keptTruncated = 3 // varint: 1 when it was cut
	keptBlob      = 4 // text: path of the answer's blob
	keptTask      = 5 // text: id of the task that was added with the step
	keptBytes     = 6 // bytes: the output that is bytes
	keptMedia     = 7 // text: its media type
)

// errKept: a kept answer can't be read.
var errKept = errors.New("hand: kept answer is damaged")

func encodeKept(number uint64, a Answer) []byte {
	dst := wire.AppendNumber(nil, keptStep, number)
	if a.Output != nil {
		dst = wire.AppendItem(dst, keptOutput, a.Output)
	}
	if a.Truncated {
		dst = wire.AppendNumber(dst, keptTruncated, 1)
	}
	if a.Blob != nil {
		dst = wire.AppendItem(dst, keptBlob, a.Blob.Path)
	}
	if a.Bytes != nil {
		dst = wire.AppendItem(dst, keptBytes, a.Bytes.Data)
		dst = wire.AppendText(dst, keptMedia, a.Bytes.MediaType)
	}
	return wire.AppendText(dst, keptTask, a.TaskID)
}

// decodeKept reads what encodeKept wrote; of the blob it knows the path alone.
// The output shares memory with value.
func decodeKept(value []byte) (number uint64, a Answer, err error) {
	for f, err := range wire.Fields(value) {
		if err != nil {
			return 0, Answer{}, errKept
		}
		switch f.Number {
		case keptStep:
			number = f.Value
		case keptOutput:
			a.Output = f.Bytes
		case keptTruncated:
			a.Truncated = f.Value != 0
		case keptBlob:
			a.Blob = &blob.Entry{Path: string(f.Bytes)}
		case keptTask:
			a.TaskID = string(f.Bytes)
		case keptBytes:
			a.Bytes = &step.Original{Form: step.FormBytes, Data: f.Bytes}
		case keptMedia:
			if a.Bytes != nil {
				a.Bytes.MediaType = string(f.Bytes)
			}
		}
	}
	return number, a, nil
}

// replay gives the answer an equal request got before, if there is one.
func (h *Hand) replay(ctx context.Context, c *call) (Answer, bool, error) {
	value, found, err := kv.LookupOnce(ctx, h.Engine, h.Log.Ref(c.Scope), c.once, c.digest)
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
	a.Observation = s.ToObservation(h.Style(ctx, scope, s.SessionID))
	a.Recorded, a.Replayed = true, true
	if a.Blob != nil {
		err := h.keptBlob(ctx, scope, &a)
		if err != nil {
			return Answer{}, fmt.Errorf("hand: read the first answer: %w", err)
		}
	}
	return a, nil
}

// keptBlob completes the blob of a kept answer. The request was carried out, so it
// stays answered when the blob was collected meanwhile.
func (h *Hand) keptBlob(ctx context.Context, scope kv.Scope, a *Answer) error {
	e, err := h.Blobs.Lookup(ctx, scope, a.Blob.Path)
	switch {
	case errors.Is(err, blob.ErrCollected):
		a.Blob, a.Collected = nil, true
		return nil
	case err != nil:
		return err
	}
	a.Blob = &e
	return nil
}
