package decay

import (
	"fmt"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/history"
)

// Multimodal is the sentence of a message that has content but no words.
const Multimodal = "[multimodal content]"

// between stands between the sentences of a summary.
const between = " | "

// summarized are the units that a summary stands for at some bounds.
func (v *view) summarized(b bounds) []Unit {
	var units []Unit
	for i := range v.conv.Units[:b.omitted] {
		if !v.stays(i, b) {
			units = append(units, v.conv.Units[i])
		}
	}
	return units
}

// rangeOf is a summary of units, without its text.
func rangeOf(units []Unit) history.Summary {
	s := history.Summary{First: units[0].Position, Last: units[len(units)-1].Position}
	for i := range units {
		s.Count += units[i].Messages
	}
	return s
}

// summary is what stands for the oldest units: the one that the mark has, if it is
// of the same range, or a new one.
func (v *view) summary(b bounds) history.Summary {
	units := v.summarized(b)
	if len(units) == 0 {
		return history.Summary{}
	}
	s, stored := rangeOf(units), v.conv.Mark.Summary
	if stored.First == s.First && stored.Last == s.Last && stored.Count == s.Count && stored.Text != "" {
		return stored
	}
	head := fmt.Sprintf("[Summary of %d earlier messages] ", s.Count)
	s.Text = head + v.extract(units, head, s.Count)
	return s
}

// sentence is a part of a summary.
type sentence struct {
	text   string
	score  float64
	tokens int
	always bool
}

// extract are the first sentences of messages, the best of them where there is not
// room for all.
func (v *view) extract(units []Unit, head string, messages int) string {
	all := v.sentences(units)
	if len(all) == 0 {
		return fmt.Sprintf("[%d messages]", messages)
	}
	stays := v.best(all, history.DefaultSummaryTokens-v.count(head))
	for {
		text := joined(all, stays)
		over := v.count(head+text) > history.DefaultSummaryTokens || len(head)+len(text) > history.MaxSummaryBytes
		worst := lowest(all, stays)
		if !over || worst < 0 {
			return text
		}
		stays[worst] = false
	}
}

func (v *view) sentences(units []Unit) []sentence {
	var said []*Said
	for i := range units {
		for k := range units[i].Said {
			said = append(said, &units[i].Said[k])
		}
	}
	score := newScorer(v.conv.Goal, len(said))
	all := make([]sentence, 0, len(said))
	for i, s := range said {
		if s.Sentence == "" {
			continue
		}
		// What was said must not look like another message that was summarized.
		text := "[" + s.Role + "] " + strings.ReplaceAll(s.Sentence, "| [", "¦ [")
		all = append(all, sentence{text: text, score: score.of(i, s), always: s.Failed || s.Goal})
	}
	return all
}

// best chooses the sentences with the best scores, of equal ones the newest, that
// have about so many tokens together.
func (v *view) best(all []sentence, room int) []bool {
	order := make([]int, len(all))
	for i := range all {
		order[i] = i
		all[i].tokens = v.count(between + all[i].text)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case all[a].score > all[b].score:
			return -1
		case all[a].score < all[b].score:
			return 1
		}
		return b - a
	})
	stays := make([]bool, len(all))
	for _, i := range order {
		// The parts take a little more by themselves than within the whole.
		if room -= all[i].tokens; room < -slack && !all[i].always {
			break
		}
		stays[i] = true
	}
	return stays
}

// slack is how many tokens more the parts of a summary may take than the whole.
const slack = 32

// lowest is the sentence that leaves next, or -1.
func lowest(all []sentence, stays []bool) int {
	at := -1
	for i := range all {
		if stays[i] && !all[i].always && (at < 0 || all[i].score < all[at].score) {
			at = i
		}
	}
	return at
}

func joined(all []sentence, stays []bool) string {
	var texts []string
	for i := range all {
		if stays[i] {
			texts = append(texts, all[i].text)
		}
	}
	return strings.Join(texts, between)
}
