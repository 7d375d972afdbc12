package server_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// longTalk is a long one of two people, with questions about it.
type longTalk struct {
	Conversation map[string]json.RawMessage `json:"conversation"`
	Questions    []struct {
		Text     string   `json:"question"`
		Evidence []string `json:"evidence"`
	} `json:"qa"`
}

// mustLongTalk is the first one of the evaluation data.
func mustLongTalk(tb testing.TB) longTalk {
	tb.Helper()
	root := os.Getenv("LOOM_EVAL_DATA")
	if root == "" {
		tb.Skip("LOOM_EVAL_DATA names no folder with the evaluation data")
	}
	raw, err := os.ReadFile(filepath.Join(root, "locomo", "locomo_dev.json"))
	must(tb, err)
	var all []longTalk
	must(tb, json.Unmarshal(raw, &all))
	return all[0]
}

// mustRemember saves each turn as a memory of the user, and returns what each says.
func (c longTalk) mustRemember(tb testing.TB, s *servertest.Server, user string) map[string]string {
	tb.Helper()
	said := make(map[string]string)
	for n := 1; c.Conversation[fmt.Sprint("session_", n)] != nil; n++ {
		name := fmt.Sprint("session_", n)
		var date string
		var turns []struct {
			Speaker string `json:"speaker"`
			ID      string `json:"dia_id"`
			Text    string `json:"text"`
		}
		must(tb, json.Unmarshal(c.Conversation[name], &turns))
		must(tb, json.Unmarshal(c.Conversation[name+"_date_time"], &date))
		at, err := time.Parse("3:04 pm on 2 January, 2006", date)
		must(tb, err)
		var drafts []*loombridgev1.MemorySaveRequest
		for _, turn := range turns {
			said[turn.ID] = strings.Join(strings.Fields(turn.Text), " ")
			drafts = append(drafts, &loombridgev1.MemorySaveRequest{Text: turn.Text, Author: turn.Speaker, SessionId: name, EventTime: timestamppb.New(at)})
		}
		_, err = s.Memory.BatchSave(tb.Context(), &loombridgev1.BatchSaveRequest{AgentId: agent, UserId: user, Records: drafts})
		must(tb, err)
	}
	return said
}

var turnID = regexp.MustCompile(`D\d+:\d+`)

// Of what a question about a long conversation needs, most stands in the prompt by
// itself: the turns of the conversation are memories of the user, and the question is the
// newest message of a fresh session. The benchmark "memory prompt" asks all of them.
//
// I12
func TestEvidenceEntersByItself(t *testing.T) {
	c := mustLongTalk(t)
	s := servertest.Start(t, nil)
	said := c.mustRemember(t, s, "eva")
	for _, test := range []struct {
		tokens int32
		least  float64
	}{{1000, .80}, {2000, .84}} {
		sum, questions := 0.0, 0
		for i, q := range c.Questions {
			var ids []string
			for _, e := range q.Evidence {
				ids = append(ids, turnID.FindAllString(e, -1)...)
			}
			if len(ids) == 0 || i%2 == 1 {
				continue
			}
			settings := settingsFor("eva")
			settings.Sources = &loombridgev1.SourceSettings{UserMemories: 100}
			settings.Limits = &loombridgev1.InjectionLimits{Sections: map[string]int32{"user_memory": test.tokens}}
			text := wholeText(promptFor(t, s, fmt.Sprint(test.tokens, "-", i), q.Text, settings))
			shown := 0
			for _, id := range ids {
				if said[id] != "" && strings.Contains(text, said[id]) {
					shown++
				}
			}
			sum, questions = sum+float64(shown)/float64(len(ids)), questions+1
		}
		got := sum / float64(questions)
		t.Logf("%d tokens: %.3f of the evidence of %d questions", test.tokens, got, questions)
		if got < test.least {
			t.Errorf("%d tokens: %.3f of the evidence, want %.2f", test.tokens, got, test.least)
		}
	}
}
