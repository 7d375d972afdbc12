package memory_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/filter"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

func testFilters(t *testing.T, r *rig) {
	long := strings.Repeat("long ", 60)
	r.MustSave(t, record.Record{
		ID: "a", Text: "apple", Key: "fruit.a", Kind: "note", SessionID: "s 1", Author: "Ann", Origin: record.OriginWeb, Tags: []string{"red", "sweet"},
		Metadata: json.RawMessage(`{"n": 5, "f": 2.50, "big": 9007199254740993, "s": "5", "yes": true, "no": null, "deep": {"er": {"x": -1e2}}, "list": ["in"], "odd key": "v", "long": "` + long + `", "AND": "x"}`),
	})
	r.MustSave(t, record.Record{ID: "b", Text: "apple", Key: "fruit.b", Tags: []string{"red", strings.Repeat("t", 128)}, Metadata: json.RawMessage(`{"n": 6, "yes": false, "deep": {"er": 1}, "s": ""}`)})
	tests := []struct {
		filter string
		want   []string
	}{
		{``, []string{"b", "a"}},
		{`  `, []string{"b", "a"}},
		{`id = "a"`, []string{"a"}},
		{`id = "nobody"`, nil},
		{`key = "fruit.b"`, []string{"b"}},
		{`key = "fruit.c"`, nil},
		{`kind = "note"`, []string{"a"}},
		{`kind = note`, []string{"a"}},
		{`kind = "fact"`, []string{"b"}},
		{`session_id = "s 1"`, []string{"a"}},
		{`author = 'Ann'`, []string{"a"}},
		{`author = "ann"`, nil},
		{`origin = "web"`, []string{"a"}},
		{`origin = agent`, []string{"b"}},
		{`tags:"red"`, []string{"b", "a"}},
		{`tags:red AND tags:sweet`, []string{"a"}},
		{`tags:"re"`, nil},
		{`tags:"` + strings.Repeat("t", 128) + `"`, []string{"b"}},
		{`tags:"` + strings.Repeat("t", 127) + `"`, nil},
		{`(kind = "note" AND (tags:"red"))`, []string{"a"}},
		{`metadata.n = 5`, []string{"a"}},
		{`metadata.n = 5.0`, []string{"a"}},
		{`metadata.n = "5"`, nil},
		{`metadata.s = "5"`, []string{"a"}},
		{`metadata.s = ""`, []string{"b"}},
		{`metadata.s = 5`, nil},
		{`metadata.f = 2.5`, []string{"a"}},
		{`metadata.big = 9007199254740993`, []string{"a"}},
		{`metadata.big = 9007199254740992`, nil},
		{`metadata.yes = true`, []string{"a"}},
		{`metadata.yes = "true"`, nil},
		{`metadata.yes = false`, []string{"b"}},
		{`metadata.deep.er.x = -100`, []string{"a"}},
		{`metadata.deep.er = 1`, []string{"b"}},
		{`metadata.missing = 1`, nil},
		{`metadata.no = "null"`, nil},
		{`metadata.list = "in"`, nil},
		{`metadata."odd key" = "v"`, []string{"a"}},
		{`metadata.AND = "x"`, []string{"a"}},
		{`metadata.long = "` + long + `"`, []string{"a"}},
		{`metadata.n = 005`, []string{"a"}},
		{`metadata.n = 0x5`, []string{"a"}},
		{`tags:sweet OR metadata.n >= 6`, []string{"b", "a"}},
		{`NOT tags:sweet`, []string{"b"}},
		{`-metadata.n = 6 AND kind != "fact"`, []string{"a"}},
		{`metadata.list:"in"`, []string{"a"}},
		{`metadata.list:*`, []string{"a"}},
		{`metadata.no:*`, nil},
		{`metadata.n > 5 AND metadata.n <= 6.0`, []string{"b"}},
		{`create_time >= "2026-03-01" AND create_time < "2026-03-02"`, []string{"b", "a"}},
		{`event_time:*`, nil},
		{`importance < 0.1 AND tier = 4 AND pinned = false`, []string{"b", "a"}},
		{`key > "fruit.a"`, []string{"b"}},
		{`kind = ("note" OR "plan")`, []string{"a"}},
		{`id = "a" AND key = "fruit.b"`, nil},
		{`id = "b" AND key = "fruit.b" AND metadata.n = 6`, []string{"b"}},
	}
	for range 2 { // from the tail, then packed
		for _, tt := range tests {
			got := ids(r.MustQuery(t, question.Question{Text: "apple", Filter: tt.filter}))
			if !slices.Equal(got, tt.want) {
				t.Errorf("filter %s: got %v, want %v", tt.filter, got, tt.want)
			}
		}
		r.MustPack(t)
	}
}

func testFilterErrors(t *testing.T, r *rig) {
	for text, problem := range map[string]string{
		`colour = "red"`: `field "colour" is unknown; served are id,`,
		`kind:"a"`:       "kind is compared with =",
		`kind = "a`:      "does not parse: unterminated string",
	} {
		_, err := r.Query(t.Context(), agent, question.Question{Text: "apple", Filter: text})
		var wrong *filter.Error
		if !errors.As(err, &wrong) || !errors.Is(err, filter.ErrInvalid) || !strings.Contains(wrong.Problem, problem) {
			t.Errorf("filter %s: got %v", text, err)
		}
	}
}

func testFilterMatchesFew(t *testing.T, r *rig) {
	want := []string{}
	for i := range 400 {
		record := record.Record{Text: fmt.Sprintf("apple number %d of a long list of apples", i)}
		if i%100 == 42 {
			record.Tags = []string{"rare"}
		}
		if saved := r.MustSave(t, record); i%100 == 42 {
			want = append([]string{saved.ID}, want...)
		}
	}
	mustEqual(t, "rare", want, ids(r.MustQuery(t, question.Question{Text: "apples", Filter: "tags:rare"})))
}
