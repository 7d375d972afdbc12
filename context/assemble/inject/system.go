package inject

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/loom-bridge/loom-bridge/context/guard"
	"github.com/loom-bridge/loom-bridge/context/instruct"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/context/tokens"
)

// Priorities of the built-in injections.
const (
	systemPriority    = 100
	toolPriority      = 80
	skillPriority     = 70
	shotPriority      = 60
	memoryPriority    = 90
	knowledgePriority = 80
	// PlaybookPriority is that of package playbook's injection.
	PlaybookPriority = 70
	workingPriority  = 90
	planPriority     = 80
	progressPriority = 79
	errorPriority    = 50
	todoPriority     = 100
)

// SystemRole is the system prompt, which stands as it came. limit is its cap, in tokens,
// as of all renderers.
func SystemRole(prompt string, limit int) Injection {
	return Injection{
		Name: settings.System, Phase: System, Cache: Stable, Priority: systemPriority, MaxTokens: limit,
		Text: prompt, Whole: true, Source: "system prompt", Writers: instruct.Program,
	}
}

// toolsHead begins tools as text.
const toolsHead = "# Available tools"

// OtherTools are tools as text that other agents and servers of the Model Context Protocol
// offer. What these say of them stands in the part about the user.
func OtherTools(all []tokens.ToolDefinition, limit int) Injection {
	in := Tools(all, limit)
	in.Name, in.Phase, in.Source, in.Writers = settings.ToolList+othersSuffix, UserContext, "tools of others", instruct.Agent|instruct.Tool
	return in
}

// othersSuffix ends the name of the section of what others offer.
const othersSuffix = ":others"

// Tools are tools as text, by name, for prompts that do not offer them as a parameter.
// The words of their providers are guarded.
func Tools(all []tokens.ToolDefinition, limit int) Injection {
	in := Injection{
		Name: settings.ToolList, Phase: System, Cache: Stable, Priority: toolPriority, MaxTokens: limit,
		Whole: true, Framed: true, Source: "tools", Writers: instruct.Program,
	}
	if len(all) == 0 {
		return in
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b tokens.ToolDefinition) int { return strings.Compare(a.Name, b.Name) })
	var b strings.Builder
	b.WriteString(toolsHead)
	for i := range all {
		writeTool(&b, &all[i])
	}
	in.Text = b.String()
	return in
}

// attribute escapes what stands between the quotes of an attribute.
var attribute = strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;", ">", "&gt;")

// Attribute is name="value", for the opening tag of an Injection.
func Attribute(name, value string) string {
	return name + `="` + attribute.Replace(text.OneLine(value)) + `"`
}

func writeTool(b *strings.Builder, t *tokens.ToolDefinition) {
	b.WriteString("\n<" + guard.TagTool + " " + Attribute("name", t.Name) + ">\n")
	if description := strings.TrimSpace(text.Seen(t.Description)); description != "" {
		b.WriteString(guard.Text(description) + "\n")
	}
	for _, p := range parametersOf(t.Schema) {
		b.WriteString(p + "\n")
	}
	b.WriteString("</" + guard.TagTool + ">")
}

// parametersOf has a line for each parameter of a schema, by name. Of what is no schema
// of an object it has none.
func parametersOf(schema json.RawMessage) []string {
	var object struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if json.Unmarshal(schema, &object) != nil {
		return nil
	}
	names := make([]string, 0, len(object.Properties))
	for name := range object.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	lines := make([]string, len(names))
	for i, name := range names {
		lines[i] = parameterLine(name, object.Properties[name], slices.Contains(object.Required, name))
	}
	return lines
}

func parameterLine(name string, schema json.RawMessage, required bool) string {
	var p struct {
		Type        any    `json:"type"`
		Description string `json:"description"`
	}
	_ = json.Unmarshal(schema, &p) // a schema that is no object says nothing of the parameter
	kind := typeName(p.Type)
	if required {
		kind += ", required"
	}
	line := fmt.Sprintf("- %s (%s)", text.OneLine(name), kind)
	if p.Description != "" {
		line += ": " + text.OneLine(p.Description)
	}
	return guard.Text(line)
}

// typeName is how a schema names a type; "any" where it names none.
func typeName(t any) string {
	switch t := t.(type) {
	case string:
		return text.OneLine(t)
	case []any:
		var names []string
		for _, one := range t {
			if name, ok := one.(string); ok {
				names = append(names, text.OneLine(name))
			}
		}
		if len(names) > 0 {
			return strings.Join(names, " or ")
		}
	}
	return "any"
}

// The heads of skills. Neither is a tag, so that what is cut off a long text leaves none
// open.
const (
	skillHead       = "# Skill: "
	otherSkillsHead = "# Other skills"
)

// MaxActiveTokens bounds the texts of active skills together.
const MaxActiveTokens = 4000

// Skills are the active ones in full, in that order, and then the others by name and
// description. active are names; unknown ones are ignored. limit is the cap of the others:
// beyond it all descriptions are shortened alike, and if the names alone exceed it, only
// skills that share words with the goal stay. The active ones have a separate budget of
// beside tokens; if it is 0, limit is the cap of all.
func Skills(all []settings.Skill, active []string, goal string, limit, beside int, count func(string) int) Injection {
	in := Injection{
		Name: settings.SkillTexts, Phase: System, Cache: Stable, Priority: skillPriority, MaxTokens: limit,
		Framed: true, Source: "skills", Writers: instruct.Program,
		Rest: "The rest of this skill is in the agent's memory, if it was saved there: search for its name.",
	}
	var texts []string
	for _, name := range active {
		if at := slices.IndexFunc(all, func(s settings.Skill) bool { return s.Name == name }); at >= 0 {
			texts = append(texts, activeSkill(&all[at]))
		}
	}
	told := strings.Join(texts, between)
	if limit > 0 && told != "" {
		told = Beginning(told, cmp.Or(beside, limit), in.Rest, count)
		if size := count(told) + joinTokens; beside > 0 {
			in.MaxTokens += size
		} else if limit -= size; limit <= 0 {
			in.Text = told
			return in
		}
	}
	others := slices.DeleteFunc(slices.Clone(all), func(s settings.Skill) bool { return slices.Contains(active, s.Name) })
	in.Text = told
	if list := otherSkills(others, goal, limit, count); list != "" {
		in.Text = strings.TrimPrefix(told+between+list, between)
	}
	return in
}

// otherSkills lists skills within a cap; 0 is none.
func otherSkills(all []settings.Skill, goal string, limit int, count func(string) int) string {
	list := func(skills []settings.Skill, chars int) string {
		var b strings.Builder
		b.WriteString(otherSkillsHead)
		for i := range skills {
			b.WriteString("\n" + otherSkill(&skills[i], chars))
		}
		switch left := len(all) - len(skills); {
		case left > 0:
			fmt.Fprintf(&b, "\n[%d more are not listed. Those that were saved are in the agent's memory: search for what you need.]", left)
		case chars >= 0 && chars < settings.MaxDescriptionBytes:
			b.WriteString("\n[Descriptions are shortened.]")
		}
		return b.String()
	}
	if len(all) == 0 {
		return ""
	}
	fits := func(skills []settings.Skill, chars int) bool {
		return limit <= 0 || count(list(skills, chars)) <= limit
	}
	if fits(all, settings.MaxDescriptionBytes) {
		return list(all, settings.MaxDescriptionBytes)
	}
	if fits(all, 0) {
		return list(all, largest(settings.MaxDescriptionBytes, func(chars int) bool { return fits(all, chars) }))
	}
	words := strings.FieldsFunc(strings.ToLower(goal), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	shared := func(s *settings.Skill) (n int) {
		said := strings.ToLower(s.Name + " " + s.Description)
		for _, word := range words {
			if strings.Contains(said, word) {
				n += len(word)
			}
		}
		return n
	}
	best := slices.Clone(all)
	slices.SortStableFunc(best, func(a, b settings.Skill) int { return shared(&b) - shared(&a) })
	return list(best[:max(1, largest(len(best)-1, func(n int) bool { return fits(best[:n], 0) }))], 0)
}

func activeSkill(s *settings.Skill) string {
	body := s.Text
	if blank(body) {
		body = s.Description
	}
	return strings.TrimRight(skillHead+guard.Inline(text.OneLine(s.Name))+"\n"+guard.Text(strings.TrimSpace(body)), "\n")
}

// otherSkill names a skill, with so many characters of its description.
func otherSkill(s *settings.Skill, chars int) string {
	line := "- " + text.OneLine(s.Name)
	if s.Description != "" && chars > 0 {
		line += ": " + text.Cut(text.OneLine(s.Description), chars, text.Ellipsis)
	}
	return guard.Text(line)
}

// FewShot are examples. As text, each is a question and its answer on separate lines;
// otherwise they are messages of the user and of the assistant. Examples that do not fit
// are left out whole, last first.
func FewShot(examples []settings.Example, asText bool, limit int) Injection {
	in := Injection{
		Name: settings.FewShots, Phase: System, Cache: Stable, Priority: shotPriority, MaxTokens: limit,
		Framed: true, Source: "examples", Writers: instruct.Program,
	}
	for _, e := range examples {
		if asText {
			in.Parts = append(in.Parts, e.Input+"\n"+e.Output)
			continue
		}
		in.Messages = append(in.Messages,
			session.Message{Role: session.User, Content: e.Input},
			session.Message{Role: session.Assistant, Content: e.Output})
	}
	return in
}
