package server

import (
	"encoding/json"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/loom-bridge/loom-bridge/memory"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// The enums of the API have the domain's numbers, or zero for its default.

func recordToSave(r *loombridgev1.MemorySaveRequest) (memory.Record, error) {
	metadata := json.RawMessage(r.GetMetadataJson())
	if r.GetMetadata() != nil {
		var err error
		if metadata, err = jsonOf("metadata", structpb.NewStructValue(r.GetMetadata())); err != nil {
			return memory.Record{}, err
		}
	}
	importance := memory.DefaultImportance
	if r.Importance != nil {
		importance = r.GetImportance()
	}
	return memory.Record{
		ID: r.GetId(), Text: r.GetText(), Key: r.GetKey(), Kind: r.GetKind(),
		SessionID: r.GetSessionId(), Author: r.GetAuthor(),
		EventTime: timeOf(r.GetEventTime()), ExpireTime: timeOf(r.GetExpireTime()), TTL: spanOf(r.GetTtl()),
		Metadata: metadata, Tags: r.GetTags(), Importance: importance,
		Supersedes: r.GetSupersedes(), DerivedFrom: r.GetDerivedFrom(), Origin: memory.Origin(r.GetOrigin()),
		Embedding: r.GetEmbedding(), EmbeddingSpace: r.GetEmbeddingSpace(),
	}, nil
}

// recordView is what of a record a caller wants to see.
type recordView struct {
	form       loombridgev1.JsonForm
	embeddings bool
}

func (v recordView) record(r memory.Record) *loombridgev1.Record {
	out := &loombridgev1.Record{
		Id: r.ID, Text: r.Text, Key: r.Key, Kind: r.Kind, SessionId: r.SessionID, Author: r.Author,
		EventTime: timestampOf(r.EventTime), CreateTime: timestampOf(r.CreateTime), ExpireTime: timestampOf(r.ExpireTime),
		Tags: r.Tags, Importance: r.Importance, Supersedes: r.Supersedes, SupersededBy: r.SupersededBy,
		DerivedFrom: r.DerivedFrom, Origin: loombridgev1.Origin(r.Origin), Tier: clampInt32(r.Tier),
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

func queryOf(r *loombridgev1.MemoryQueryRequest) memory.Query {
	q := memory.Query{Text: r.GetQuery(), Limit: int(r.GetLimit()), Filter: r.GetFilter(), MinScore: r.GetMinScore()}
	switch r.GetMode() {
	case loombridgev1.QueryMode_QUERY_MODE_LEXICAL:
		q.Mode = memory.Lexical
	case loombridgev1.QueryMode_QUERY_MODE_VECTOR:
		q.Mode = memory.Vector
	default:
		q.Mode = memory.Hybrid
	}
	return q
}

func (v recordView) result(r memory.Result) *loombridgev1.MemoryQueryResponse {
	out := &loombridgev1.MemoryQueryResponse{Receipt: receiptOf(r.Receipt)}
	for _, hit := range r.Hits {
		out.Hits = append(out.Hits, &loombridgev1.MemoryHit{Record: v.record(hit.Record), Score: hit.Score})
	}
	return out
}

func receiptOf(r memory.Receipt) *loombridgev1.QueryReceipt {
	return &loombridgev1.QueryReceipt{
		LexicalCandidates: clampInt32(r.LexicalCandidates), Filtered: clampInt32(r.Filtered),
		Expired: clampInt32(r.Expired), Superseded: clampInt32(r.Superseded), UnderMinScore: clampInt32(r.UnderMinScore),
		Records: r.Records, IndexSequence: int64(r.IndexSequence), Degraded: r.Degraded,
	}
}
