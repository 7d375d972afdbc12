package inject

import (
	"fmt"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/guard"
	"github.com/loom-bridge/loom-bridge/context/instruct"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// MinKnowledgeScore is the score from which knowledge enters a prompt.
const MinKnowledgeScore = 0.1

// DefaultKnowledge is how many snippets of knowledge a prompt shows at most.
const DefaultKnowledge = 3

// PresetMemories and PresetMemoryTokens are how many memories stand in prompts of presets at
// most, and how long all of them may be.
const (
	PresetMemories     = 3
	PresetMemoryTokens = 500
)

// UserMemory is the section of what is remembered, with a line for each memory.
func UserMemory(limit int, memories ...string) Injection {
	in := Injection{
		Name: settings.UserMemory, Phase: UserContext, Cache: Session, Priority: memoryPriority, MaxTokens: limit, Least: PresetMemoryTokens,
		Tag: guard.TagMemory, Framed: true, Source: "memory",
	}
	lines := make([]string, len(memories))
	for i, memory := range memories {
		lines[i] = MemoryLine(memory)
	}
	in.Text = strings.Join(lines, "\n")
	return in
}

// MemoryLine is the line of a memory.
func MemoryLine(memory string) string { return guard.Text("- " + text.OneLine(memory)) }

// Snippet is a piece of knowledge, as it was found.
type Snippet struct {
	// Title, Type and Source may be empty.
	Title, Type, Source string
	Content             string
	Score               float64
	// Writers wrote it; empty: unknown.
	Writers instruct.Who
}

// enough are the first most snippets from MinKnowledgeScore up.
func enough(found []Snippet, most int) []Snippet {
	var all []Snippet
	for _, s := range found {
		if s.Score >= MinKnowledgeScore && !blank(s.Content) && len(all) < most {
			all = append(all, s)
		}
	}
	return all
}

// Knowledge returns at most most of the found snippets, best first, with a score of
// MinKnowledgeScore or more.
func Knowledge(found []Snippet, most, limit int) Injection {
	in := knowledge(limit)
	in.Tag, in.Framed = guard.TagKnowledge, true
	var texts []string
	for i, s := range enough(found, most) {
		texts = append(texts, s.Numbered(i+1))
	}
	in.Text = strings.Join(texts, between)
	return in
}

func knowledge(limit int) Injection {
	return Injection{
		Name: settings.Knowledge, Phase: UserContext, Cache: Session, Priority: knowledgePriority, MaxTokens: limit,
		Source: "knowledge",
	}
}

// Numbered is a snippet with its number, title, type and score, and where it is from.
func (s *Snippet) Numbered(i int) string {
	head := fmt.Sprintf("[%d]", i)
	if s.Title != "" {
		head += " " + text.OneLine(s.Title)
	}
	if s.Type != "" {
		head += " (" + text.OneLine(s.Type) + ")"
	}
	out := fmt.Sprintf("%s score %.2f\n%s", guard.Inline(head), s.Score, guard.Text(strings.TrimSpace(s.Content)))
	if s.Source != "" {
		out += "\nSource: " + guard.Inline(text.OneLine(s.Source))
	}
	return out
}

// KnowledgeMessages returns the snippets of Knowledge as one message each, for layout
// task_context: as system messages if the agent's own program wrote them, else as the
// user's.
func KnowledgeMessages(found []Snippet, most, limit int) Injection {
	in := knowledge(limit)
	for _, s := range enough(found, most) {
		content := "📚 Knowledge: " + guard.Text(strings.TrimSpace(s.Content))
		if s.Source != "" {
			content += "\n(Source: " + guard.Inline(text.OneLine(s.Source)) + ")"
		}
		in.Messages = append(in.Messages, session.Message{Role: instruct.Of(instruct.Knowledge).RoleOf(s.Writers), Content: content})
	}
	return in
}
