package validate

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/filter"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/page"
)

const (
	// maxOwners bounds the memories that one query searches.
	maxOwners = memory.MaxScopes
	// maxVersions bounds a page of versions, which are read whole.
	maxVersions = 100
	// maxMaskPaths bounds the paths of an update mask; there are ten fields.
	maxMaskPaths = 32
	// maxPathBytes bounds what an error shows of an unknown path.
	maxPathBytes = 256
	// maxQueryTokens bounds max_tokens, which is a size of prompts.
	maxQueryTokens = 1 << 24
)

// within puts a prefix before the fields of the violations behind the first so many. Most
// checks find nothing, and names that are made for nothing take as long as they do.
func (c *checker) within(broken int, prefix string) {
	for i := range c.violations[broken:] {
		c.violations[broken+i].Field = prefix + c.violations[broken+i].Field
	}
}

// draft checks all of a record but that it has a text.
func (c *checker) draft(r *loombridgev1.MemorySaveRequest) {
	c.text("text", r.GetText(), record.MaxTextBytes)
	c.name("id", r.GetId(), record.MaxIDBytes)
	c.name("key", r.GetKey(), record.MaxKeyBytes)
	c.text("kind", r.GetKind(), record.MaxKindBytes)
	c.name("session_id", r.GetSessionId(), record.MaxSessionBytes)
	c.text("author", r.GetAuthor(), record.MaxAuthorBytes)
	c.time("event_time", r.GetEventTime())
	c.time("valid_until", r.GetValidUntil())
	c.text("metadata_json", r.GetMetadataJson(), record.MaxMetadataBytes)
	if c.count("tags", len(r.GetTags()), record.MaxTags) {
		c.requiredTexts("tags", r.GetTags(), record.MaxTagBytes)
	}
	c.share("importance", r.GetImportance())
	c.span("ttl", r.GetTtl(), 1, maxTTL)
	c.time("expire_time", r.GetExpireTime())
	c.span("sliding_ttl", r.GetSlidingTtl(), 1, maxTTL)
	c.embedding(r.GetEmbedding(), r.GetEmbeddingSpace())
	c.name("supersedes", r.GetSupersedes(), record.MaxIDBytes)
	if c.count("derived_from", len(r.GetDerivedFrom()), record.MaxDerivedFrom) {
		for i, id := range r.GetDerivedFrom() {
			c.requiredName(Item("derived_from", i), id, record.MaxIDBytes)
		}
	}
	c.enum("origin", r.GetOrigin())
	if c.count("relations", len(r.GetRelations()), record.MaxRelations) {
		for i, one := range r.GetRelations() {
			c.relation(Item("relations", i), one.GetName(), one.GetToId())
		}
	}
}

// inner refuses what the request around a record says for it, and how a record is saved.
func (c *checker) inner(r *loombridgev1.MemorySaveRequest) {
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"agent_id", r.GetAgentId() != ""},
		{"user_id", r.GetUserId() != ""},
		{"space_id", r.GetSpaceId() != ""},
		{"request_id", r.GetRequestId() != ""},
		{"duplicates", r.GetDuplicates() != 0},
		{"replace", r.GetReplace()},
	} {
		if field.set {
			c.add(field.name, "can't be given here: it is no field of a record")
		}
	}
}

func (c *checker) embedding(vector []float32, space string) {
	within := c.count("embedding", len(vector), record.MaxEmbedding)
	if len(vector) > 0 && space == "" {
		c.add("embedding_space", "is required with embedding")
	}
	c.text("embedding_space", space, record.MaxEmbeddingSpaceBytes)
	if within && slices.ContainsFunc(vector, notFinite) {
		c.add("embedding", "holds a number that is not finite")
	}
}

func notFinite(x float32) bool { return math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) }

// owned is a request about a memory.
type owned interface {
	GetAgentId() string
	GetUserId() string
	GetSpaceId() string
}

// owner is who every request to memory names.
func (c *checker) owner(r owned) {
	c.agent(r.GetAgentId())
	c.user(r.GetUserId())
	c.name("space_id", r.GetSpaceId(), kv.MaxOwnerBytes)
	if r.GetUserId() != "" && r.GetSpaceId() != "" {
		c.add("space_id", "can't be given with user_id: a memory is that of one of the two")
	}
}

// tiers checks the tiers to search.
func (c *checker) tiers(tiers []int32) {
	const first, last = 2, record.LongTerm
	if c.count("tiers", len(tiers), last) {
		for i, tier := range tiers {
			c.between(Item("tiers", i), int64(tier), first, last)
		}
	}
}

// MemorySaveRequest checks what BridgeService.MemorySave is asked.
func MemorySaveRequest(r *loombridgev1.MemorySaveRequest) error {
	var c checker
	c.owner(r)
	c.required("text", r.GetText(), math.MaxInt)
	c.draft(r)
	if r.GetReplace() {
		c.required("key", r.GetKey(), math.MaxInt)
		if r.GetId() != "" {
			c.add("id", "can't be given with replace: the key names the record")
		}
		if r.GetSupersedes() != "" {
			c.add("supersedes", "can't be given with replace")
		}
		if len(r.GetRelations()) > 0 {
			c.add("relations", "can't be given with replace: the existing record keeps its relations")
		}
	}
	c.enum("duplicates", r.GetDuplicates())
	c.request(r.GetRequestId())
	return c.err()
}

// MemoryQueryRequest checks what BridgeService.MemoryQuery is asked.
func MemoryQueryRequest(r *loombridgev1.MemoryQueryRequest) error {
	var c checker
	c.owner(r)
	if r.GetMode() != loombridgev1.QueryMode_QUERY_MODE_VECTOR || len(r.GetEmbedding()) == 0 {
		c.required("query", r.GetQuery(), math.MaxInt)
	}
	c.text("query", r.GetQuery(), question.MaxTextBytes)
	c.between("limit", int64(r.GetLimit()), 0, question.MaxLimit)
	c.text("filter", r.GetFilter(), filter.MaxBytes)
	c.enum("mode", r.GetMode())
	c.share("min_score", r.GetMinScore())
	c.between("max_tokens", int64(r.GetMaxTokens()), 0, maxQueryTokens)
	c.embedding(r.GetEmbedding(), r.GetEmbeddingSpace())
	c.share("recency_weight", r.GetRecencyWeight())
	c.span("recency_half_life", r.GetRecencyHalfLife(), 1, maxTTL)
	c.share("importance_weight", r.GetImportanceWeight())
	c.share("access_weight", r.GetAccessWeight())
	c.tiers(r.GetTiers())
	c.time("as_of", r.GetAsOf())
	c.time("valid_at", r.GetValidAt())
	c.related(r.GetRelated())
	if c.count("owners", len(r.GetOwners()), maxOwners) {
		for i, owner := range r.GetOwners() {
			c.memoryOwner(Item("owners", i), owner)
		}
	}
	return c.err()
}

func (c *checker) memoryOwner(field string, o *loombridgev1.MemoryOwner) {
	switch owner := o.GetOwner().(type) {
	case *loombridgev1.MemoryOwner_AgentId:
		c.requiredName(field+".agent_id", owner.AgentId, kv.MaxOwnerBytes)
	case *loombridgev1.MemoryOwner_UserId:
		c.requiredName(field+".user_id", owner.UserId, kv.MaxOwnerBytes)
	case *loombridgev1.MemoryOwner_SpaceId:
		c.requiredName(field+".space_id", owner.SpaceId, kv.MaxOwnerBytes)
	default:
		c.add(field, "needs agent_id, user_id or space_id")
	}
}

// named is a request that names one record.
type named interface {
	owned
	GetId() string
	GetKey() string
}

// record checks whose memory it is and that the record is named; name is the
// oneof of the two.
func (c *checker) record(r named, name any) {
	c.owner(r)
	switch name.(type) {
	case *loombridgev1.GetRecordRequest_Id, *loombridgev1.UpdateRecordRequest_Id, *loombridgev1.DeleteRecordsRequest_Id, *loombridgev1.ListRecordsRequest_Id, *loombridgev1.ListRelationsRequest_Id:
		c.requiredName("id", r.GetId(), record.MaxIDBytes)
	case *loombridgev1.GetRecordRequest_Key, *loombridgev1.UpdateRecordRequest_Key, *loombridgev1.DeleteRecordsRequest_Key, *loombridgev1.ListRecordsRequest_Key, *loombridgev1.ListRelationsRequest_Key:
		c.requiredName("key", r.GetKey(), record.MaxKeyBytes)
	default:
		c.add("name", "is required: give id or key")
	}
}

// GetRecordRequest checks what MemoryService.GetRecord is asked.
func GetRecordRequest(r *loombridgev1.GetRecordRequest) error {
	var c checker
	c.record(r, r.GetName())
	c.time("as_of", r.GetAsOf())
	return c.err()
}

// DeleteRecordsRequest checks what MemoryService.DeleteRecords is asked.
func DeleteRecordsRequest(r *loombridgev1.DeleteRecordsRequest) error {
	var c checker
	c.request(r.GetRequestId())
	c.version(r.ExpectedVersion)
	if r.GetName() != nil {
		c.record(r, r.GetName())
		if r.GetFilter() != "" || len(r.GetTiers()) > 0 || r.GetDryRun() {
			c.add("filter", "can't be given with id or key, nor can tiers and dry_run")
		}
		return c.err()
	}
	c.owner(r)
	c.required("filter", r.GetFilter(), filter.MaxBytes)
	c.tiers(r.GetTiers())
	if r.ExpectedVersion != nil || r.GetRequestId() != "" {
		c.add("name", "is required with expected_version and request_id: give id or key")
	}
	return c.err()
}

// UpdateRecordRequest checks what MemoryService.UpdateRecord is asked.
func UpdateRecordRequest(r *loombridgev1.UpdateRecordRequest) error {
	var c checker
	c.record(r, r.GetName())
	c.version(r.ExpectedVersion)
	c.request(r.GetRequestId())
	if r.GetReview() != loombridgev1.Review_REVIEW_UNSPECIFIED || r.Archived != nil {
		c.moved(r)
		return c.err()
	}
	if r.GetRecord() == nil {
		c.add("record", "is required")
	}
	broken := len(c.violations)
	c.draft(r.GetRecord())
	c.inner(r.GetRecord())
	c.within(broken, "record.")
	c.mask(r)
	return c.err()
}

// moved checks an update that ends a review, or goes into the archive or out of it.
func (c *checker) moved(r *loombridgev1.UpdateRecordRequest) {
	switch r.GetReview() {
	case loombridgev1.Review_REVIEW_UNSPECIFIED, loombridgev1.Review_REVIEW_APPROVED, loombridgev1.Review_REVIEW_REJECTED:
	default:
		c.add("review", "is neither REVIEW_APPROVED nor REVIEW_REJECTED")
	}
	if r.GetReview() != loombridgev1.Review_REVIEW_UNSPECIFIED && r.Archived != nil {
		c.add("archived", "can't be given with review")
	}
	if r.GetRecord() != nil || r.GetUpdateMask() != nil {
		c.add("record", "can't be given with review or archived, nor can update_mask")
	}
}

// version checks the version that a record must have, if one is given: none has
// zero, and taking it for any would turn the comparison off.
func (c *checker) version(expected *int64) {
	if expected != nil {
		c.between("expected_version", *expected, 1, math.MaxInt64)
	}
}

// mask checks which fields an update names.
func (c *checker) mask(r *loombridgev1.UpdateRecordRequest) {
	paths := MaskOf(r)
	if !c.count("update_mask", len(paths), maxMaskPaths) {
		return
	}
	if len(r.GetUpdateMask().GetPaths()) == 0 {
		c.unchanging(r.GetRecord())
		if len(paths) == 0 && r.GetRecord() != nil {
			c.add("record", "holds nothing to change")
		}
	}
	for _, path := range paths {
		if _, ok := updates[path]; !ok && len(MembersOf([]string{path})) == 0 {
			c.add("update_mask", "names %q, which can't be changed; known are %s, and metadata.{member}", Cut(path, maxPathBytes), strings.Join(slices.Sorted(maps.Keys(updates)), ", "))
		}
	}
	if slices.Contains(paths, "metadata") && len(MembersOf(paths)) > 0 {
		c.add("update_mask", "names metadata, and members of it")
	}
	if slices.Contains(paths, "text") {
		c.required("record.text", r.GetRecord().GetText(), math.MaxInt)
	}
}

// unchanging refuses fields of a new value that no update changes, where it is
// the value that says what is to change: they would get lost without a word.
func (c *checker) unchanging(d *loombridgev1.MemorySaveRequest) {
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"id", d.GetId() != ""},
		{"key", d.GetKey() != ""},
		{"session_id", d.GetSessionId() != ""},
		{"supersedes", d.GetSupersedes() != ""},
		{"derived_from", len(d.GetDerivedFrom()) > 0},
		{"origin", d.GetOrigin() != 0},
		{"relations", len(d.GetRelations()) > 0},
	} {
		if field.set {
			c.add("record."+field.name, "can't be changed")
		}
	}
	if d.GetEmbeddingSpace() != "" && len(d.GetEmbedding()) == 0 {
		c.add("record.embedding", "is required with embedding_space")
	}
}

// ListRecordsRequest checks what MemoryService.ListRecords is asked.
func ListRecordsRequest(r *loombridgev1.ListRecordsRequest) error {
	var c checker
	if r.GetName() != nil {
		c.record(r, r.GetName())
		before, known := page.ParseToken(r.GetPageToken())
		c.page(r, maxVersions, known && before <= math.MaxInt64)
		if r.GetFilter() != "" || r.GetNewestFirst() || r.GetIncludeEmbeddings() || len(r.GetTiers()) > 0 || r.GetAsOf() != nil || r.GetValidAt() != nil || r.GetStatsOnly() {
			c.add("name", "lists the versions of one record: it can be given with a page and peek alone")
		}
		return c.err()
	}
	c.owner(r)
	c.text("filter", r.GetFilter(), filter.MaxBytes)
	c.between("page_size", int64(r.GetPageSize()), 0, memory.MaxPageSize)
	c.text("page_token", r.GetPageToken(), maxPageTokenBytes)
	c.tiers(r.GetTiers())
	c.time("as_of", r.GetAsOf())
	c.time("valid_at", r.GetValidAt())
	if r.GetStatsOnly() && (r.GetFilter() != "" || len(r.GetTiers()) > 0 || r.GetPageToken() != "" || r.GetAsOf() != nil || r.GetValidAt() != nil) {
		c.add("stats_only", "counts all of a memory: it can't be given with filter, tiers, page_token, as_of or valid_at")
	}
	return c.err()
}

// maxPositionBytes bounds a position of a watch.
const maxPositionBytes = 64

// WatchRecordsRequest checks what MemoryService.WatchRecords is asked.
func WatchRecordsRequest(r *loombridgev1.WatchRecordsRequest) error {
	var c checker
	c.owner(r)
	c.text("after", r.GetAfter(), maxPositionBytes)
	return c.err()
}

// ExportRequest checks what TransferService.Export is asked.
func ExportRequest(r *loombridgev1.ExportRequest) error {
	var c checker
	c.owner(r)
	c.name("session_id", r.GetSessionId(), record.MaxSessionBytes)
	if r.GetSessionId() != "" && !r.GetSessions() {
		c.add("session_id", "needs sessions")
	}
	c.ofSessions(r)
	return c.err()
}

// ofSessions refuses the owner of a memory where sessions are moved, which are an agent's.
func (c *checker) ofSessions(r interface {
	owned
	GetSessions() bool
},
) {
	if r.GetSessions() && (r.GetUserId() != "" || r.GetSpaceId() != "") {
		c.add("sessions", "can't be given with user_id or space_id: sessions are an agent's")
	}
}

// maxLines bounds the lines of one message of an import.
const maxLines = 10_000

// ImportRequest checks the first message of an import.
func ImportRequest(r *loombridgev1.ImportRequest) error {
	var c checker
	c.owner(r)
	c.name("import_id", r.GetImportId(), record.MaxKeyBytes)
	c.count("lines", len(r.GetLines()), maxLines)
	c.ofSessions(r)
	if r.GetSessions() && r.GetImportId() != "" {
		c.add("sessions", "can't be given with import_id, which is of records")
	}
	return c.err()
}

// ImportLines checks a later message of an import.
func ImportLines(r *loombridgev1.ImportRequest) error {
	var c checker
	c.count("lines", len(r.GetLines()), maxLines)
	return c.err()
}

// BatchSaveRequest checks what MemoryService.BatchSave is asked.
func BatchSaveRequest(r *loombridgev1.BatchSaveRequest) error {
	var c checker
	c.owner(r)
	if len(r.GetRecords()) == 0 {
		c.add("records", "is required")
	}
	if c.count("records", len(r.GetRecords()), memory.MaxBatchRecords) {
		for i, record := range r.GetRecords() {
			broken := len(c.violations)
			c.required("text", record.GetText(), math.MaxInt)
			c.inner(record)
			if c.draft(record); len(c.violations) > broken {
				c.within(broken, Item("records", i)+".")
			}
		}
	}
	c.enum("duplicates", r.GetDuplicates())
	c.request(r.GetRequestId())
	return c.err()
}

// ReembedRequest checks what MemoryService.Reembed is asked.
func ReembedRequest(r *loombridgev1.ReembedRequest) error {
	var c checker
	c.owner(r)
	return c.err()
}
