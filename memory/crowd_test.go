package memory_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// A second look, past the same text, scans no vectors again, and counts none twice.
func TestSecondLookScansNothingAgain(t *testing.T) {
	t.Parallel()
	model := mustModel(t)
	r := MustRig(t, memkv.New(nil))
	r.opts.Embedder, r.opts.EmbedTimeout = model, time.Minute
	r.Reopen()
	texts := append(slices.Clone(otherTalk), "My dentist is Doctor Amsel in Mill Street.", "My dentist is Doctor Amsel in Mill Street!",
		"My dentist is Doctor Amsel in Mill Street.", "My dentist is Doctor Amsel in Mill Street!!", "I left Doctor Amsel, my dentist is Doctor Reyes now.")
	for i, text := range texts {
		r.clock.Set(r.clock.Now().Add(time.Hour))
		r.MustSave(t, record.Record{Author: "user", Text: text, SessionID: fmt.Sprint("s", i/6)})
	}
	MustEmbedAll(t, r.Store, agent)
	const scans = 2 // what is near the question, and what is near the best answer
	for _, expand := range []bool{false, true} {
		answer := r.MustQuery(t, question.Question{Text: "Who is my dentist?", Limit: 4, Expand: expand})
		if got := answer.Receipt.VectorsScanned; got != scans*len(texts) || len(answer.Hits) != 4 {
			t.Errorf("expanded %v: %d of %d vectors are scanned, %d hits", expand, got, len(texts), len(answer.Hits))
		}
	}
}

// The same text stands in an answer twice at most, in whatever case and with whatever emphasis,
// and what says something else takes its place; with a filter it stands as often as it was said.
func TestSameTextDoesNotCrowd(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, asked, other string }{
		{"Please water the tomatoes", "Who waters the tomatoes?", "The tomatoes need water every morning, %d litres a plant."},
		{"Bitte die Tomaten gießen", "Wer gießt die Tomaten?", "Die Tomaten brauchen jeden Morgen Wasser, %d Liter."},
		{"Hay que regar los tomates", "¿Quién riega los tomates?", "Los tomates necesitan %d litros de agua."},
		{"请给番茄浇水", "谁给番茄浇水？", "番茄每天需要%d升水，早上浇。"},
	} {
		t.Run(test.asked, func(t *testing.T) {
			t.Parallel()
			r := MustRig(t, memkv.New(nil))
			for i, end := range []string{"", ".", "!!!", " 🍅", "! 👍🏽", "…", "。", " ❤️"} {
				r.clock.Set(r.clock.Now().Add(time.Hour))
				text := test.text
				if i%3 == 1 {
					text = strings.ToUpper(text)
				}
				r.MustSave(t, record.Record{ID: fmt.Sprint("same", i), Text: text + end, SessionID: fmt.Sprint("s", i)})
			}
			for i := range 4 {
				r.MustSave(t, record.Record{ID: fmt.Sprint("other", i), Text: fmt.Sprintf(test.other, i+2)})
			}
			answer := r.MustQuery(t, question.Question{Text: test.asked, Limit: 5})
			same := 0
			for _, hit := range answer.Hits {
				if hit.Record.ID[0] == 's' {
					same++
				}
			}
			if same > 2 || len(answer.Hits) != 5 {
				t.Errorf("%d of %d hits are the same", same, len(answer.Hits))
			}
			receipt := answer.Receipt
			if left := receipt.LexicalCandidates - len(answer.Hits); receipt.OverLimit != left {
				t.Errorf("%d are over the limit, not %d", receipt.OverLimit, left)
			}
			if all := r.MustQuery(t, question.Question{Text: test.asked, Limit: 20, Filter: `id != "x"`}); len(all.Hits) != 12 {
				t.Errorf("%d hits with a filter", len(all.Hits))
			}
		})
	}
}
