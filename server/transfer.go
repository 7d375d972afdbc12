package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/grants"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
	"github.com/loom-bridge/loom-bridge/server/sharing"
	"github.com/loom-bridge/loom-bridge/server/unread"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// WatchRecords streams what changes in a memory, until the caller leaves or the server
// stops.
func (s *memoryService) WatchRecords(r *loombridgev1.WatchRecordsRequest, stream grpc.ServerStreamingServer[loombridgev1.WatchRecordsResponse]) error {
	holding, err := sharing.Held(stream.Context(), s.grants, r, validate.WatchRecordsRequest, grants.Read)
	if err != nil {
		return err
	}
	view := convert.RecordView{AsText: convert.AsText(stream.Context()), Embeddings: r.GetIncludeEmbeddings()}
	room := unread.SlotOf(stream.Context())
	following := memory.Following{After: r.GetAfter(), WithVectors: r.GetIncludeEmbeddings(), Room: func(ctx context.Context, size int) error { return room.Take(ctx, size) }}
	return holding.End(s.memory.Follow(holding.Context, holding.Scope, following, func(found memory.Changes) error {
		if err := holding.Still(); err != nil {
			return err
		}
		for _, change := range found.Changes {
			message := view.Change(change)
			room.Hand(proto.Size(message))
			if err := stream.Send(message); err != nil {
				return err
			}
		}
		room.Leave()
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
	room := unread.SlotOf(stream.Context())
	if err := room.Reserve(stream.Context(), maxPartBytes); err != nil {
		return err
	}
	return holding.End(s.memory.Export(holding.Context, holding.Scope, func(lines [][]byte) error {
		if err := holding.Still(); err != nil {
			return err
		}
		out := parts{send: func(lines []string) error {
			if err := stream.Send(&loombridgev1.ExportRecordsResponse{Lines: lines}); err != nil {
				return err
			}
			return room.Reserve(stream.Context(), maxPartBytes)
		}}
		for _, line := range lines {
			if err := out.add(line); err != nil {
				return err
			}
		}
		return out.flush()
	}))
}

// parts are the messages that lines are sent in.
type parts struct {
	send  func(lines []string) error
	lines []string
	size  int
}

// add sends what waits where the line does not fit.
func (p *parts) add(line []byte) error {
	size := protowire.SizeBytes(len(line))
	if len(p.lines) > 0 && p.size+size > maxPartBytes {
		if err := p.flush(); err != nil {
			return err
		}
	}
	p.lines, p.size = append(p.lines, string(line)), p.size+size
	return nil
}

func (p *parts) flush() (err error) {
	if len(p.lines) > 0 {
		err = p.send(p.lines)
	}
	p.lines, p.size = nil, 0
	return err
}

// ExportSessions streams sessions of an agent as lines of JSON.
func (s *contextService) ExportSessions(r *loombridgev1.ExportSessionsRequest, stream grpc.ServerStreamingServer[loombridgev1.ExportSessionsResponse]) error {
	scope, err := agentScope(stream.Context(), r, validate.ExportSessionsRequest)
	if err != nil {
		return err
	}
	room := unread.SlotOf(stream.Context())
	if err := room.Reserve(stream.Context(), maxPartBytes); err != nil {
		return err
	}
	out := parts{send: func(lines []string) error {
		if err := stream.Send(&loombridgev1.ExportSessionsResponse{Lines: lines}); err != nil {
			return err
		}
		return room.Reserve(stream.Context(), maxPartBytes)
	}}
	if err := s.mover.Export(stream.Context(), scope, r.GetSessionId(), out.add); err != nil {
		return err
	}
	return out.flush()
}

// ImportSessions takes lines of an export into an agent.
func (s *contextService) ImportSessions(stream grpc.ClientStreamingServer[loombridgev1.ImportSessionsRequest, loombridgev1.ImportSessionsResponse]) error {
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		first, err = &loombridgev1.ImportSessionsRequest{}, nil // the check names what is missing
	}
	if err != nil {
		return err
	}
	ctx := stream.Context()
	scope, err := agentScope(ctx, first, validate.ImportSessionsRequest)
	if err != nil {
		return err
	}
	into := s.mover.Import(scope)
	defer into.Abort()
	silence := s.endSilent(ctx)
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
			break
		}
		if err == nil {
			err = validate.ImportedSessions(part)
		}
		if err != nil {
			return err
		}
	}
	counts, err := into.End()
	if err != nil {
		return err
	}
	return stream.SendAndClose(convert.ImportedSessions(counts))
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
	id := cmp.Or(first.GetImportId(), rand.Text())
	into, err := s.memory.Import(ctx, scope, id, first.GetSkipExisting())
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
	return stream.SendAndClose(convert.Imported(counts, id))
}
