package window

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/history/decay"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// Cut is the beginning of a text of more than limit characters, and where it can be read
// whole; a shorter text stays.
func Cut(s string, limit int, ref string) string {
	if limit <= 0 || len(s) <= limit {
		return s
	}
	head, cut := text.HeadChars(s, limit)
	if !cut {
		return s
	}
	left := utf8.RuneCountInString(s[len(head):])
	return fmt.Sprintf("%s\n[...snipped %d chars; full text: %s]", head, left, ref)
}

// Line stands for a marked result of a tool.
func (m Marker) Line(name, ref string) string {
	if m.From != "" {
		return fmt.Sprintf("[cached %s result from %s]", name, m.From)
	}
	return fmt.Sprintf("[superseded %s result; full text: %s]", name, ref)
}

// callID is how a line names a call: by its id, or by its number.
func callID(id string, n int) string {
	if id != "" {
		return id
	}
	return fmt.Sprintf("cached:%d", n+1)
}

// between stands between the sentences of a collapsed middle.
const between = " | "

// CollapsedText is the text that stands for the collapsed units.
func (s *State) CollapsedText(units []Unit) string {
	var said []string
	for i := range units {
		if !s.Collapsed.Has(units[i].Position) {
			continue
		}
		for k := range units[i].Said {
			if one := &units[i].Said[k]; one.Sentence != "" {
				said = append(said, "["+one.Role+"] "+strings.ReplaceAll(one.Sentence, "| [", "¦ ["))
			}
		}
	}
	if len(said) == 0 {
		return fmt.Sprintf("[%d messages]", s.Count)
	}
	return fmt.Sprintf("[collapsed %d messages (goal: %s): %s]", s.Count, decay.Sentence(s.Goal), strings.Join(said, between))
}
