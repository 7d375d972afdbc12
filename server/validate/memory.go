package validate

import (
	"maps"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/memory/record"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/page"
)

// ofMemory is together for the services of memories.
func (c *checker) ofMemory(r proto.Message) {
	switch r := r.(type) {
	case *loombridgev1.GetRecordRequest:
		c.named(r.GetName() != nil)
	case *loombridgev1.DeleteRecordsRequest:
		c.deletion(r)
	case *loombridgev1.UpdateRecordRequest:
		c.update(r)
	case *loombridgev1.ListRecordsRequest:
		c.listing(r)
	case *loombridgev1.BatchSaveRequest:
		for i, one := range r.GetRecords() {
			broken := len(c.violations)
			c.said("text", one.GetText())
			c.draft(one)
			if c.inside(one); len(c.violations) > broken {
				c.within(broken, Item("records", i))
			}
		}
	case *loombridgev1.RelateRecordsRequest:
		c.relations(r.GetRelations())
	case *loombridgev1.UnrelateRecordsRequest:
		c.relations(r.GetRelations())
	case *loombridgev1.ListRelationsRequest:
		c.named(r.GetName() != nil)
	case *loombridgev1.ExportRequest:
		if r.GetSessionId() != "" && !r.GetSessions() {
			c.add("session_id", "needs sessions")
		}
		c.ofSessions(r.GetSessions(), r)
	case *loombridgev1.ImportRequest:
		c.ofSessions(r.GetSessions(), r)
		if r.GetSessions() && r.GetImportId() != "" {
			c.add("sessions", "can't be given with import_id, which is of records")
		}
	case *loombridgev1.GrantAccessRequest:
		c.granting(r)
	case *loombridgev1.RevokeAccessRequest:
		c.granting(r)
	case *loombridgev1.ListGrantsRequest:
		c.granting(r)
	case *loombridgev1.EraseScopeRequest:
		if r.GetSubject().GetOwner() == nil {
			c.add("subject", "is required: agent_id or user_id")
		}
	}
}

func (c *checker) save(r *loombridgev1.MemorySaveRequest) {
	c.owner(r)
	c.said("text", r.GetText())
	c.draft(r)
	c.enum("duplicates", r.GetDuplicates())
	c.name("request_id", r.GetRequestId(), MaxIDBytes)
	if !r.GetReplace() {
		return
	}
	if r.GetKey() == "" {
		c.add("key", "is required")
	}
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

func (c *checker) embedding(vector []float32, space string) {
	if len(vector) > 0 && space == "" {
		c.add("embedding_space", "is required with embedding")
	}
	c.text("embedding_space", space, record.MaxEmbeddingSpaceBytes)
	if slices.ContainsFunc(vector, notFinite) {
		c.add("embedding", "holds a number that is not finite")
	}
}

func notFinite(x float32) bool { return math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) }

// asked is a field that a message has.
type asked struct {
	name string
	set  bool
}

// none refuses fields that are set.
func (c *checker) none(problem string, fields ...asked) {
	for _, f := range fields {
		if f.set {
			c.add(f.name, "%s", problem)
		}
	}
}

// inside refuses what the request around a record says for it, and how a record is saved.
func (c *checker) inside(r *loombridgev1.MemorySaveRequest) {
	c.none("can't be given here: it is no field of a record",
		asked{"agent_id", r.GetAgentId() != ""}, asked{"user_id", r.GetUserId() != ""}, asked{"space_id", r.GetSpaceId() != ""},
		asked{"request_id", r.GetRequestId() != ""}, asked{"duplicates", r.GetDuplicates() != 0}, asked{"replace", r.GetReplace()})
}

func (c *checker) query(r *loombridgev1.MemoryQueryRequest) {
	c.question(r)
	if r.GetQuery() == "" && (r.GetMode() != loombridgev1.QueryMode_QUERY_MODE_VECTOR || len(r.GetEmbedding()) == 0) {
		c.add("query", "is required")
	}
}

// named refuses a request that does not name its record.
func (c *checker) named(set bool) {
	if !set {
		c.add("name", "is required: give id or key")
	}
}

func (c *checker) deletion(r *loombridgev1.DeleteRecordsRequest) {
	if r.GetName() != nil {
		if r.GetFilter() != "" || len(r.GetTiers()) > 0 || r.GetDryRun() {
			c.add("filter", "can't be given with id or key, nor can tiers and dry_run")
		}
		return
	}
	if r.GetFilter() == "" {
		c.add("filter", "is required")
	}
	if r.ExpectedVersion != nil || r.GetRequestId() != "" {
		c.add("name", "is required with expected_version and request_id: give id or key")
	}
}

func (c *checker) update(r *loombridgev1.UpdateRecordRequest) {
	c.named(r.GetName() != nil)
	if r.GetReview() != loombridgev1.Review_REVIEW_UNSPECIFIED || r.Archived != nil {
		c.moved(r)
		return
	}
	if r.GetRecord() == nil {
		c.add("record", "is required")
	}
	broken := len(c.violations)
	c.draft(r.GetRecord())
	c.inside(r.GetRecord())
	c.within(broken, "record")
	c.mask(r)
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

// mask checks which fields an update names.
func (c *checker) mask(r *loombridgev1.UpdateRecordRequest) {
	paths := MaskOf(r)
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
		c.said("record.text", r.GetRecord().GetText())
	}
}

// unchanging refuses fields of a new value that no update changes, where it is the value that
// says what is to change: they would get lost without a word.
func (c *checker) unchanging(d *loombridgev1.MemorySaveRequest) {
	c.none("can't be changed",
		asked{"record.id", d.GetId() != ""}, asked{"record.key", d.GetKey() != ""}, asked{"record.session_id", d.GetSessionId() != ""},
		asked{"record.supersedes", d.GetSupersedes() != ""}, asked{"record.derived_from", len(d.GetDerivedFrom()) > 0},
		asked{"record.origin", d.GetOrigin() != 0}, asked{"record.relations", len(d.GetRelations()) > 0})
	if d.GetEmbeddingSpace() != "" && len(d.GetEmbedding()) == 0 {
		c.add("record.embedding", "is required with embedding_space")
	}
}

func (c *checker) listing(r *loombridgev1.ListRecordsRequest) {
	if r.GetName() != nil {
		c.between("page_size", int64(r.GetPageSize()), 0, maxVersions)
		if before, known := page.ParseToken(r.GetPageToken()); !known || before > math.MaxInt64 {
			c.add("page_token", notListed)
		}
		if r.GetFilter() != "" || r.GetNewestFirst() || r.GetIncludeEmbeddings() || len(r.GetTiers()) > 0 || r.GetAsOf() != nil || r.GetValidAt() != nil || r.GetStatsOnly() {
			c.add("name", "lists the versions of one record: it can be given with a page and peek alone")
		}
		return
	}
	if r.GetStatsOnly() && (r.GetFilter() != "" || len(r.GetTiers()) > 0 || r.GetPageToken() != "" || r.GetAsOf() != nil || r.GetValidAt() != nil) {
		c.add("stats_only", "counts all of a memory: it can't be given with filter, tiers, page_token, as_of or valid_at")
	}
}

// relations checks what is to be made or ended.
func (c *checker) relations(all []*loombridgev1.Relation) {
	for i, r := range all {
		if r.GetFromId() == r.GetToId() && r.GetToId() != "" {
			c.add(Item("relations", i)+".to_id", "is the record itself")
		}
	}
}

// ofSessions refuses the owner of a memory where sessions are moved, which are an agent's.
func (c *checker) ofSessions(sessions bool, r owned) {
	if sessions && (r.GetUserId() != "" || r.GetSpaceId() != "") {
		c.add("sessions", "can't be given with user_id or space_id: sessions are an agent's")
	}
}

// granting checks whose memory a request is about.
func (c *checker) granting(r owned) {
	if r.GetUserId() == "" && r.GetSpaceId() == "" {
		c.add("owner", "is required: space_id or user_id")
	}
}
