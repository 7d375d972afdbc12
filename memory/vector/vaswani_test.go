package vector_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/embedtest"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// tags are those of a collection's files.
var tags = regexp.MustCompile(`(?s)<DOCNO>.*?</DOCNO>|<num>.*?</num>|</?[a-zA-Z]+>`)

// MustReadTexts returns the texts of a file of the Vaswani collection, which is
// not part of the project.
func MustReadTexts(tb testing.TB, name, end string) (texts []string) {
	tb.Helper()
	root := os.Getenv("LOOM_EVAL_DATA")
	if root == "" {
		tb.Skip("LOOM_EVAL_DATA names no folder with the evaluation data")
	}
	content, err := os.ReadFile(filepath.Join(root, "vaswani", name))
	if err != nil {
		tb.Fatal(err)
	}
	for _, part := range regexp.MustCompile(end).Split(string(content), -1) {
		if text := tags.ReplaceAllString(part, " "); regexp.MustCompile(`\w`).MatchString(text) {
			texts = append(texts, text)
		}
	}
	return texts
}

// TestRecallOfMeanings compares searches with exact ones on vectors of 384
// numbers that come from real texts: those of abstracts, asked for by questions.
func TestRecallOfMeanings(t *testing.T) {
	texts := MustReadTexts(t, "doc-text.trec", "</DOC>")
	questions := MustReadTexts(t, "query-text.trec", "</top>")
	model := embedtest.TrainLSA(texts, &embedtest.LSAOptions{MaxWords: 4000})
	vectors, _ := model.Embed(t.Context(), texts)
	queries, _ := model.Embed(t.Context(), questions)
	r := MustRig(t, memkv.New(nil), nil)
	r.MustAddAll(t, 1, vectors)
	r.MustPack(t)
	share, rescored := recall(t, r, vectors, queries, nil)
	t.Logf("%d vectors, %d queries: recall@10 %.4f, %.0f compared exactly", len(vectors), len(queries), share, rescored)
	if share < 0.99 {
		t.Errorf("recall@10 is %.4f", share)
	}
	few := make(set)
	for ordinal := uint32(1); int(ordinal) <= len(vectors); ordinal += 3 {
		few[ordinal] = true
	}
	if share, _ = recall(t, r, vectors, queries, few); share != 1 {
		t.Errorf("recall@10 where %d are allowed is %.4f, want 1", len(few), share)
	}
}
