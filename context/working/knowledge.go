package working

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// Evidence is a piece of knowledge that answers a question.
type Evidence struct {
	// Source is where it comes from, Title what it is called, Content what it says.
	Source, Title, Content string
	// Citation is how to name it; empty is by its Source.
	Citation string
	// Score is its worth relative to others.
	Score float64
}

// sameChars of the content distinguish two pieces of one source and title.
const sameChars = 200

// key is what makes a piece unique.
func (e *Evidence) key() string {
	head, _ := text.HeadChars(e.Content, sameChars)
	sum := sha256.Sum256([]byte(e.Source + "\x00" + e.Title + "\x00" + head))
	return hex.EncodeToString(sum[:6])
}

// cited is how it is named.
func (e *Evidence) cited() string {
	if e.Citation != "" {
		return e.Citation
	}
	return e.Source
}

// evictedType is that of the event that says which evidence left.
const evictedType = "knowledge_evicted"

// learned takes questions and evidence in. What is worth least leaves where there is more
// than MaxEvidence, of equals the oldest, and an event says so.
func (w Working) learned(c Change) Working {
	for _, q := range c.Answered {
		w.Questions = without(w.Questions, q)
	}
	for _, q := range c.Ask {
		if !slices.Contains(w.Questions, q) {
			w.Questions = append(slices.Clip(w.Questions), q)
		}
	}
	for i := range c.Found {
		e := c.Found[i]
		if slices.ContainsFunc(w.Evidence, func(old Evidence) bool { return old.key() == e.key() }) {
			continue
		}
		w.Evidence = append(slices.Clip(w.Evidence), e)
		if cited := e.cited(); cited != "" && !slices.Contains(w.Citations, cited) {
			w.Citations = append(slices.Clip(w.Citations), cited)
			w.Citations = w.Citations[max(len(w.Citations)-MaxCitations, 0):]
		}
	}
	for len(w.Evidence) > MaxEvidence {
		worst := 0
		for i := range w.Evidence {
			if w.Evidence[i].Score < w.Evidence[worst].Score {
				worst = i
			}
		}
		w = w.evict(worst)
	}
	return w
}

func (w Working) evict(at int) Working {
	e := w.Evidence[at]
	summary, _ := text.OneLineHead(fmt.Sprintf("%q of %q left, score %.2f", e.Title, e.Source, e.Score), maxShownChars)
	w.Evidence = slices.Delete(slices.Clone(w.Evidence), at, at+1)
	if len(w.Events) < MaxEvents {
		w = w.signalled([]Signal{{ID: evictedType + ":" + e.key(), Type: evictedType, Summary: summary, Urgency: Low}})
	}
	return w
}
