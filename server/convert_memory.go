package server

import (
	"encoding/json"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

// The enums of the API have the domain's numbers, or zero for its default.

// recordToSave converts a request or a draft. Metadata and importance have forms
// that the interface can't tell apart.
func recordToSave(r validate.Draft, metadata *structpb.Struct, importance *float64, pinned bool) (record.Record, error) {
	text := json.RawMessage(r.GetMetadataJson())
	if metadata != nil {
		var err error
		if text, err = jsonOf("metadata", structpb.NewStructValue(metadata)); err != nil {
			return record.Record{}, err
		}
	}
	weight := record.DefaultImportance
	if importance != nil {
		weight = *importance
	}
	return record.Record{
		ID: r.GetId(), Text: r.GetText(), Key: r.GetKey(), Kind: r.GetKind(),
		SessionID: r.GetSessionId(), Author: r.GetAuthor(), EventTime: timeOf(r.GetEventTime()),
		ExpireTime: timeOf(r.GetExpireTime()), TTL: spanOf(r.GetTtl()), SlidingTTL: spanOf(r.GetSlidingTtl()),
		Metadata: text, Tags: r.GetTags(), Importance: weight, Pinned: pinned,
		Supersedes: r.GetSupersedes(), DerivedFrom: r.GetDerivedFrom(), Origin: record.Origin(r.GetOrigin()),
		Embedding: r.GetEmbedding(), EmbeddingSpace: r.GetEmbeddingSpace(),
	}, nil
}

func draftRecord(r *loombridgev1.RecordDraft) (record.Record, error) {
	return recordToSave(r, r.GetMetadata(), r.Importance, r.GetPinned())
}

func savedOf(r record.Record) *loombridgev1.MemorySaveResponse {
	return &loombridgev1.MemorySaveResponse{
		Id: r.ID, CreateTime: timestampOf(r.CreateTime), ExpireTime: timestampOf(r.ExpireTime),
	}
}

// recordView is what of a record a caller wants to see.
type recordView struct {
	form       loombridgev1.JsonForm
	embeddings bool
}

func (v recordView) record(r record.Record) *loombridgev1.Record {
	out := &loombridgev1.Record{
		Id: r.ID, Text: r.Text, Key: r.Key, Kind: r.Kind, SessionId: r.SessionID, Author: r.Author,
		EventTime: timestampOf(r.EventTime), CreateTime: timestampOf(r.CreateTime), ExpireTime: timestampOf(r.ExpireTime),
		Tags: r.Tags, Importance: r.Importance, Supersedes: r.Supersedes, SupersededBy: r.SupersededBy,
		DerivedFrom: r.DerivedFrom, Origin: loombridgev1.Origin(r.Origin), Tier: clampInt32(r.Tier),
		Version: r.Version, UpdateTime: timestampOf(r.UpdateTime), Pinned: r.Pinned,
		AgentId: r.SavedBy,
	}
	if r.SlidingTTL > 0 {
		out.SlidingTtl = durationpb.New(r.SlidingTTL)
	}
	if v.embeddings {
		out.Embedding, out.EmbeddingSpace = r.Embedding, r.EmbeddingSpace
	}
	if len(r.Metadata) == 0 {
		return out
	}
	if object, ok := pleasantStruct(r.Metadata, v.form); ok {
		out.MetadataForm = &loombridgev1.Record_Metadata{Metadata: object}
	} else {
		out.MetadataForm = &loombridgev1.Record_MetadataJson{MetadataJson: string(r.Metadata)}
	}
	return out
}

func queryOf(r *loombridgev1.MemoryQueryRequest) question.Question {
	q := question.Question{
		Text: r.GetQuery(), Limit: int(r.GetLimit()), Filter: r.GetFilter(), MinScore: r.GetMinScore(),
		MaxTokens: int(r.GetMaxTokens()), Expand: r.GetExpand(), Explain: r.GetExplain(), WithVectors: r.GetIncludeEmbeddings(),
		Embedding: r.GetEmbedding(), EmbeddingSpace: r.GetEmbeddingSpace(),
		RecencyWeight: r.GetRecencyWeight(), RecencyHalfLife: spanOf(r.GetRecencyHalfLife()),
		ImportanceWeight: r.GetImportanceWeight(), Tiers: tiersOf(r.GetTiers()),
	}
	switch r.GetMode() {
	case loombridgev1.QueryMode_QUERY_MODE_LEXICAL:
		q.Mode = question.Lexical
	case loombridgev1.QueryMode_QUERY_MODE_VECTOR:
		q.Mode = question.Vector
	default:
		q.Mode = question.Hybrid
	}
	return q
}

func tiersOf(tiers []int32) []int {
	out := make([]int, len(tiers))
	for i, tier := range tiers {
		out[i] = int(tier)
	}
	return out
}

// hits converts the answer of a query; with owners, each hit says whose it is.
func (v recordView) result(r memory.Answer, owners bool) *loombridgev1.MemoryQueryResponse {
	out := &loombridgev1.MemoryQueryResponse{Receipt: receiptOf(r.Receipt)}
	for _, hit := range r.Hits {
		converted := &loombridgev1.MemoryHit{Record: v.record(hit.Record), Score: hit.Score, Explanation: explanationOf(hit.Explanation)}
		if owners {
			converted.Owner = ownerOf(hit.Scope)
		}
		out.Hits = append(out.Hits, converted)
	}
	return out
}

func ownerOf(scope kv.Scope) *loombridgev1.MemoryOwner {
	if scope.Kind == kv.OwnerUser {
		return &loombridgev1.MemoryOwner{Owner: &loombridgev1.MemoryOwner_UserId{UserId: scope.Owner}}
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
		LexicalCandidates: clampInt32(r.LexicalCandidates), VectorCandidates: clampInt32(r.VectorCandidates),
		Filtered: clampInt32(r.Filtered), Expired: clampInt32(r.Expired), Superseded: clampInt32(r.Superseded),
		UnderMinScore: clampInt32(r.UnderMinScore), OverLimit: clampInt32(r.OverLimit), OverMaxTokens: clampInt32(r.OverMaxTokens),
		OverMaxBytes: clampInt32(r.OverMaxBytes),
		Tokens:       clampInt32(r.Tokens), VectorsScanned: clampInt32(r.VectorsScanned), VectorsRescored: clampInt32(r.VectorsRescored),
		EmbeddingSpaces: r.EmbeddingSpaces, ExpandedWords: r.ExpandedWords,
		Records: r.Records, IndexSequence: int64(r.IndexSequence), Degraded: r.Degraded, EmptyReason: loombridgev1.EmptyReason(r.Empty),
	}
}

func statsOf(s memory.Stats) *loombridgev1.GetMemoryStatsResponse {
	out := &loombridgev1.GetMemoryStatsResponse{
		Records: s.Records, Words: s.Words, Sessions: s.Sessions, Unpacked: int64(s.Tail), Segments: clampInt32(s.Segments),
		IndexSequence: int64(s.IndexSequence), EmbedderSpace: s.EmbedderSpace, Pending: s.Pending,
	}
	for _, space := range s.Spaces {
		out.Spaces = append(out.Spaces, &loombridgev1.EmbeddingSpaceStats{
			Name: space.Name, Dimension: clampInt32(space.Dimension), Vectors: int64(space.Count),
		})
	}
	return out
}
