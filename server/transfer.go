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

	"github.com/loom-bridge/loom-bridge/context/transfer"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/grants"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/convert"
	"github.com/loom-bridge/loom-bridge/server/sharing"
	"github.com/loom-bridge/loom-bridge/server/unread"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// transferService takes memories and sessions out and in, as lines.
type transferService struct {
	loombridgev1.UnimplementedTransferServiceServer
	memory Memory
	grants *grants.Store
	mover  *transfer.Mover
	limits Limits
}

// maxPartBytes is about how many bytes of lines are sent in one message.
const maxPartBytes = 256 << 10

// Export streams a memory, or sessions of an agent, as lines of JSON.
func (s *transferService) Export(r *loombridgev1.ExportRequest, stream grpc.ServerStreamingServer[loombridgev1.ExportResponse]) error {
	room := unread.SlotOf(stream.Context())
	out := parts{send: func(lines []string) error {
		if err := stream.Send(&loombridgev1.ExportResponse{Lines: lines}); err != nil {
			return err
		}
		return room.Reserve(stream.Context(), maxPartBytes)
	}}
	if r.GetSessions() {
		scope, err := auth.AgentScope(stream.Context(), r.GetAgentId())
		if err != nil {
			return err
		}
		if err := room.Reserve(stream.Context(), maxPartBytes); err != nil {
			return err
		}
		if err := s.mover.Export(stream.Context(), scope, r.GetSessionId(), out.add); err != nil {
			return err
		}
		return out.flush()
	}
	holding, err := sharing.Held(stream.Context(), s.grants, r, grants.Read)
	if err != nil {
		return err
	}
	if err := room.Reserve(stream.Context(), maxPartBytes); err != nil {
		return err
	}
	return holding.End(s.memory.Export(holding.Context, holding.Scope, func(lines [][]byte) error {
		if err := holding.Still(); err != nil {
			return err
		}
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

// importer takes the lines of an import, one by one.
type importer interface {
	Take(ctx context.Context, line []byte) error
}

// Import takes lines of an export into a memory, or into an agent.
func (s *transferService) Import(stream grpc.ClientStreamingServer[loombridgev1.ImportRequest, loombridgev1.ImportResponse]) error {
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		first, err = &loombridgev1.ImportRequest{}, nil // the check names what is missing
	}
	if err == nil {
		err = validate.Request(first)
	}
	if err != nil {
		return err
	}
	if first.GetSessions() {
		return s.importSessions(stream, first)
	}
	ctx, scope, err := sharing.Writing(stream.Context(), s.grants, first)
	if err != nil {
		return err
	}
	id := cmp.Or(first.GetImportId(), rand.Text())
	into, err := s.memory.Import(ctx, scope, memory.ImportOptions{ID: id, Skip: first.GetSkipExisting(), DryRun: first.GetDryRun()})
	if err != nil {
		return err
	}
	if err := s.takeAll(ctx, stream, first, into); err != nil {
		return err
	}
	counts, err := into.End(ctx)
	if err != nil {
		return err
	}
	return stream.SendAndClose(convert.Imported(counts, id))
}

func (s *transferService) importSessions(stream grpc.ClientStreamingServer[loombridgev1.ImportRequest, loombridgev1.ImportResponse], first *loombridgev1.ImportRequest) error {
	ctx := stream.Context()
	scope, err := auth.AgentScope(ctx, first.GetAgentId())
	if err != nil {
		return err
	}
	into := s.mover.Import(scope, transfer.ImportOptions{Skip: first.GetSkipExisting(), DryRun: first.GetDryRun()})
	defer into.Abort()
	if err := s.takeAll(ctx, stream, first, into); err != nil {
		return err
	}
	counts, err := into.End()
	if err != nil {
		return err
	}
	return stream.SendAndClose(convert.ImportedSessions(counts))
}

// takeAll takes all lines of a stream, which ends when none come for too long.
func (s *transferService) takeAll(ctx context.Context, stream grpc.ClientStreamingServer[loombridgev1.ImportRequest, loombridgev1.ImportResponse], first *loombridgev1.ImportRequest, into importer) error {
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
		var err error
		if part, err = stream.Recv(); errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
