package inject_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/session"
)

const goalBlock = "Current Goal: win\nProgress: 1/2 steps completed\nNext: go"

func said(role session.Role, content string) session.Message {
	return session.Message{Role: role, Content: content}
}

func blocks(role session.Role, text string) session.Message {
	return session.Message{Role: role, BlocksJSON: json.RawMessage(text)}
}

func TestRewrite(t *testing.T) {
	// M10, M11
	for name, test := range map[string]struct {
		before []session.Message
		block  string
		want   []session.Message
	}{
		"last": {
			[]session.Message{said(session.Assistant, "a"), said(session.User, "b")},
			goalBlock,
			[]session.Message{said(session.Assistant, "a"), said(session.User, "b\n\n"+goalBlock)},
		},
		"no user last": {
			[]session.Message{said(session.User, "b"), said(session.Assistant, "a")},
			goalBlock,
			[]session.Message{said(session.User, "b"), said(session.Assistant, "a"), said(session.User, goalBlock)},
		},
		"empty": {nil, goalBlock, []session.Message{said(session.User, goalBlock)}},
		"nothing to say": {
			[]session.Message{said(session.User, "b\n\n"+goalBlock)},
			"",
			[]session.Message{said(session.User, "b")},
		},
		"earlier ones leave": {
			[]session.Message{
				said(session.User, "a\n\nCurrent Goal: old"), said(session.Assistant, "Current Goal: mine"),
				said(session.User, "b\n\n"+goalBlock+"\n\nc\n\n"+goalBlock), said(session.User, goalBlock), said(session.User, "d"),
			},
			"Current Goal: win",
			[]session.Message{
				said(session.User, "a"), said(session.Assistant, "Current Goal: mine"),
				said(session.User, "b\n\nc"), said(session.User, "d\n\nCurrent Goal: win"),
			},
		},
		"the user's own words stay": {
			[]session.Message{said(session.User, "Current Goal: lose weight\nin a year"), said(session.User, "My Current Goal: x")},
			"",
			[]session.Message{said(session.User, "Current Goal: lose weight\nin a year"), said(session.User, "My Current Goal: x")},
		},
		"blocks": {
			[]session.Message{blocks(session.User, `[{"type":"text","text":"a"},{"z":1,"text":"b<c>","type":"text","cache_control":{"type":"ephemeral"}},{"type":"image","source":{}}]`)},
			goalBlock,
			[]session.Message{blocks(session.User, `[{"type":"text","text":"a"},{"z":1,"text":"b<c>\n\nCurrent Goal: win\nProgress: 1/2 steps completed\nNext: go","type":"text","cache_control":{"type":"ephemeral"}},{"type":"image","source":{}}]`)},
		},
		"blocks without text": {
			[]session.Message{blocks(session.User, `[{"type":"tool_result","tool_use_id":"x","content":"y"}]`)},
			"Current Goal: win",
			[]session.Message{blocks(session.User, `[{"type":"tool_result","tool_use_id":"x","content":"y"},{"type":"text","text":"Current Goal: win"}]`)},
		},
		"blocks with earlier ones": {
			[]session.Message{blocks(session.User, `[{"type":"image"},{"type":"text","text":"Current Goal: old"}]`), said(session.Assistant, "x")},
			"",
			[]session.Message{blocks(session.User, `[{"type":"image"}]`), said(session.Assistant, "x")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := fmt.Sprintf("%#v", test.before)
			got := inject.Rewrite(test.before, test.block)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if fmt.Sprintf("%#v", test.before) != before {
				t.Error("the messages of the caller were changed")
			}
			if diff := cmp.Diff(got, inject.Rewrite(got, test.block)); diff != "" {
				t.Errorf("once more changes it: %s", diff)
			}
		})
	}
}

// Whatever the messages are: the block ends them, once more changes nothing, and what was
// given stays as it was.
func TestRewriteAnything(t *testing.T) {
	// M10, M11
	pieces := []string{"a", "\n", "\n\n", goalBlock, "Current Goal: old", "Next: x", "Progress: 1/2 steps completed", " ", "é"}
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 0))
		all := make([]session.Message, r.IntN(4))
		for i := range all {
			var b strings.Builder
			for range r.IntN(6) {
				b.WriteString(pieces[r.IntN(len(pieces))])
			}
			all[i] = said([]session.Role{session.User, session.Assistant}[r.IntN(2)], b.String())
			if r.IntN(3) == 0 {
				content, _ := json.Marshal([]map[string]string{{"type": "text", "text": b.String()}})
				all[i] = blocks(all[i].Role, string(content))
			}
		}
		before := fmt.Sprintf("%#v", all)
		got := inject.Rewrite(all, goalBlock)
		if fmt.Sprintf("%#v", all) != before {
			t.Fatalf("seed %d: the messages of the caller were changed", seed)
		}
		if diff := cmp.Diff(got, inject.Rewrite(got, goalBlock)); diff != "" {
			t.Fatalf("seed %d: once more changes it: %s", seed, diff)
		}
		last := got[len(got)-1]
		text := last.Content
		if len(last.BlocksJSON) > 0 {
			var content []map[string]string
			if err := json.Unmarshal(last.BlocksJSON, &content); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			text = content[len(content)-1]["text"]
		}
		if last.Role != session.User || !strings.HasSuffix(text, goalBlock) {
			t.Fatalf("seed %d: it ends in %q", seed, text)
		}
	}
}
