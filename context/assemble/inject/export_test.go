package inject

import (
	"strings"

	"github.com/loom-bridge/loom-bridge/context/session"
)

// Text is the text of a phase, joined by blank lines; empty where nothing stands in it.
func (a *Arranged) Text(phase Phase) string {
	var texts []string
	for i := range a.Pieces {
		if p := &a.Pieces[i]; p.Shown != "" && p.Phase == phase {
			texts = append(texts, p.Shown)
		}
	}
	return strings.Join(texts, between)
}

// Messages are the messages of a phase's injections that are messages.
func (a *Arranged) Messages(phase Phase) []session.Message {
	var all []session.Message
	for i := range a.Pieces {
		if a.Pieces[i].Phase == phase {
			all = append(all, a.Pieces[i].shown...)
		}
	}
	return all
}
