package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// threshold is a number at which a prompt becomes another one.
type threshold struct {
	name string
	n    int
	// from says that the effect is there at n itself; otherwise only above it.
	from bool
	// see makes a prompt with k of what is counted, for an agent that has nothing yet, and
	// reports whether the effect is there.
	see func(c caller, k int) bool
}

// Each number at which prompts change does so there, and neither one before nor one after.
//
// F09, F17, F18, G09, G17, I05, I09, I11, I12, I13, I15, I17, I19, I20, L01, L03, L05, P42, P43, P44, P45, P47, K32, K33, K36, K39, K40, K53, K55
func TestThresholds(t *testing.T) {
	for _, group := range [][]threshold{taskThresholds(), sectionThresholds(), messageThresholds(), memoryThresholds()} {
		for _, x := range group {
			t.Run(x.name, func(t *testing.T) {
				for _, k := range []int{x.n - 1, x.n, x.n + 1} {
					s := servertest.Start(t, nil)
					want := k > x.n || x.from && k == x.n
					if got := x.see(as(t, s, agent), k); got != want {
						t.Errorf("with %d of %d the effect is there: %v", k, x.n, got)
					}
				}
			})
		}
	}
}

// add adds tasks that say "task 0", "task 1" and so on.
func (c caller) add(n int, topic, more string) {
	for i := range n {
		mustEmit(c.tb, c.Server, topic, fmt.Sprintf(`{"content":"task %d"%s}`, i, more))
	}
}

// shown makes the prompt of the caller's session with settings for the user eva.
func (c caller) shown(change func(*loombridgev1.PromptSettings)) *loombridgev1.AssembleResponse {
	c.tb.Helper()
	settings := patient("eva")
	settings.Variation = new(0.0)
	settings.Tools = &loombridgev1.ToolSelection{None: true}
	if change != nil {
		change(settings)
	}
	return promptFor(c.tb, c.Server, "s", "", settings)
}

func taskThresholds() []threshold {
	missing := func(p *loombridgev1.AssembleResponse, task string) bool {
		return !strings.Contains(" "+tasksIn(p)+" ", " "+task+" ")
	}
	thoughts := func(c caller, k int) string {
		c.add(k, "node.thinking", "")
		for range 10 { // the last ten stand there anyway
			mustEmit(c.tb, c.Server, "execute", `{"content":"work"}`)
		}
		return tasksIn(c.shown(func(p *loombridgev1.PromptSettings) { p.Layout = loombridgev1.PromptLayout_PROMPT_LAYOUT_TASK_CONTEXT }))
	}
	return []threshold{
		{"ten tasks of L1", 10, false, func(c caller, k int) bool {
			c.add(k, "execute", "")
			return missing(c.shown(nil), "0")
		}},
		{"ten tasks of L2", 10, false, func(c caller, k int) bool {
			c.add(k, "execute", `,"importance":0.9`)
			for range 10 {
				mustEmit(c.tb, c.Server, "execute", `{"content":"work","importance":0.1}`)
			}
			return missing(c.shown(func(p *loombridgev1.PromptSettings) { p.Sources.MemoryLayers = []string{"L1", "L2"} }), "0")
		}},
		{"two events at least", 2, true, func(c caller, k int) bool { return thoughts(c, k) != "" }},
		{"twenty events", 20, false, func(c caller, k int) bool { return len(strings.Fields(thoughts(c, k))) < k }},
		{"200 characters of arguments", 200, false, func(c caller, k int) bool {
			mustEmit(c.tb, c.Server, "node.tool_call", fmt.Sprintf(`{"tool_name":"look","args":{"at":%q}}`, strings.Repeat("x", k-len(`{"at": ""}`))))
			return strings.Contains(wholeText(c.shown(nil)), "...)]")
		}},
	}
}

func cut(s *loombridgev1.SectionInfo) bool {
	return s.GetOutcome() != loombridgev1.SectionOutcome_SECTION_OUTCOME_SHOWN
}

func sectionThresholds() []threshold {
	return []threshold{
		{"priority 100", 100, false, func(c caller, k int) bool {
			_, err := c.Context.Assemble(c.tb.Context(), &loombridgev1.AssembleRequest{AgentId: c.id, Settings: &loombridgev1.PromptSettings{
				Injections: []*loombridgev1.Injection{injection("own", systemPhase, stable, int32(k), "x")},
			}})
			return err != nil
		}},
		{"2000 tokens of a system prompt", 2000, false, func(c caller, k int) bool {
			return sectionOf(c.shown(func(p *loombridgev1.PromptSettings) { p.System = words(k) }), "system").GetReason() != ""
		}},
		{"4000 tokens of active skills", 4000, false, func(c caller, k int) bool {
			frame := int(MustCountTokens(c.tb, c.Server, "# Skill: own\nword")) - 1
			return strings.Contains(wholeText(c.shown(func(p *loombridgev1.PromptSettings) {
				p.Skills = []*loombridgev1.Skill{{Name: "own", Description: "own", Text: words(k - frame), Active: true}}
			})), "[Cut here. The rest of this skill")
		}},
		{"1000 tokens of other skills", 1000, false, func(c caller, k int) bool {
			list := "# Other skills"
			skills := make([]*loombridgev1.Skill, 10)
			for i := range skills {
				skills[i] = &loombridgev1.Skill{Name: fmt.Sprint("s", i), Description: words(90)}
				list += fmt.Sprintf("\n- s%d: %s", i, skills[i].GetDescription())
			}
			last := skills[len(skills)-1]
			last.Description = words(90 + k - int(MustCountTokens(c.tb, c.Server, list)))
			return strings.Contains(wholeText(c.shown(func(p *loombridgev1.PromptSettings) { p.Skills = skills })), "[Descriptions are shortened.]")
		}},
		{"12000 tokens of all", 12_000, false, func(c caller, k int) bool {
			const joins = 2 // a token for what joins each of the two to others
			return cut(sectionOf(c.shown(func(p *loombridgev1.PromptSettings) {
				p.System = words(1000)
				p.Injections = []*loombridgev1.Injection{{Name: "own", Phase: systemPhase, Cache: stable, MaxTokens: 12_000, Content: words(k - 1000 - joins)}}
			}), "own"))
		}},
		{"a cap of a section", 77, false, func(c caller, k int) bool {
			return cut(sectionOf(c.shown(func(p *loombridgev1.PromptSettings) {
				p.Injections = []*loombridgev1.Injection{{Name: "own", Phase: systemPhase, Cache: stable, MaxTokens: 77, Content: words(k)}}
			}), "own"))
		}},
		{"100 tokens of a goal above the plan", 100, false, func(c caller, k int) bool {
			goal := words(k - int(MustCountTokens(c.tb, c.Server, "Goal: word")) + 1)
			_, err := c.Context.UpdateWorking(c.tb.Context(), &loombridgev1.UpdateWorkingRequest{
				AgentId: c.id, SessionId: "s", Goal: &goal, Plan: planOf(&loombridgev1.PlanItem{Text: strings.Repeat("do ", 250), Status: done}),
			})
			must(c.tb, err)
			return !strings.Contains(lastText(c.shown(nil)), "Goal: "+goal+"\nPlan")
		}},
		{"200 tokens of the goal block", 200, false, func(c caller, k int) bool {
			goal := words(k - int(MustCountTokens(c.tb, c.Server, "Current Goal: word")) + 1)
			_, err := c.Context.UpdateWorking(c.tb.Context(), &loombridgev1.UpdateWorkingRequest{AgentId: c.id, SessionId: "s", Goal: &goal})
			must(c.tb, err)
			return !strings.HasSuffix(lastText(c.shown(nil)), "Current Goal: "+goal)
		}},
		{"five past errors", 5, false, caller.firstErrorGone},
		{"100 characters of an error", 100, false, func(c caller, k int) bool {
			message := strings.Repeat("x", k)
			c.fail("my:tool", `{}`, message)
			return !strings.Contains(lastText(c.shown(nil)), "- my:tool: "+message)
		}},
	}
}

// firstErrorGone reports whether of k failed calls the first one is not in the prompt.
func (c caller) firstErrorGone(k int) bool {
	for n := range k {
		c.fail("my:tool", `{}`, fmt.Sprintf("problem %d.", n))
	}
	return !strings.Contains(lastText(c.shown(nil)), "problem 0.")
}

func messageThresholds() []threshold {
	phases := func(c caller) []string { return texts(c.prompt(literally("three_phase"))) }
	return []threshold{
		{"256 bytes of a session's id", 256, false, func(c caller, k int) bool {
			_, err := c.Context.Assemble(c.tb.Context(), &loombridgev1.AssembleRequest{AgentId: c.id, SessionId: strings.Repeat("s", k)})
			return err != nil
		}},
		{"3000 tokens of a result", 3000, false, func(c caller, k int) bool {
			c.report("my:tool", `{}`, quoted(c.tb, words(k)))
			return !strings.Contains(strings.Join(texts(c.prompt(nil)), "\n"), words(k))
		}},
		{"four messages in full", 4, false, func(c caller, k int) bool {
			c.talkOf(1, k)
			return strings.Contains(phases(c)[0], " chars omitted]… ")
		}},
		{"ten messages without a summary", 10, false, func(c caller, k int) bool {
			c.talkOf(1, k)
			return strings.HasPrefix(phases(c)[0], "[Summary of ")
		}},
		{"300 characters of a folded message", 300, false, func(c caller, k int) bool {
			c.say(user(words(k)[:k]))
			c.talkOf(2, 5)
			return strings.Contains(phases(c)[0], " chars omitted]… ")
		}},
		{"120 characters of a sentence", 120, false, func(c caller, k int) bool {
			sentence := strings.Repeat("x", k-1) + "."
			c.say(user(sentence + " " + begun(1)))
			c.talkOf(2, 11)
			return !strings.Contains(phases(c)[0], sentence)
		}},
		{"three titles of a folded search", 3, false, func(c caller, k int) bool {
			return !strings.Contains(c.folded(k, 10), fmt.Sprint("title ", k-1))
		}},
		{"40 characters of a title", 40, false, func(c caller, k int) bool {
			return !strings.Contains(c.folded(1, k), strings.Repeat("x", k-len("title 0")))
		}},
		{"ten calls without a result", 10, false, func(c caller, k int) bool {
			c.say(user("Go on."))
			for n := range k {
				c.say(&loombridgev1.Message{Role: loombridgev1.Role_ROLE_ASSISTANT, ToolCalls: []*loombridgev1.ModelToolCall{
					{Id: fmt.Sprint("c", n), Name: "my_tool", ArgumentsJson: fmt.Sprintf(`{"n":%d}`, n)},
				}}, user("Go on."))
			}
			h := literally("partitioned")
			return !strings.Contains(strings.Join(texts(c.prompt(h)), "\n"), "[Earlier call my_tool(n=0)")
		}},
	}
}

// folded is the line of a folded search with so many hits, whose titles have so many
// characters.
func (c caller) folded(hits, chars int) string {
	var all []string
	for n := range hits {
		title := fmt.Sprint("title ", n)
		title += strings.Repeat("x", max(chars-len(title), 0))
		all = append(all, fmt.Sprintf(`{"title":%q,"url":"https://example.org","snippet":"s"}`, title))
	}
	c.report("web:search", `{"query":"q"}`, `{"results":[`+strings.Join(all, ",")+`]}`)
	c.talkOf(1, 5)
	for _, text := range texts(c.prompt(literally("three_phase"))) {
		if strings.Contains(text, "most relevant") {
			return text
		}
	}
	return ""
}

func memoryThresholds() []threshold {
	many := func(c caller, k int, r *loombridgev1.MemorySaveRequest, line string) bool {
		for n := range k {
			remember(c.tb, c.Server, &loombridgev1.MemorySaveRequest{Kind: r.GetKind(), UserId: r.GetUserId(), Text: fmt.Sprintf("The pump in hall %d is loud", n)})
		}
		must(c.tb, tell(c.tb, c.Server, "s"))
		c.say(user("Which pump in which hall is loud?"))
		return strings.Count(wholeText(c.shown(nil)), line) < k
	}
	hint := func(c caller, metadata string, wait time.Duration) string {
		remember(c.tb, c.Server, &loombridgev1.MemorySaveRequest{
			Text: "Repair a pump", Kind: "playbook", MetadataForm: &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: metadata},
		})
		s := c.Clock
		s.Advance(wait)
		c.say(user("Repair a pump"))
		_, shown, _ := strings.Cut(wholeText(c.shown(nil)), "<playbook_hint")
		return shown
	}
	return []threshold{
		{"three memories in a prompt of a preset", 3, false, func(c caller, k int) bool {
			MustConfigure(c.tb, c.Server, &loombridgev1.ConfigureSessionRequest{AgentId: c.id, SessionId: "s", History: literally("three_phase")})
			return many(c, k, &loombridgev1.MemorySaveRequest{UserId: "eva"}, "- The pump in hall")
		}},
		{"three pieces of knowledge", 3, false, func(c caller, k int) bool {
			return many(c, k, &loombridgev1.MemorySaveRequest{Kind: "knowledge"}, "The pump in hall")
		}},
		{"200 characters of a playbook's description", 200, false, func(c caller, k int) bool {
			return !strings.Contains(hint(c, fmt.Sprintf(`{"name":"pump","description":%q,"status":"approved"}`, strings.Repeat("x", k)), 0), strings.Repeat("x", k))
		}},
		{"thirty days of a playbook", 30 * 24 * 3600, false, func(c caller, k int) bool {
			return hint(c, `{"name":"pump","description":"Repair a pump","status":"approved"}`, time.Duration(k)*time.Second) == ""
		}},
	}
}
