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
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// errKept: a kept answer can't be read.
var errKept = errors.New("hand: kept answer is damaged")

// encodeKept is what is kept of an answer; all else stands in the step. The task always stood
// behind all else.
func encodeKept(number uint64, a Answer) []byte {
	m := &storev1.CallAnswer{Step: &number, Output: a.Output, Cut: a.Truncated}
	if a.Blob != nil {
		m.Path = &a.Blob.Path
	}
	if a.Bytes != nil {
		m.Bytes, m.MediaType = append([]byte{}, a.Bytes.Data...), a.Bytes.MediaType
	}
	return wire.Marshal(m, &storev1.CallAnswer{Task: a.TaskID})
}

// decodeKept reads what encodeKept wrote; of the blob it knows the path alone.
func decodeKept(value []byte) (number uint64, a Answer, err error) {
	var m storev1.CallAnswer
	if err := wire.Unmarshal(value, &m); err != nil {
		return 0, Answer{}, errKept
	}
	a = Answer{Output: m.Output, Truncated: m.Cut, TaskID: m.Task}
	if m.Path != nil {
		a.Blob = &blob.Entry{Path: *m.Path}
	}
	if m.Bytes != nil {
		a.Bytes = &step.Original{Form: step.FormBytes, Data: m.Bytes, MediaType: m.MediaType}
	}
	return m.GetStep(), a, nil
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
