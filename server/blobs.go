package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/convert"
	"github.com/loom-bridge/loom-bridge/server/page"
	"github.com/loom-bridge/loom-bridge/server/unread"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

const (
	// defaultBlobs is how many blobs ListBlobs returns without a page size.
	defaultBlobs = 100
	// defaultMatches is how many lines of one blob SearchBlobs returns.
	defaultMatches = 100
	// pieceBytes is the most that is read of a blob at once.
	pieceBytes = 1 << 20
	// matchBatch is how many lines travel in one message, each at most half a KiB
	// long.
	matchBatch = 64
	// batchBytes is as much room as is taken for one before its lines are found.
	batchBytes = 64 << 10
)

// ReadBlob streams offloaded bytes in the pieces they are stored in, or a step or
// message, in pieces of at most 1 MiB. The first message has the description.
func (s *contextService) ReadBlob(r *loombridgev1.ReadBlobRequest, stream grpc.ServerStreamingServer[loombridgev1.ReadBlobResponse]) error {
	scope, err := auth.AgentScope(stream.Context(), r.GetAgentId())
	if err != nil {
		return err
	}
	entry, err := s.reads.LookupView(stream.Context(), scope, r.GetSessionId(), r.GetName(), convert.BlobView(r.GetForm()), int(r.GetMediaIndex()))
	if err != nil {
		return err
	}
	limit := r.GetLimit()
	if limit == 0 {
		limit = -1
	}
	room := unread.SlotOf(stream.Context())
	if err := room.Reserve(stream.Context(), pieceBytes); err != nil {
		return err
	}
	message := &loombridgev1.ReadBlobResponse{Info: convert.BlobInfo(entry)}
	for piece, err := range s.reads.Read(stream.Context(), scope, entry, r.GetOffset(), limit) {
		if err != nil {
			return err
		}
		message.Data = piece
		if err := stream.Send(message); err != nil {
			return err
		}
		message = &loombridgev1.ReadBlobResponse{}
		if err := room.Reserve(stream.Context(), pieceBytes); err != nil {
			return err
		}
	}
	if message.GetInfo() != nil {
		return stream.Send(message)
	}
	return nil
}

// ListBlobs returns a page of an agent's blobs.
func (s *contextService) ListBlobs(ctx context.Context, r *loombridgev1.ListBlobsRequest) (*loombridgev1.ListBlobsResponse, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	size := int(r.GetPageSize())
	if size == 0 {
		size = defaultBlobs
	}
	after, _ := page.Blobs.Parse(r.GetPageToken(), blob.MaxPathBytes)
	page, err := s.blobs.List(ctx, scope, convert.BlobFilter(r), after, size)
	if err != nil {
		return nil, err
	}
	usage, err := s.blobs.Usage(ctx, scope)
	if err != nil {
		return nil, err
	}
	return convert.BlobPage(page, usage, s.limits.MaxSendBytes), nil
}

// UpdateBlob keeps a blob longer, or puts it into the archive.
func (s *contextService) UpdateBlob(ctx context.Context, r *loombridgev1.UpdateBlobRequest) (*loombridgev1.BlobInfo, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	var entry blob.Entry
	if r.GetArchive() {
		entry, err = s.blobs.Archive(ctx, scope, r.GetName(), blob.Archiving{
			Category: r.GetCategory(), Tags: r.GetTags(), Name: r.GetNewName(), RequestID: r.GetRequestId(),
		})
	} else {
		entry, err = s.blobs.Promote(ctx, scope, r.GetName(), blob.Promotion{
			Tier: convert.BlobTier(r.GetTier()), Category: r.GetCategory(), Name: r.GetNewName(),
			Important: r.GetImportant(), RequestID: r.GetRequestId(),
		})
	}
	if err != nil {
		return nil, err
	}
	return convert.BlobInfo(entry), nil
}

// SearchBlobs streams the lines of a blob that match, or what the archive has.
func (s *contextService) SearchBlobs(r *loombridgev1.SearchBlobsRequest, stream grpc.ServerStreamingServer[loombridgev1.SearchBlobsResponse]) error {
	scope, err := auth.AgentScope(stream.Context(), r.GetAgentId())
	if err != nil {
		return err
	}
	pattern, err := convert.Pattern(r)
	if err != nil {
		return err
	}
	if r.GetName() != "" {
		return s.searchOne(r, scope, pattern, stream)
	}
	room := unread.SlotOf(stream.Context())
	if err := room.Take(stream.Context(), s.limits.MaxSendBytes); err != nil {
		return err
	}
	defer room.Leave()
	found, err := s.blobs.Find(stream.Context(), scope, blob.Query{
		Words: r.GetWords(), Pattern: pattern, Category: r.GetCategory(), Tags: r.GetTags(),
		Limit: int(r.GetLimit()), Matches: int(r.GetMaxMatches()),
	})
	if err != nil {
		return err
	}
	for _, message := range convert.Found(found) {
		room.Hand(proto.Size(message))
		if err := stream.Send(message); err != nil {
			return err
		}
	}
	return nil
}

// searchOne streams the matches of one blob as they are found.
func (s *contextService) searchOne(r *loombridgev1.SearchBlobsRequest, scope kv.Scope, pattern *blob.LinePattern, stream grpc.ServerStreamingServer[loombridgev1.SearchBlobsResponse]) error {
	entry, err := s.reads.Lookup(stream.Context(), scope, r.GetSessionId(), r.GetName())
	if err != nil {
		return err
	}
	left := int(r.GetMaxMatches())
	if left == 0 {
		left = defaultMatches
	}
	from, _ := page.ParseSearchToken(r.GetPageToken())
	room := unread.SlotOf(stream.Context())
	if err := room.Reserve(stream.Context(), batchBytes); err != nil {
		return err
	}
	message := &loombridgev1.SearchBlobsResponse{Blob: convert.BlobInfo(entry)}
	for m, err := range s.reads.Search(stream.Context(), scope, entry, pattern, from) {
		if unfinished, ok := errors.AsType[*blob.UnfinishedError](err); ok {
			message.NextPageToken = page.SearchToken(unfinished.From)
			break
		}
		if err != nil {
			return err
		}
		if left == 0 { // this one shows that there are more
			message.NextPageToken = page.SearchToken(from)
			break
		}
		left, from = left-1, m.After()
		if len(message.GetMatches()) == matchBatch {
			if err := stream.Send(message); err != nil {
				return err
			}
			message = &loombridgev1.SearchBlobsResponse{}
			if err := room.Reserve(stream.Context(), batchBytes); err != nil {
				return err
			}
		}
		message.Matches = append(message.Matches, convert.Match(m))
	}
	return stream.Send(message)
}

// CollectGarbage deletes what has expired and is not needed.
func (s *contextService) CollectGarbage(ctx context.Context, r *loombridgev1.CollectGarbageRequest) (*loombridgev1.CollectGarbageResponse, error) {
	scope, err := auth.AgentScope(ctx, r.GetAgentId())
	if err != nil {
		return nil, err
	}
	done, err := s.blobs.Collect(ctx, scope, &blob.CollectOptions{
		DryRun: r.GetDryRun(), Orphans: true, RequestID: r.GetRequestId(),
	})
	if err != nil {
		return nil, err
	}
	return convert.Collected(done), nil
}

// UploadStep records a step whose result follows in parts.
func (s *contextService) UploadStep(stream grpc.ClientStreamingServer[loombridgev1.UploadStepRequest, loombridgev1.RecordStepResponse]) error {
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		first, err = &loombridgev1.UploadStepRequest{}, nil // the check names what is missing
	}
	if err != nil {
		return err
	}
	if err := validate.Request(first); err != nil {
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
	return stream.SendAndClose(convert.Recorded(answer))
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
