package views

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loom-bridge/loom-bridge/context/text"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const promptHelp = `Show a prompt as it was sent, its sections with their tokens, and what it left out. PROMPT is an
id, or a number as prompt list has it; without one it is the session's last prompt.`

// Prompt is the command of the prompts that a session has sent.
func Prompt(o Options) *cobra.Command {
	v := &view{Options: o}
	list := v.command("list", "List the prompts that a session has sent", "prompt list --agent a1 --session monday", cobra.NoArgs, func(ctx context.Context, _ []string) error {
		got, err := v.found(ctx, "")
		if err != nil {
			return err
		}
		if v.json {
			return v.write(got)
		}
		t := newTable("", ">NUMBER", "=PROMPT", "MODEL", ">TOKENS", ">ENTRIES", "SECTIONS")
		shown := got.GetPrompts()[max(0, len(got.GetPrompts())-v.limit):]
		for _, p := range shown {
			t.add(p.GetNumber(), p.GetPromptId(), p.GetModel(), p.GetTokens(), p.GetLastPosition(), largest(p.GetParts()))
		}
		t.more = len(shown) < len(got.GetPrompts())
		return v.print(t)
	})
	var step string
	var diff bool
	show := v.command("show [PROMPT]", "Show a prompt as it was sent, its sections, and what it left out",
		"prompt show --agent a1 --session monday\nprompt show --agent a1 --step step_007\nprompt show --agent a1 12 --diff", cobra.MaximumNArgs(1), func(ctx context.Context, args []string) error {
			ask := &loombridgev1.AssembleRequest{AsOf: &loombridgev1.AssembleRequest_AsOfStepId{AsOfStepId: step}}
			if step == "" {
				got, err := v.found(ctx, "")
				if err != nil {
					return err
				}
				_, p, err := named(got, strings.Join(args, ""))
				if err != nil {
					return err
				}
				if diff {
					return v.difference(ctx, p)
				}
				ask.AsOf = &loombridgev1.AssembleRequest_AsOfPromptId{AsOfPromptId: p.GetPromptId()}
			}
			p, err := v.sent(ctx, ask)
			if err != nil {
				return err
			}
			return v.prompt(p)
		})
	show.Long = promptHelp
	show.Flags().StringVar(&step, "step", "", "the prompt that was answered with the step of this `id`")
	show.Flags().BoolVar(&diff, "diff", false, "show what changed since the prompt before")
	show.MarkFlagsMutuallyExclusive("step", "diff")
	var prompt string
	blame := v.command("blame TEXT", "Tell where a text came from, which prompts showed it, and what took it out",
		"prompt blame --agent a1 --session monday \"closes at 17:30\"\nprompt blame --agent a1 \"closes at 17:30\" --prompt 12", cobra.ExactArgs(1), func(ctx context.Context, args []string) error {
			return v.blame(ctx, args[0], prompt)
		})
	blame.Flags().StringVar(&prompt, "prompt", "", "tell it of the prompt with this `number` or id; default: the last one")
	v.listing(v.inSession(list), 50, maxListed)
	return group("prompt", "Show prompts that were sent, and find a text in them", list, v.inSession(show), v.inSession(blame))
}

// found asks which prompts a session has sent, and where a text stood in them; that there are
// none is an error.
func (v *view) found(ctx context.Context, wanted string) (*loombridgev1.FindInPromptsResponse, error) {
	got, err := v.prompts().FindInPrompts(ctx, &loombridgev1.FindInPromptsRequest{AgentId: v.agent, SessionId: v.session, Text: wanted})
	if err == nil && len(got.GetPrompts()) == 0 {
		err = fmt.Errorf("agent %q has sent no prompt in session %q; sessions list lists its sessions", v.agent, cmp.Or(v.session, "default"))
	}
	return got, err
}

// named is the prompt of a number or an id, the last one without either.
func named(got *loombridgev1.FindInPromptsResponse, name string) (at int, p *loombridgev1.SentPrompt, err error) {
	all := got.GetPrompts()
	if name == "" {
		return len(all) - 1, all[len(all)-1], nil
	}
	for i, p := range slices.Backward(all) {
		if p.GetPromptId() == name || strconv.FormatInt(p.GetNumber(), 10) == name {
			return i, p, nil
		}
	}
	return 0, nil, fmt.Errorf("the session has no prompt %q; it keeps the prompts %d to %d, which prompt list lists", name, all[0].GetNumber(), all[len(all)-1].GetNumber())
}

// largest are the sections of a prompt, the largest first.
func largest(parts map[string]int32) string {
	names := slices.SortedFunc(maps.Keys(parts), func(a, b string) int {
		return cmp.Or(cmp.Compare(parts[b], parts[a]), cmp.Compare(a, b))
	})
	var all []string
	for _, name := range names {
		if parts[name] > 0 {
			all = append(all, fmt.Sprint(name, " ", parts[name]))
		}
	}
	return strings.Join(all, ", ")
}

// sent asks for a prompt of before.
func (v *view) sent(ctx context.Context, ask *loombridgev1.AssembleRequest) (*loombridgev1.AssembleResponse, error) {
	ask.AgentId, ask.SessionId = v.agent, v.session
	return v.prompts().Assemble(ctx, ask)
}

// prompt shows a prompt.
func (v *view) prompt(p *loombridgev1.AssembleResponse) error {
	if v.json {
		return v.write(p)
	}
	r := p.GetReceipt()
	format := strings.ToLower(strings.TrimPrefix(p.GetFormat().String(), "PROMPT_FORMAT_"))
	err := v.say("prompt %s: %d tokens, format %s, policy %s", r.GetPromptId(), p.GetTokens().GetTokens(), format, r.GetPolicy())
	t := newTable("", "SECTION", ">TOKENS", ">WITHOUT CAP", "OUTCOME", "LEFT OUT")
	for _, s := range r.GetSections() {
		outcome := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(s.GetOutcome().String(), "SECTION_OUTCOME_")), "_", " ")
		t.add(s.GetName(), s.GetTokens(), s.GetBeforeTokens(), outcome, strings.Join(append(s.GetLeftOut(), s.GetReason()), " "))
	}
	if err == nil && len(t.rows) > 0 {
		err = v.print(t)
	}
	for _, m := range messages(p) {
		if err == nil {
			_, err = fmt.Fprintf(v.Out, "\n── %s\n%s\n", text.VisibleLine(m.who), text.Visible(m.text))
		}
	}
	return err
}

// message is a part of a prompt, for people.
type message struct{ who, text string }

// messages are the tools and messages of a prompt in any format, in its order.
func messages(p *loombridgev1.AssembleResponse) (all []message) {
	body := p.GetPromptJson()
	if body == "" {
		if p.GetToolsJson() != "" && p.GetToolsJson() != "[]" {
			all = append(all, message{"tools", p.GetToolsJson()})
		}
		for _, m := range p.GetMessages() {
			said := cmp.Or(m.GetContent(), m.GetBlocksJson())
			for _, call := range m.GetToolCalls() {
				said += fmt.Sprintf("\n→ %s %s", call.GetName(), call.GetArgumentsJson())
			}
			all = append(all, message{roleOf(m.GetRole()), strings.TrimPrefix(said, "\n")})
		}
		return all
	}
	var parts map[string]any
	if json.Unmarshal([]byte(body), &parts) != nil {
		return []message{{"prompt", body}}
	}
	for _, name := range []string{"tools", "instructions", "system", "systemInstruction", "messages", "input", "contents"} {
		list, many := parts[name].([]any)
		switch {
		case parts[name] == nil:
		case many && name != "tools" && name != "system":
			for _, one := range list {
				m, _ := one.(map[string]any)
				who, _ := m["role"].(string)
				all = append(all, message{cmp.Or(who, name), plain(one)})
			}
		default:
			all = append(all, message{name, plain(parts[name])})
		}
	}
	return all
}

// plain is what a part of a provider's request says: texts as they are, a line each, and
// anything else as JSON.
func plain(part any) string {
	switch part := part.(type) {
	case string:
		return part
	case []any:
		var lines []string
		for _, one := range part {
			lines = append(lines, plain(one))
		}
		return strings.Join(lines, "\n")
	case map[string]any:
		for _, name := range []string{"text", "content", "parts"} {
			if inner, ok := part[name]; ok && inner != nil && part["tool_calls"] == nil && part["type"] != "tool_result" {
				return plain(inner)
			}
		}
	}
	line, _ := json.Marshal(part) // of JSON
	return string(line)
}

// difference shows how a prompt differs from the one before.
func (v *view) difference(ctx context.Context, p *loombridgev1.SentPrompt) error {
	d, err := v.prompts().DiffPrompts(ctx, &loombridgev1.DiffPromptsRequest{AgentId: v.agent, SessionId: v.session, ToPromptId: p.GetPromptId()})
	if err != nil {
		return err
	}
	if v.json {
		return v.write(d)
	}
	if d.GetDifference() == nil {
		return v.say("prompt %s is the same as the one before, %s", d.GetToPromptId(), d.GetFromPromptId())
	}
	if err := v.say("prompt %s differs from %s first in %s: message %d, byte %d", d.GetToPromptId(), d.GetFromPromptId(),
		d.GetDifference().GetSection(), d.GetDifference().GetMessageIndex(), d.GetDifference().GetByte()); err != nil {
		return err
	}
	var lines [2][]string
	for i, id := range []string{d.GetFromPromptId(), d.GetToPromptId()} {
		sent, err := v.sent(ctx, &loombridgev1.AssembleRequest{AsOf: &loombridgev1.AssembleRequest_AsOfPromptId{AsOfPromptId: id}})
		if err != nil {
			return err
		}
		for _, m := range messages(sent) {
			lines[i] = append(append(lines[i], "── "+m.who), strings.Split(m.text, "\n")...)
		}
	}
	for len(lines[0]) > 0 && len(lines[1]) > 0 && lines[0][0] == lines[1][0] {
		lines[0], lines[1] = lines[0][1:], lines[1][1:]
	}
	for a, b := len(lines[0])-1, len(lines[1])-1; a >= 0 && b >= 0 && lines[0][a] == lines[1][b]; a, b = a-1, b-1 {
		lines[0], lines[1] = lines[0][:a], lines[1][:b]
	}
	for i, sign := range []string{"- ", "+ "} {
		for _, line := range lines[i] {
			if err := v.say("%s%s", sign, line); err != nil {
				return err
			}
		}
	}
	return nil
}

// roleOf is a role as providers write it.
func roleOf(r loombridgev1.Role) string {
	return strings.ToLower(strings.TrimPrefix(r.String(), "ROLE_"))
}
