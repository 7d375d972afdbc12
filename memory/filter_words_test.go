package memory_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/filter"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// In quotes every text is a text, and numbers beyond 64 bits compare exactly.
func TestFilterTakesOddTextsAndLongNumbers(t *testing.T) {
	r := MustRig(t, memkv.New(nil))
	r.MustSave(t, record.Record{Text: "apple", Metadata: []byte(`{"flag":"True","n":123456789012345678901234567890}`)})
	for filter, want := range map[string]int{
		`metadata.flag = "True"`:                        1,
		`metadata.flag = "null"`:                        0,
		`metadata.n = 123456789012345678901234567890.0`: 1,
		`metadata.n > 123456789012345678901234567889.0`: 1,
		`metadata.n > 123456789012345678901234567890.0`: 0,
	} {
		if found := r.MustQuery(t, question.Question{Text: "apple", Filter: filter}); len(found.Hits) != want {
			t.Errorf("%s: %d hits", filter, len(found.Hits))
		}
	}
}

// A word without quotes that looks like something else is refused, not taken for
// a text that nothing holds; and a refusal says how the number is written.
func TestFilterRefusesMisleadingWords(t *testing.T) {
	r := MustRig(t, memkv.New(nil))
	for text, want := range map[string]string{
		`metadata.x = True`:                 "not True; null counts",
		`metadata.x:None`:                   "not None; null counts",
		`metadata.x = (a OR null)`:          "not null; null counts as not set",
		`metadata.x = +5`:                   "not +5; null counts",
		`metadata.n = 99999999999999999999`: "written with .0 behind it",
		`metadata.n > -9999999999999999999`: "written with .0 behind it",
	} {
		_, err := r.Query(t.Context(), agent, question.Question{Text: "apple", Filter: text})
		if !errors.Is(err, filter.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
