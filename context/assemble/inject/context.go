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

// What is found enters a prompt from these scores up.
const (
	MinMemoryScore    = 0.35
	MinKnowledgeScore = 0.1
)

// DefaultShown is how many memories, or snippets of knowledge, a prompt shows at most.
const DefaultShown = 3

// Memory is something known of the user, as it was found.
type Memory struct {
	Text  string
	Score float64
}

// UserMemory are the first most of what was found, best first, from MinMemoryScore up.
// Each is one line.
func UserMemory(found []Memory, most, limit int) Injection {
	in := Injection{
		Name: settings.UserMemory, Phase: UserContext, Cache: Session, Priority: memoryPriority, MaxTokens: limit,
		Tag: guard.TagMemory, Framed: true, Source: "memory of the user",
	}
	var lines []string
	for _, m := range found {
		if m.Score >= MinMemoryScore && !blank(m.Text) && len(lines) < most {
			lines = append(lines, guard.Text("- "+text.OneLine(m.Text)))
		}
	}
	in.Text = strings.Join(lines, "\n")
	return in
}

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

// Knowledge are the first most of what was found, best first, from MinKnowledgeScore up.
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

// KnowledgeMessages are those of Knowledge as a message each, for layout task_context: of
// the system where the agent's own program wrote it, and otherwise of the user.
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
