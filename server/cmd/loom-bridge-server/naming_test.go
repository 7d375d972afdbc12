package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Any number of results are archived and promoted under one name.
func TestPathsOfOneName(t *testing.T) {
	t.Parallel()
	const results = 1100 // more than once had a path of one name
	p := MustRun(t, t.TempDir(), "--durability", "none")
	client := contexts.New(p.conn)
	text := strings.Repeat("the same result\\n", 200)
	paths := map[string]bool{}
	add := func(path string, err error) {
		t.Helper()
		must(t, err)
		if path == "" || paths[path] {
			t.Fatalf("path %d is %q, which is taken", len(paths), path)
		}
		paths[path] = true
	}
	for n := range results {
		step := recordText(t, p.conn, "a", text)
		got, err := client.ListBlobs(t.Context(), &loombridgev1.ListBlobsRequest{AgentId: "a", StepId: step})
		must(t, err)
		add(got.GetBlobs()[0].GetPath(), nil)
		archived, err := client.ArchiveBlob(t.Context(), &loombridgev1.ArchiveBlobRequest{AgentId: "a", Name: step, NewName: "same.txt"})
		add(archived.GetBlob().GetPath(), err)
		promoted, err := client.PromoteBlob(t.Context(), &loombridgev1.PromoteBlobRequest{
			AgentId: "a", Name: step, NewName: "same.txt", Tier: loombridgev1.BlobTier_BLOB_TIER_LONG_TERM,
		})
		add(promoted.GetBlob().GetPath(), err)
		if n == results-1 && archived.GetBlob().GetPath() != fmt.Sprintf("archive/general/same_%d.txt", results) {
			t.Errorf("the last one is at %s", archived.GetBlob().GetPath())
		}
	}
}
