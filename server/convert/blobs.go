package convert

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/loom-bridge/loom-bridge/context/blob"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/page"
)

// BlobInfo describes a blob.
func BlobInfo(e blob.Entry) *loombridgev1.BlobInfo {
	out := &loombridgev1.BlobInfo{
		Ref: e.Ref, Path: e.Path, Size: e.Size, Kind: e.Kind, StepId: e.StepID, SessionId: e.SessionID,
		CreateTime: Timestamp(e.Time), AgentId: e.Owner, Category: e.Category,
		MediaType: e.MediaType, Tier: loombridgev1.BlobTier(e.Tier + 1), Important: e.Important,
		Aliases: e.Aliases,
	}
	if at, ever := e.ExpireTime(); ever {
		out.Ttl, out.ExpireTime = durationpb.New(e.TTL), Timestamp(at)
	}
	if e.Archive.Category != "" {
		out.Archive = &loombridgev1.BlobArchive{
			Category: e.Archive.Category, Tags: e.Archive.Tags,
		}
	}
	return out
}

// BlobTier is the tier that a request names; without one it is the working tier.
func BlobTier(t loombridgev1.BlobTier) blob.Tier { return shifted[blob.Tier](t) }

// BlobFilter is which blobs a listing shows.
func BlobFilter(r *loombridgev1.ListBlobsRequest) blob.Filter {
	return blob.Filter{
		SessionID: r.GetSessionId(), StepID: r.GetStepId(), Kind: r.GetKind(), Category: r.GetCategory(),
		Tier: BlobTier(r.GetTier()), OneTier: r.GetTier() != loombridgev1.BlobTier_BLOB_TIER_UNSPECIFIED,
		Archived: r.GetArchived(), WithoutClosed: !r.GetIncludeClosed() && r.GetSessionId() == "" && r.GetStepId() == "",
	}
}

// BlobPage is a page as far as it fits into limit bytes; the token leads to the
// rest.
func BlobPage(listed blob.Page, usage blob.Usage, limit int) *loombridgev1.ListBlobsResponse {
	out := &loombridgev1.ListBlobsResponse{
		Usage: &loombridgev1.BlobUsage{Count: usage.Blobs, Bytes: usage.Bytes, MaxBytes: usage.MaxBytes},
	}
	if listed.Next != "" {
		out.NextPageToken = page.Blobs.Token(listed.Next)
	}
	// The frame of a blob in the page, and what stands next to the blobs.
	const overhead, rest = 16, 2 << 10
	used := rest
	for i, e := range listed.Entries {
		one := BlobInfo(e)
		if used += proto.Size(one) + overhead; i > 0 && used > limit {
			out.NextPageToken = page.Blobs.Token(listed.Entries[i-1].Home())
			break
		}
		out.Blobs = append(out.Blobs, one)
	}
	return out
}

// Pattern is what to look for in lines; nil for words and for nothing.
func Pattern(r *loombridgev1.SearchBlobsRequest) (*blob.LinePattern, error) {
	switch p := r.GetPattern().(type) {
	case *loombridgev1.SearchBlobsRequest_Literal:
		return blob.Literal(p.Literal, r.GetIgnoreCase())
	case *loombridgev1.SearchBlobsRequest_Regexp:
		return blob.Regexp(p.Regexp, r.GetIgnoreCase())
	}
	return nil, nil
}

// Match is one line that a search found.
func Match(m blob.Match) *loombridgev1.BlobMatch {
	return &loombridgev1.BlobMatch{
		Line: m.Line, Offset: m.Offset, Length: m.Length, Text: utf8Text(string(m.Text)),
	}
}

// Found are the messages of a search of the archive: one for each blob, and
// one more where only incompleteness is to be reported.
func Found(r blob.Results) []*loombridgev1.SearchBlobsResponse {
	var out []*loombridgev1.SearchBlobsResponse
	for _, f := range r.Found {
		message := &loombridgev1.SearchBlobsResponse{Blob: BlobInfo(f.Entry), More: f.More}
		for _, m := range f.Matches {
			message.Matches = append(message.Matches, Match(m))
		}
		out = append(out, message)
	}
	if r.Incomplete && len(out) == 0 {
		out = append(out, &loombridgev1.SearchBlobsResponse{})
	}
	if r.Incomplete {
		out[len(out)-1].Incomplete = true
	}
	return out
}

// Collected says what a collection deleted and what it kept.
func Collected(c blob.Collected) *loombridgev1.CollectGarbageResponse {
	return &loombridgev1.CollectGarbageResponse{
		DeletedCount: c.Entries, FreedBytes: c.Bytes, DeletedRefs: c.Refs,
		More: c.More,
		Kept: keptOf(&c.Kept),
	}
}

// keptOf counts what stays by the reasons that the API documents.
func keptOf(k *blob.Kept) map[string]int64 {
	out := map[string]int64{}
	for reason, n := range map[string]int64{
		"archived": k.Archived, "long_term": k.LongTerm, "important": k.Important,
		"not_expired": k.NotExpired, "in_use": k.InUse, "referenced": k.Referenced,
	} {
		if n > 0 {
			out[reason] = n
		}
	}
	return out
}
