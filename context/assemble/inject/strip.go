package inject

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/content"
	"github.com/loom-bridge/loom-bridge/context/session"
)

var (
	// planBlock is a goal block with a plan, wherever it stands.
	planBlock = regexp.MustCompile(`(?m)(?:^|\n\n)` + goalHead + `.*\n` + progressHead + `\d+/\d+` + progressEnd + `\n` + nextHead + `.*$`)
	// bareBlock is one without a plan. It is matched only at the end of a message, as a
	// separate paragraph: elsewhere it may be the user's own words.
	bareBlock = regexp.MustCompile(`(?:^|\n\n)` + goalHead + `[^\n]*\n*$`)
)

// Strip is a text of a user's message without the goal blocks that earlier prompts put
// there.
func Strip(s string) string {
	for strings.Contains(s, goalHead) {
		short := bareBlock.ReplaceAllString(planBlock.ReplaceAllString(s, ""), "")
		if short == s {
			return s
		}
		if strings.HasPrefix(s, goalHead) {
			short = strings.TrimLeft(short, "\n")
		}
		s = short
	}
	return s
}

// StripMessage is a user's message without the goal blocks that earlier prompts put there,
// in its text or in its content blocks: m itself where there are none, which is never
// changed. nil says that nothing is left of it, and no provider takes an empty message.
func StripMessage(m *session.Message) *session.Message {
	if !strings.Contains(m.Content, goalHead) && !bytes.Contains(m.BlocksJSON, []byte(goalHead)) {
		return m // most are so, and some hold images
	}
	short := *m
	if len(m.BlocksJSON) == 0 {
		if short.Content = Strip(m.Content); short.Content == "" {
			return nil
		}
		return &short
	}
	short.BlocksJSON = content.Without(content.WithTexts(m.BlocksJSON, Strip), func(p *content.Block) bool {
		return p.Kind == content.Text && p.Text == ""
	})
	if len(short.BlocksJSON) == 0 {
		return nil
	}
	return &short
}
