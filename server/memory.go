package server

import (
	"cmp"
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/bridge/erasure/live"
	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/grants"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/relations"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/auth"
	"github.com/loom-bridge/loom-bridge/server/convert"
	"github.com/loom-bridge/loom-bridge/server/page"
	"github.com/loom-bridge/loom-bridge/server/sharing"
	"github.com/loom-bridge/loom-bridge/server/unread"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// Memory is what the handlers need of long-term memory.
type Memory interface {
	SaveAs(ctx context.Context, scope kv.Scope, r record.Record, how memory.Saving) (memory.Saved, error)
	SaveBatchAs(ctx context.Context, scope kv.Scope, rs []record.Record, how memory.Saving) (memory.Batch, error)
	Update(ctx context.Context, scope kv.Scope, u memory.Update, requestID string) (record.Record, error)
	Delete(ctx context.Context, scope kv.Scope, d memory.Deletion, requestID string) (memory.Deleted, error)
	QueryScopes(ctx context.Context, scopes []kv.Scope, q question.Question) (memory.Answer, error)
	DeleteMatching(ctx context.Context, scope kv.Scope, m memory.Matching) (memory.Cleared, error)
	Versions(ctx context.Context, scope kv.Scope, id string, before int64, limit int) ([]record.Record, error)
	Read(ctx context.Context, scope kv.Scope, ask memory.Reading) (record.Record, error)
	List(ctx context.Context, scope kv.Scope, l memory.Listing) (memory.Page, error)
	Reembed(ctx context.Context, scope kv.Scope, progress func(space string, done, total int64) error) error
	Relate(ctx context.Context, scope kv.Scope, how memory.Relating) (int, error)
	Relations(ctx context.Context, scope kv.Scope, ask memory.Related) ([]record.Relation, string, error)
	Stats(ctx context.Context, scope kv.Scope) (memory.Stats, error)
	Owners(ctx context.Context, ask memory.Owners) ([]memory.Owned, kv.Scope, error)
	Follow(ctx context.Context, scope kv.Scope, f memory.Following, do func(memory.Changes) error) error
	Export(ctx context.Context, scope kv.Scope, do func(lines [][]byte) error) error
	Import(ctx context.Context, scope kv.Scope, o memory.ImportOptions) (*memory.Importer, error)
}

var _ Memory = (*memory.Store)(nil)

type memoryService struct {
	loombridgev1.UnimplementedMemoryServiceServer
	memory   Memory
	grants   *grants.Store
	erasures *live.Worker
	limits   Limits
}

// EraseScope erases a subject, and says how far it is.
func (s *memoryService) EraseScope(r *loombridgev1.EraseScopeRequest, stream grpc.ServerStreamingServer[loombridgev1.EraseScopeResponse]) error {
	ctx, stop := context.WithCancelCause(stream.Context())
	defer stop(nil)
	if err := auth.Operator(ctx); err != nil {
		return err
	}
	tenant, err := auth.TenantOf(ctx)
	if err != nil {
		return err
	}
	done, err := s.erasures.Erase(ctx, convert.EraseSubject(r, tenant), r.GetDryRun(), func(p live.EraseProgress) {
		if err := stream.Send(convert.EraseProgress(p)); err != nil {
			stop(err)
		}
	})
	if err != nil {
		return within("subject", err)
	}
	return stream.Send(convert.EraseResult(&done, r.GetDryRun()))
}

// GetRecord returns one record by id or key.
func (s *memoryService) GetRecord(ctx context.Context, r *loombridgev1.GetRecordRequest) (*loombridgev1.Record, error) {
	scope, err := sharing.Reading(ctx, s.grants, r)
	if err != nil {
		return nil, err
	}
	found, err := s.memory.Read(ctx, scope, convert.Reading(r))
	if err != nil {
		return nil, err
	}
	view := convert.RecordView{AsText: convert.AsText(ctx), Embeddings: r.GetIncludeEmbeddings()}
	return view.Record(found), nil
}

// recordFrame bounds the overhead of a record in an answer, including its share of the
// overhead of the list.
const recordFrame = 32

// DeleteRecords deletes one record, or what a filter lets through.
func (s *memoryService) DeleteRecords(ctx context.Context, r *loombridgev1.DeleteRecordsRequest) (*loombridgev1.DeleteRecordsResponse, error) {
	ctx, scope, err := sharing.Writing(ctx, s.grants, r)
	if err != nil {
		return nil, err
	}
	if r.GetName() != nil {
		deleted, err := s.memory.Delete(ctx, scope, memory.Deletion{ID: r.GetId(), Key: r.GetKey(), ExpectedVersion: r.GetExpectedVersion()}, r.GetRequestId())
		if err != nil {
			return nil, err
		}
		return &loombridgev1.DeleteRecordsResponse{Deleted: 1, Id: deleted.ID}, nil
	}
	cleared, err := s.memory.DeleteMatching(ctx, scope, memory.Matching{Filter: r.GetFilter(), Tiers: convert.Tiers(r.GetTiers()), DryRun: r.GetDryRun()})
	if err != nil {
		return nil, err
	}
	return &loombridgev1.DeleteRecordsResponse{Deleted: int64(cleared.Deleted), NotOwned: int64(cleared.NotOwned)}, nil
}

// UpdateRecord changes some fields of a record.
func (s *memoryService) UpdateRecord(ctx context.Context, r *loombridgev1.UpdateRecordRequest) (*loombridgev1.Record, error) {
	ctx, scope, err := sharing.Writing(ctx, s.grants, r)
	if err != nil {
		return nil, err
	}
	u := memory.Update{ID: r.GetId(), Key: r.GetKey(), ExpectedVersion: r.GetExpectedVersion(), Review: record.Review(r.GetReview())}
	moves := u.Review != 0 || r.Archived != nil
	if r.Archived != nil {
		u.Fields, u.Values.Archived = memory.ArchivedField, r.GetArchived()
	}
	if !moves {
		if u.Values, err = convert.Record(r.GetRecord()); err != nil {
			return nil, &valuesError{err}
		}
		paths := validate.MaskOf(r)
		u.Fields, u.Members = validate.FieldsOf(paths), validate.MembersOf(paths)
	}
	updated, err := s.memory.Update(ctx, scope, u, r.GetRequestId())
	switch {
	case err != nil && moves:
		return nil, err
	case err != nil:
		return nil, &valuesError{err}
	}
	return convert.RecordView{AsText: convert.AsText(ctx)}.Record(updated), nil
}

// ListRecords returns a page of records in order of arrival.
func (s *memoryService) ListRecords(ctx context.Context, r *loombridgev1.ListRecordsRequest) (*loombridgev1.ListRecordsResponse, error) {
	scope, err := sharing.Reading(ctx, s.grants, r)
	if err != nil {
		return nil, err
	}
	if r.GetName() != nil {
		return s.versions(ctx, scope, r)
	}
	if r.GetStatsOnly() {
		stats, err := s.memory.Stats(ctx, scope)
		if err != nil {
			return nil, err
		}
		return &loombridgev1.ListRecordsResponse{Stats: convert.Stats(stats)}, nil
	}
	listing := memory.Listing{
		Filter: r.GetFilter(), PageSize: int(r.GetPageSize()), PageToken: r.GetPageToken(),
		NewestFirst: r.GetNewestFirst(), Tiers: convert.Tiers(r.GetTiers()), WithVectors: r.GetIncludeEmbeddings(), Peek: r.GetPeek(), Moment: convert.Moment(r),
	}
	view := convert.RecordView{AsText: convert.AsText(ctx), Embeddings: r.GetIncludeEmbeddings()}
	for {
		listed, err := s.memory.List(ctx, scope, listing)
		if err != nil {
			return nil, err
		}
		out := &loombridgev1.ListRecordsResponse{NextPageToken: listed.NextPageToken}
		for _, record := range listed.Records {
			out.Records = append(out.Records, view.Record(record))
		}
		// Vectors and metadata as a Struct take several times what the store
		// counted, and a page that can't be sent would end the listing there.
		if len(listed.Records) <= 1 || proto.Size(out) <= s.limits.MaxSendBytes {
			return out, nil
		}
		listing.PageSize = len(listed.Records) / 2
	}
}

// versions returns what a record is and was.
func (s *memoryService) versions(ctx context.Context, scope kv.Scope, r *loombridgev1.ListRecordsRequest) (*loombridgev1.ListRecordsResponse, error) {
	found, err := s.memory.Read(ctx, scope, memory.Reading{ID: r.GetId(), Key: r.GetKey(), Peek: true})
	if err != nil {
		return nil, err
	}
	size := cmp.Or(int(r.GetPageSize()), memory.DefaultPageSize)
	token, _ := page.ParseToken(r.GetPageToken())
	before := cmp.Or(int64(token), found.Version) // it may have changed since it was read
	earlier, err := s.memory.Versions(ctx, scope, found.ID, before, size+1)
	if err != nil {
		return nil, err
	}
	if token == 0 {
		found.Embedding, found.EmbeddingSpace = nil, ""
		earlier = slices.Insert(earlier, 0, found)
	}
	view := convert.RecordView{AsText: convert.AsText(ctx)}
	out := &loombridgev1.ListRecordsResponse{}
	for i, sent := 0, 0; i < len(earlier); i++ {
		next := view.Record(earlier[i])
		if sent += proto.Size(next) + recordFrame; i > 0 && (i == size || sent > s.limits.MaxSendBytes) {
			out.NextPageToken = page.Token(uint64(earlier[i-1].Version))
			break
		}
		out.Records = append(out.Records, next)
	}
	return out, nil
}

// BatchSave saves many records at once.
func (s *memoryService) BatchSave(ctx context.Context, r *loombridgev1.BatchSaveRequest) (*loombridgev1.BatchSaveResponse, error) {
	ctx, scope, err := sharing.Writing(ctx, s.grants, r)
	if err != nil {
		return nil, err
	}
	records := make([]record.Record, len(r.GetRecords()))
	for i, draft := range r.GetRecords() {
		if records[i], err = convert.Record(draft); err != nil {
			return nil, &memory.BatchError{Index: i, Err: err}
		}
	}
	saved, err := s.memory.SaveBatchAs(ctx, scope, records, memory.Saving{RequestID: r.GetRequestId(), Duplicates: memory.Duplicates(r.GetDuplicates())})
	if err != nil {
		return nil, err
	}
	return convert.Batch(saved), nil
}

// Reembed makes vectors in the embedder's space and reports how far it is.
func (s *memoryService) Reembed(r *loombridgev1.ReembedRequest, stream grpc.ServerStreamingServer[loombridgev1.ReembedResponse]) error {
	holding, err := sharing.Held(stream.Context(), s.grants, r, grants.Write)
	if err != nil {
		return err
	}
	return holding.End(s.memory.Reembed(holding.Context, holding.Scope, func(space string, done, total int64) error {
		return stream.Send(&loombridgev1.ReembedResponse{EmbeddingSpace: space, Done: done, Total: total})
	}))
}

// WatchRecords streams what changes in a memory, until the caller leaves or the server
// stops.
func (s *memoryService) WatchRecords(r *loombridgev1.WatchRecordsRequest, stream grpc.ServerStreamingServer[loombridgev1.WatchRecordsResponse]) error {
	holding, err := sharing.Held(stream.Context(), s.grants, r, grants.Read)
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

// RelateRecords relates records to each other.
func (s *memoryService) RelateRecords(ctx context.Context, r *loombridgev1.RelateRecordsRequest) (*loombridgev1.RelateRecordsResponse, error) {
	ctx, scope, err := sharing.Writing(ctx, s.grants, r)
	if err != nil {
		return nil, err
	}
	made, err := s.memory.Relate(ctx, scope, memory.Relating{Relations: convert.ToRelations(r.GetRelations()), RequestID: r.GetRequestId()})
	if err != nil {
		return nil, err
	}
	return &loombridgev1.RelateRecordsResponse{Created: convert.Int32(made)}, nil
}

// UnrelateRecords ends relations.
func (s *memoryService) UnrelateRecords(ctx context.Context, r *loombridgev1.UnrelateRecordsRequest) (*loombridgev1.UnrelateRecordsResponse, error) {
	ctx, scope, err := sharing.Writing(ctx, s.grants, r)
	if err != nil {
		return nil, err
	}
	ended, err := s.memory.Relate(ctx, scope, memory.Relating{Relations: convert.ToRelations(r.GetRelations()), End: true, RequestID: r.GetRequestId()})
	if err != nil {
		return nil, err
	}
	return &loombridgev1.UnrelateRecordsResponse{Deleted: convert.Int32(ended)}, nil
}

// ListRelations returns how a record is related.
func (s *memoryService) ListRelations(ctx context.Context, r *loombridgev1.ListRelationsRequest) (*loombridgev1.ListRelationsResponse, error) {
	scope, err := sharing.Reading(ctx, s.grants, r)
	if err != nil {
		return nil, err
	}
	found, id, err := s.memory.Relations(ctx, scope, memory.Related{ID: r.GetId(), Key: r.GetKey(), Way: relations.Way(r.GetDirection()), Names: r.GetNames()})
	if err != nil {
		return nil, err
	}
	out, next := page.Cut(page.Relations, found, r, s.limits.MaxSendBytes, func(r record.Relation) string {
		if r.From == id {
			return "1" + r.Name + "\x00" + r.To
		}
		return "2" + r.Name + "\x00" + r.From
	}, convert.Relation)
	return &loombridgev1.ListRelationsResponse{RecordId: id, Relations: out, NextPageToken: next}, nil
}
