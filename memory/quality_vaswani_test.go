package memory_test

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// vaswaniDepth is how many hits of a query are judged.
const vaswaniDepth = 1000

var (
	vaswaniDocument = regexp.MustCompile(`(?s)<DOC>\s*<DOCNO>(\d+)</DOCNO>(.*?)</DOC>`)
	vaswaniTopic    = regexp.MustCompile(`(?s)<num>(\d+)</num><title>(.*?)</title>`)
)

// MustReadVaswani returns the pairs of number and text that a file holds.
func MustReadVaswani(tb testing.TB, name string, pattern *regexp.Regexp) (pairs [][2]string) {
	tb.Helper()
	raw, err := os.ReadFile(MustEvalFile(tb, "vaswani", name))
	if err != nil {
		tb.Fatal(err)
	}
	for _, match := range pattern.FindAllStringSubmatch(string(raw), -1) {
		pairs = append(pairs, [2]string{match[1], strings.Join(strings.Fields(match[2]), " ")})
	}
	return pairs
}

// MustReadJudgements returns the relevant documents of every query.
func MustReadJudgements(tb testing.TB) map[string]map[string]bool {
	tb.Helper()
	raw, err := os.ReadFile(MustEvalFile(tb, "vaswani", "qrels"))
	if err != nil {
		tb.Fatal(err)
	}
	relevant := make(map[string]map[string]bool)
	for line := range strings.Lines(string(raw)) {
		var query, ignored, document string
		var grade int
		if _, err := fmt.Sscan(line, &query, &ignored, &document, &grade); err != nil || grade == 0 {
			continue
		}
		if relevant[query] == nil {
			relevant[query] = make(map[string]bool)
		}
		relevant[query][document] = true
	}
	return relevant
}

// precision returns average precision and nDCG, with linear gain, of a list.
func precision(found []string, relevant map[string]bool) (average, gain float64) {
	hits, ideal := 0, 0.0
	for i, id := range found {
		if relevant[id] {
			hits++
			average += float64(hits) / float64(i+1)
			gain += 1 / math.Log2(float64(i+2))
		}
	}
	for i := range min(len(relevant), vaswaniDepth) {
		ideal += 1 / math.Log2(float64(i+2))
	}
	return average / float64(len(relevant)), gain / ideal
}

// TestVaswani searches a classic collection of abstracts, which has no
// sessions, authors or dates.
func TestVaswani(t *testing.T) {
	store := MustStore(t)
	for batch := range slices.Chunk(MustReadVaswani(t, "doc-text.trec", vaswaniDocument), memory.MaxBatchRecords) {
		records := make([]record.Record, len(batch))
		for i, document := range batch {
			records[i] = record.Record{ID: document[0], Text: document[1]}
		}
		if _, err := store.SaveBatch(t.Context(), agent, records, ""); err != nil {
			t.Fatal(err)
		}
	}
	relevant := MustReadJudgements(t)
	for _, expand := range []bool{false, true} {
		var averages, gains float64
		topics := MustReadVaswani(t, "query-text.trec", vaswaniTopic)
		for _, topic := range topics {
			q := question.Question{Text: topic[1], Mode: question.Lexical, Expand: expand}
			result, err := store.QueryDeep(t.Context(), agent, q, vaswaniDepth)
			if err != nil {
				t.Fatal(err)
			}
			average, gain := precision(ids(result), relevant[topic[0]])
			averages, gains = averages+average, gains+gain
		}
		n := float64(len(topics))
		t.Logf("expand %-5v  MAP %.4f  nDCG %.4f  (%d queries)", expand, averages/n, gains/n, len(topics))
		if !expand {
			atLeast(t, "MAP", 100*averages/n, 29.5)
			atLeast(t, "nDCG", 100*gains/n, 61.5)
		} else {
			atLeast(t, "MAP with expand", 100*averages/n, 31)
			atLeast(t, "nDCG with expand", 100*gains/n, 63)
		}
	}
}
