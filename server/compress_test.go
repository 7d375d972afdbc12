package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// searchResult is what a search tool gives, of many hits.
func searchResult(tb testing.TB) string {
	tb.Helper()
	hits := make([]map[string]string, 40)
	for i := range hits {
		hits[i] = map[string]string{
			"title": fmt.Sprintf("Page %d über Bäume", i), "url": fmt.Sprintf("https://example.com/%d", i),
			"snippet": strings.Repeat("Words about trees. ", 10),
		}
	}
	return string(mustJSON(tb, map[string]any{"results": hits}))
}

func TestCompressResult(t *testing.T) {
	s := servertest.Start(t, nil)
	content := searchResult(t)
	request := &loombridgev1.CompressResultRequest{AgentId: agent, SessionId: "s1", ToolName: "web:search", ToolCallId: "c1", Content: content}
	got, err := s.Context.CompressResult(t.Context(), request)
	must(t, err)
	if !got.GetCompressed() || got.GetStrategy() != "search" || len(got.GetContent()) >= len(content) {
		t.Errorf("answer = %v", got)
	}
	path := got.GetBlob().GetPath()
	if !strings.Contains(got.GetContent(), path) || got.GetBlob().GetSessionId() != "s1" {
		t.Errorf("content %q, blob %v", got.GetContent(), got.GetBlob())
	}
	_, stored := MustReadBlob(t, s, &loombridgev1.ReadBlobRequest{AgentId: agent, Name: path})
	var whole struct {
		Content  string
		ToolID   string `json:"tool_id"`
		ToolName string `json:"tool_name"`
	}
	must(t, json.Unmarshal(stored, &whole))
	if whole.Content != content || whole.ToolID != "c1" || whole.ToolName != "web:search" {
		t.Errorf("the whole is %.200s", stored)
	}
	again, err := s.Context.CompressResult(t.Context(), request)
	must(t, err)
	if again.GetContent() != got.GetContent() || again.GetBlob().GetPath() != path {
		t.Errorf("the same again: %v", again)
	}
}

func TestCompressResultThatStays(t *testing.T) {
	s := servertest.Start(t, nil)
	long := strings.Repeat("one line of text\n", 200)
	for name, test := range map[string]struct {
		request  *loombridgev1.CompressResultRequest
		strategy string
	}{
		"short":     {&loombridgev1.CompressResultRequest{Content: "done"}, ""},
		"empty":     {&loombridgev1.CompressResultRequest{}, ""},
		"skipped":   {&loombridgev1.CompressResultRequest{Content: long, Hint: loombridgev1.CompressHint_COMPRESS_HINT_SKIP}, ""},
		"failed":    {&loombridgev1.CompressResultRequest{Content: long, Failed: true}, ""},
		"threshold": {&loombridgev1.CompressResultRequest{Content: long, ThresholdChars: 10_000}, ""},
		"text":      {&loombridgev1.CompressResultRequest{Content: long}, "text"},
		"by kind":   {&loombridgev1.CompressResultRequest{Content: long, ResultKind: "exec"}, "exec"},
		"forced":    {&loombridgev1.CompressResultRequest{Content: long[:1000], Hint: loombridgev1.CompressHint_COMPRESS_HINT_FORCE}, "text"},
	} {
		test.request.AgentId, test.request.ToolName = agent, "my.tool"
		got, err := s.Context.CompressResult(t.Context(), test.request)
		must(t, err)
		if got.GetStrategy() != test.strategy || got.GetCompressed() != (test.strategy != "") || (got.GetBlob() != nil) != got.GetCompressed() {
			t.Errorf("%s: %v", name, got)
		}
		if test.strategy == "" && got.GetContent() != test.request.GetContent() {
			t.Errorf("%s: the content became %q", name, got.GetContent())
		}
	}
}

// What was shortened before is not shortened again, and no whole of it is kept.
func TestCompressResultTwice(t *testing.T) {
	s := servertest.Start(t, nil)
	request := &loombridgev1.CompressResultRequest{
		AgentId: agent, ToolName: "my.tool", Content: strings.Repeat("one line of text\n", 2000),
		Hint: loombridgev1.CompressHint_COMPRESS_HINT_FORCE, Compressed: true,
	}
	got, err := s.Context.CompressResult(t.Context(), request)
	must(t, err)
	if got.GetContent() != request.GetContent() || !got.GetCompressed() || got.GetBlob() != nil {
		t.Errorf("answer = %.200v", got)
	}
}

// A result whose whole can't be kept is not shortened.
func TestCompressResultOverTheQuota(t *testing.T) {
	s := servertest.Start(t, &servertest.Options{Blobs: blob.Options{MaxOwnerBytes: 1000}})
	_, err := s.Context.CompressResult(t.Context(), &loombridgev1.CompressResultRequest{AgentId: agent, ToolName: "web:search", Content: searchResult(t)})
	MustFail(t, err, codes.ResourceExhausted, "BLOB_QUOTA_EXCEEDED")
}
