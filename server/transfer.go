package server

import (
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/grants"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
	"github.com/loom-bridge/loom-bridge/server/sharing"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// WatchRecords streams what changes in a memory, until the caller leaves or the server
// stops.
func (s *memoryService) WatchRecords(r *loombridgev1.WatchRecordsRequest, stream grpc.ServerStreamingServer[loombridgev1.WatchRecordsResponse]) error {
	holding, err := sharing.Held(stream.Context(), s.grants, r, validate.WatchRecordsRequest, grants.Read)
	if err != nil {
		return err
	}
	view := convert.RecordView{JSON: r.GetJsonForm(), Embeddings: r.GetIncludeEmbeddings()}
	following := memory.Following{After: r.GetAfter(), WithVectors: r.GetIncludeEmbeddings()}
	return holding.End(s.memory.Follow(holding.Context, holding.Scope, following, func(found memory.Changes) error {
		if err := holding.Still(); err != nil {
			return err
		}
		for _, change := range found.Changes {
			if err := stream.Send(view.Change(change)); err != nil {
				return err
			}
		}
		if found.More {
			return nil
		}
		return stream.Send(&loombridgev1.WatchRecordsResponse{Position: found.Position, CaughtUp: true})
	}))
}

// maxPartBytes is about how many bytes of lines are sent in one message.
const maxPartBytes = 256 << 10

// ExportRecords streams a memory as lines of JSON.
func (s *memoryService) ExportRecords(r *loombridgev1.ExportRecordsRequest, stream grpc.ServerStreamingServer[loombridgev1.ExportRecordsResponse]) error {
	holding, err := sharing.Held(stream.Context(), s.grants, r, validate.ExportRecordsRequest, grants.Read)
	if err != nil {
		return err
	}
	return holding.End(s.memory.Export(holding.Context, holding.Scope, func(lines [][]byte) error {
		part, size := &loombridgev1.ExportRecordsResponse{}, 0
		for i, line := range lines {
			part.Lines = append(part.Lines, string(line))
			size += protowire.SizeBytes(len(line))
			if last := i == len(lines)-1; !last && size+len(lines[i+1]) <= maxPartBytes {
				continue
			}
			if err := holding.Still(); err != nil {
				return err
			}
			if err := stream.Send(part); err != nil {
				return err
			}
			part, size = &loombridgev1.ExportRecordsResponse{}, 0
		}
		return nil
	}))
}

// ImportRecords takes lines of an export into a memory.
func (s *memoryService) ImportRecords(stream grpc.ClientStreamingServer[loombridgev1.ImportRecordsRequest, loombridgev1.ImportRecordsResponse]) error {
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		first, err = &loombridgev1.ImportRecordsRequest{}, nil // the check names what is missing
	}
	if err != nil {
		return err
	}
	ctx, scope, err := sharing.Writing(stream.Context(), s.grants, first, validate.ImportRecordsRequest)
	if err != nil {
		return err
	}
	into, err := s.memory.Import(ctx, scope, first.GetSkipExisting())
	if err != nil {
		return err
	}
	silence := time.AfterFunc(s.limits.StallTimeout, func() {
		endStream(ctx, validate.Refuse("lines", fmt.Sprintf("did not come within %v", s.limits.StallTimeout)))
	})
	defer silence.Stop()
	for part := first; ; {
		silence.Stop()
		for _, line := range part.GetLines() {
			if err := into.Take(ctx, []byte(line)); err != nil {
				return err
			}
		}
		silence.Reset(s.limits.StallTimeout)
		if part, err = stream.Recv(); errors.Is(err, io.EOF) {
			silence.Stop()
			break
		}
		if err == nil {
			err = validate.ImportLines(part)
		}
		if err != nil {
			return err
		}
	}
	counts, err := into.End(ctx)
	if err != nil {
		return err
	}
	return stream.SendAndClose(convert.Imported(counts))
}
