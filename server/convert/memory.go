package convert

import (
	"encoding/json"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/passage"
	"github.com/loom-bridge/loom-bridge/memory/past"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/writer"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Record converts what is to be saved.
func Record(r *loombridgev1.MemorySaveRequest) (record.Record, error) {
	text := json.RawMessage(r.GetMetadataJson())
	if metadata := r.GetMetadata(); metadata != nil {
		var err error
		if text, err = jsonOf("metadata", structpb.NewStructValue(metadata)); err != nil {
			return record.Record{}, err
		}
	}
	weight := record.DefaultImportance
	if r.Importance != nil {
		weight = r.GetImportance()
	}
	return record.Record{
		ID: r.GetId(), Text: r.GetText(), Key: r.GetKey(), Kind: r.GetKind(),
		SessionID: r.GetSessionId(), Author: r.GetAuthor(), EventTime: timeOf(r.GetEventTime()), ValidUntil: timeOf(r.GetValidUntil()),
		ExpireTime: timeOf(r.GetExpireTime()), TTL: spanOf(r.GetTtl()), SlidingTTL: spanOf(r.GetSlidingTtl()),
		Metadata: text, Tags: r.GetTags(), Importance: weight, Pinned: r.GetPinned(),
		Supersedes: r.GetSupersedes(), DerivedFrom: r.GetDerivedFrom(), Origin: record.Origin(r.GetOrigin()),
		Embedding: r.GetEmbedding(), EmbeddingSpace: r.GetEmbeddingSpace(), Relations: outgoing(r.GetRelations()),
	}, nil
}

// Saved describes a record that was saved, or repeated.
func Saved(r memory.Saved) *loombridgev1.MemorySaveResponse {
	out := saved(&r.Record, r.Similarity, r.Repeated)
	out.ArchivedIds, out.DeletedCount = r.Room.Archived, int64(r.Room.Deleted)
	return out
}

func saved(r *record.Record, similarity float64, repeated bool) *loombridgev1.MemorySaveResponse {
	out := &loombridgev1.MemorySaveResponse{
		Id: r.ID, CreateTime: Timestamp(r.CreateTime), ExpireTime: Timestamp(r.ExpireTime),
		Version: max(r.Version, 1), Review: loombridgev1.Review(r.Review), Redacted: r.Redacted, Outcome: loombridgev1.SaveOutcome_SAVE_OUTCOME_SAVED,
	}
	if repeated {
		out.Outcome, out.Similarity, out.Repeats = loombridgev1.SaveOutcome_SAVE_OUTCOME_REINFORCED, similarity, r.Repeats
	}
	return out
}

// Batch describes records that were saved.
func Batch(b memory.Batch) *loombridgev1.BatchSaveResponse {
	out := &loombridgev1.BatchSaveResponse{
		Saved: make([]*loombridgev1.MemorySaveResponse, len(b.Records)), ArchivedIds: b.Room.Archived, DeletedCount: int64(b.Room.Deleted),
	}
	for i := range b.Records {
		similarity, repeated := b.Repeated(i)
		out.Saved[i] = saved(&b.Records[i], similarity, repeated)
	}
	return out
}

// RecordView is what of a record a caller wants to see.
type RecordView struct {
	AsText     bool
	Embeddings bool
}

// Change writes a change of a memory.
func (v RecordView) Change(c memory.Change) *loombridgev1.WatchRecordsResponse {
	out := &loombridgev1.WatchRecordsResponse{Position: c.Position, Change: &loombridgev1.WatchRecordsResponse_DeletedId{DeletedId: c.ID}}
	if c.Record != nil {
		out.Change = &loombridgev1.WatchRecordsResponse_Saved{Saved: v.Record(*c.Record)}
	}
	return out
}

// Imported writes the outcome of an import.
func Imported(i memory.Imported, id string) *loombridgev1.ImportResponse {
	return &loombridgev1.ImportResponse{ImportId: id, Saved: int64(i.Saved), Unchanged: int64(i.Unchanged), Skipped: int64(i.Skipped), Expired: int64(i.Expired), ArchivedCount: int64(i.Archived), DeletedCount: int64(i.Deleted)}
}

// Record writes a record as far as it is wanted.
func (v RecordView) Record(r record.Record) *loombridgev1.Record {
	out := &loombridgev1.Record{
		Id: r.ID, Text: r.Text, Key: r.Key, Kind: r.Kind, SessionId: r.SessionID, Author: r.Author,
		EventTime: Timestamp(r.EventTime), ValidUntil: Timestamp(r.ValidUntil), CreateTime: Timestamp(r.CreateTime), ExpireTime: Timestamp(r.ExpireTime),
		Tags: r.Tags, Importance: r.Importance, Supersedes: r.Supersedes, SupersededBy: r.SupersededBy,
		DerivedFrom: r.DerivedFrom, Origin: loombridgev1.Origin(r.Origin), Tier: Int32(r.Tier),
		Version: r.Version, UpdateTime: Timestamp(r.UpdateTime), Pinned: r.Pinned,
		AgentId: r.SavedBy, Review: loombridgev1.Review(r.Review), Writer: writerOf(r.Writer), ImportId: r.ImportID,
		Archived: r.Archived, ArchiveTime: Timestamp(r.ArchiveTime), Repeats: r.Repeats, LastRepeatTime: Timestamp(r.LastRepeatTime),
		Relations: outgoingOf(r),
	}
	if r.SlidingTTL > 0 {
		out.SlidingTtl = durationpb.New(r.SlidingTTL)
	}
	if v.Embeddings {
		out.Embedding, out.EmbeddingSpace = r.Embedding, r.EmbeddingSpace
	}
	if len(r.Metadata) == 0 {
		return out
	}
	if object, ok := pleasantStruct(r.Metadata, v.AsText); ok {
		out.MetadataForm = &loombridgev1.Record_Metadata{Metadata: object}
	} else {
		out.MetadataForm = &loombridgev1.Record_MetadataJson{MetadataJson: string(r.Metadata)}
	}
	return out
}

// Reading is which record is read.
func Reading(r *loombridgev1.GetRecordRequest) memory.Reading {
	return memory.Reading{ID: r.GetId(), Key: r.GetKey(), AsOf: timeOf(r.GetAsOf()), Peek: r.GetPeek()}
}

// Moment is the moment that a query or a listing asks for.
func Moment(r interface {
	GetAsOf() *timestamppb.Timestamp
	GetValidAt() *timestamppb.Timestamp
},
) past.Moment {
	return past.Moment{AsOf: record.StoredTime(timeOf(r.GetAsOf())), ValidAt: record.StoredTime(timeOf(r.GetValidAt()))}
}

// Query is what memory is asked for.
func Query(r *loombridgev1.MemoryQueryRequest) question.Question {
	return question.Question{
		Text: r.GetQuery(), Limit: int(r.GetLimit()), Filter: r.GetFilter(), MinScore: r.GetMinScore(),
		MaxTokens: int(r.GetMaxTokens()), Expand: r.GetExpand(), Explain: r.GetExplain(), WithVectors: r.GetIncludeEmbeddings(),
		Embedding: r.GetEmbedding(), EmbeddingSpace: r.GetEmbeddingSpace(),
		RecencyWeight: r.GetRecencyWeight(), RecencyHalfLife: spanOf(r.GetRecencyHalfLife()),
		ImportanceWeight: r.GetImportanceWeight(), AccessWeight: r.GetAccessWeight(), Tiers: Tiers(r.GetTiers()), Without: r.GetWithoutSignals(), Peek: r.GetPeek(), Archived: r.GetIncludeArchived(), Moment: Moment(r), Related: relatedOf(r.GetRelated()),
		Mode: shifted[question.Mode](r.GetMode()),
	}
}

// Tiers are the numbers of tiers.
func Tiers(tiers []int32) []int {
	out := make([]int, len(tiers))
	for i, tier := range tiers {
		out[i] = int(tier)
	}
	return out
}

// Result converts the answer of a query; with owners, each hit says whose it is.
func (v RecordView) Result(r memory.Answer, owners bool) *loombridgev1.MemoryQueryResponse {
	out := &loombridgev1.MemoryQueryResponse{Receipt: receiptOf(r.Receipt)}
	for _, hit := range r.Hits {
		converted := &loombridgev1.MemoryHit{
			Record: v.Record(hit.Record), Score: hit.Score, Explanation: explanationOf(hit.Explanation), OlderIds: hit.Older, Through: throughOf(hit),
		}
		if owners {
			converted.Owner = ownerOf(hit.Scope)
		}
		if hit.Part != nil {
			converted.Record.Text, converted.Passages = "", passagesOf(hit.Record.Text, hit.Part.Passages)
		}
		out.Hits = append(out.Hits, converted)
	}
	return out
}

func passagesOf(text string, passages []passage.Passage) []*loombridgev1.Passage {
	out := make([]*loombridgev1.Passage, len(passages))
	for i, p := range passages {
		out[i] = &loombridgev1.Passage{Text: p.In(text), Start: Int32(p.From)}
	}
	return out
}

func ownerOf(scope kv.Scope) *loombridgev1.MemoryOwner {
	switch scope.Kind {
	case kv.OwnerUser:
		return &loombridgev1.MemoryOwner{Owner: &loombridgev1.MemoryOwner_UserId{UserId: scope.Owner}}
	case kv.OwnerSpace:
		return &loombridgev1.MemoryOwner{Owner: &loombridgev1.MemoryOwner_SpaceId{SpaceId: scope.Owner}}
	}
	return &loombridgev1.MemoryOwner{Owner: &loombridgev1.MemoryOwner_AgentId{AgentId: scope.Owner}}
}

func explanationOf(e *memory.Explanation) *loombridgev1.HitExplanation {
	if e == nil {
		return nil
	}
	out := &loombridgev1.HitExplanation{MatchedWords: e.MatchedWords}
	for _, s := range e.Signals {
		out.Signals = append(out.Signals, &loombridgev1.SignalScore{Name: s.Name, Raw: s.Raw, Share: s.Share})
	}
	return out
}

func receiptOf(r memory.Receipt) *loombridgev1.QueryReceipt {
	return &loombridgev1.QueryReceipt{
		LeftOut: leftOut(&r), Tokens: Int32(r.Tokens),
		EmbeddingSpaces: r.EmbeddingSpaces,
		Records:         r.Records, Degraded: r.Degraded, EmptyReason: loombridgev1.EmptyReason(r.Empty),
		Reread: Int32(r.Reread), Lost: Int32(r.Lost),
	}
}

// leftOut counts what is no hit, by the reasons that the API documents.
func leftOut(r *memory.Receipt) map[string]int32 {
	out := map[string]int32{}
	for reason, n := range map[string]int{
		"filtered": r.Filtered, "expired": r.Expired, "superseded": r.Superseded, "archived": r.Archived,
		"under_min_score": r.UnderMinScore, "over_limit": r.OverLimit, "over_max_tokens": r.OverMaxTokens, "over_max_bytes": r.OverMaxBytes,
		"related_excluded": r.RelatedExcluded, "related_over_limit": r.RelatedOver,
	} {
		if n > 0 {
			out[reason] = Int32(n)
		}
	}
	return out
}

// Stats are the counts of one memory.
func Stats(s memory.Stats) *loombridgev1.MemoryStats {
	out := &loombridgev1.MemoryStats{
		Records: s.Records, Unpacked: int64(s.Tail), Segments: Int32(s.Segments),
		EmbedderSpace: s.EmbedderSpace, Pending: s.Pending,
		Archived: s.Archived,
	}
	for _, space := range s.Spaces {
		out.Spaces = append(out.Spaces, &loombridgev1.EmbeddingSpaceStats{
			Name: space.Name, Dimension: Int32(space.Dimension), Vectors: int64(space.Count),
		})
	}
	return out
}

// writerOf names a writer; nothing for a program, which most are.
func writerOf(w writer.Writer) string {
	if w == writer.Program {
		return ""
	}
	return w.String()
}
