package validate

import (
	"math"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/step"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/page"
)

// ReadBlobRequest checks what BlobService.ReadBlob is asked.
func ReadBlobRequest(r *loombridgev1.ReadBlobRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.requiredName("name", r.GetName(), maxBlobNameBytes)
	c.between("offset", r.GetOffset(), 0, math.MaxInt64)
	c.between("limit", r.GetLimit(), 0, math.MaxInt64)
	c.session(r.GetSessionId())
	c.enum("form", r.GetForm())
	c.between("media_index", int64(r.GetMediaIndex()), 0, step.MaxMedia-1)
	return c.err()
}

// ListBlobsRequest checks what BlobService.ListBlobs is asked.
func ListBlobsRequest(r *loombridgev1.ListBlobsRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.session(r.GetSessionId())
	if _, ok := step.ParseID(r.GetStepId()); !ok && r.GetStepId() != "" {
		c.add("step_id", "is not `step_` and a number of at least three digits")
	}
	c.text("kind", r.GetKind(), blob.MaxCategoryBytes)
	c.name("category", r.GetCategory(), blob.MaxCategoryBytes)
	c.enum("tier", r.GetTier())
	c.namesPage(r, page.Blobs, blob.MaxPathBytes)
	return c.err()
}

// UpdateBlobRequest checks what BlobService.UpdateBlob is asked.
func UpdateBlobRequest(r *loombridgev1.UpdateBlobRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.requiredName("name", r.GetName(), maxBlobNameBytes)
	switch r.GetTier() {
	case loombridgev1.BlobTier_BLOB_TIER_SHORT_TERM, loombridgev1.BlobTier_BLOB_TIER_LONG_TERM:
		if r.GetArchive() {
			c.add("tier", "can't be given with archive")
		}
	default:
		if !r.GetArchive() || r.GetTier() != loombridgev1.BlobTier_BLOB_TIER_UNSPECIFIED {
			c.add("tier", "must be BLOB_TIER_SHORT_TERM or BLOB_TIER_LONG_TERM")
		}
	}
	if r.GetArchive() && r.GetImportant() {
		c.add("important", "can't be given with archive: there all is kept")
	}
	c.name("category", r.GetCategory(), blob.MaxCategoryBytes)
	c.blobTags(r.GetTags())
	if len(r.GetTags()) > 0 && !r.GetArchive() {
		c.add("tags", "can only be given with archive")
	}
	c.name("new_name", r.GetNewName(), blob.MaxNameBytes)
	c.request(r.GetRequestId())
	return c.err()
}

func (c *checker) blobTags(tags []string) {
	if c.count("tags", len(tags), blob.MaxTags) {
		c.names("tags", tags, blob.MaxTagBytes)
	}
}

// SearchBlobsRequest checks what BlobService.SearchBlobs is asked.
func SearchBlobsRequest(r *loombridgev1.SearchBlobsRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.name("name", r.GetName(), maxBlobNameBytes)
	c.session(r.GetSessionId())
	switch pattern := r.GetPattern().(type) {
	case *loombridgev1.SearchBlobsRequest_Words:
		c.required("words", pattern.Words, blob.MaxQueryBytes)
		if r.GetName() != "" {
			c.add("words", "search the archive, not one blob: give literal or regexp")
		}
	case *loombridgev1.SearchBlobsRequest_Literal:
		c.required("literal", pattern.Literal, blob.MaxPatternBytes)
	case *loombridgev1.SearchBlobsRequest_Regexp:
		c.required("regexp", pattern.Regexp, blob.MaxPatternBytes)
	default:
		if r.GetName() != "" {
			c.add("pattern", "is required with name: give literal or regexp")
		}
	}
	c.name("category", r.GetCategory(), blob.MaxCategoryBytes)
	c.blobTags(r.GetTags())
	c.between("limit", int64(r.GetLimit()), 0, blob.MaxFound)
	c.between("max_matches", int64(r.GetMaxMatches()), 0, blob.MaxFoundMatches)
	c.text("page_token", r.GetPageToken(), maxPageTokenBytes)
	if _, ok := page.ParseSearchToken(r.GetPageToken()); !ok {
		c.add("page_token", "did not come from SearchBlobs")
	}
	if r.GetName() == "" && r.GetPageToken() != "" {
		c.add("page_token", "continues the search of one blob: give its name")
	}
	if r.GetName() != "" && (r.GetCategory() != "" || len(r.GetTags()) > 0) {
		c.add("name", "searches one blob, category and tags the archive: give one or the other")
	}
	return c.err()
}

// CollectGarbageRequest checks what BlobService.CollectGarbage is asked.
func CollectGarbageRequest(r *loombridgev1.CollectGarbageRequest) error {
	var c checker
	c.agent(r.GetAgentId())
	c.request(r.GetRequestId())
	return c.err()
}
