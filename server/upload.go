package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/context/step"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/convert"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// UploadStep records a step whose result follows in parts.
func (s *contextService) UploadStep(stream grpc.ClientStreamingServer[loombridgev1.UploadStepRequest, loombridgev1.UploadStepResponse]) error {
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		first, err = &loombridgev1.UploadStepRequest{}, nil // the check names what is missing
	}
	if err != nil {
		return err
	}
	if err := validate.UploadStepRequest(first); err != nil {
		return err
	}
	r := first.GetStep()
	scope, err := auth.AgentScope(stream.Context(), r.GetAgentId())
	if err != nil {
		return err
	}
	report, err := convert.Report(scope, r)
	if err != nil {
		return err
	}
	upload := r.GetOutputUpload()
	report.Output = step.Original{Form: step.Form(upload.GetForm()), MediaType: upload.GetMediaType()}
	silence := s.endSilent(stream.Context())
	defer silence.Stop()
	report.Body = &uploadReader{receive: func() (*loombridgev1.UploadStepRequest, error) {
		message, err := stream.Recv()
		silence.Reset(s.limits.StallTimeout)
		return message, err
	}}
	answer, err := s.hand.Record(stream.Context(), report)
	if err != nil {
		return err
	}
	return stream.SendAndClose(&loombridgev1.UploadStepResponse{Recorded: convert.Recorded(answer)})
}

// endSilent ends an upload that sends nothing for too long, or that takes longer
// than any tool may run: it holds a place among the uploads, and memory.
func (s *contextService) endSilent(ctx context.Context) *time.Timer {
	late := func(within time.Duration) func() {
		return func() {
			endStream(ctx, validate.Refuse("data", fmt.Sprintf("did not come within %v", within)))
		}
	}
	whole := time.AfterFunc(hand.MaxTimeout, late(hand.MaxTimeout))
	context.AfterFunc(ctx, func() { whole.Stop() })
	return time.AfterFunc(s.limits.StallTimeout, late(s.limits.StallTimeout))
}

// uploadReader reads the parts of an upload. It is for one goroutine.
type uploadReader struct {
	receive func() (*loombridgev1.UploadStepRequest, error)
	rest    []byte
	err     error
}

func (u *uploadReader) Read(p []byte) (int, error) {
	for len(u.rest) == 0 && u.err == nil {
		message, err := u.receive()
		switch {
		case err != nil:
			u.err = err // io.EOF is the end of the upload
		case message.GetStep() != nil || message.GetItem() == nil:
			u.err = validate.Refuse("data", "is required in every message but the first")
		}
		u.rest = message.GetData()
	}
	if len(u.rest) == 0 {
		return 0, u.err
	}
	n := copy(p, u.rest)
	u.rest = u.rest[n:]
	return n, nil
}
