package record

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/loom-bridge/loom-bridge/context/assemble/past"
	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// sent is a prompt that was sent, made again.
type sent struct {
	*past.Kept
	format   provider.Format
	extra    sentExtra
	messages []past.Message
}

// Past returns a prompt that a session has sent, byte for byte, and its format. Its
// receipt has what names it, and its sections. Nothing is stored. What can't be made again is
// a *past.GoneError that says what is missing.
func (a *Recorder) Past(ctx context.Context, scope kv.Scope, sessionID string, r PastRequest) (Prompt, provider.Format, error) {
	record, err := a.pastRecord(ctx, scope, sessionOf(sessionID), r)
	if err != nil {
		return Prompt{}, 0, err
	}
	s, err := a.again(ctx, scope, sessionOf(sessionID), record)
	if err != nil {
		return Prompt{}, 0, err
	}
	p, err := s.prompt()
	return p, s.format, err
}

func (a *Recorder) pastRecord(ctx context.Context, scope kv.Scope, id string, r PastRequest) (*past.Kept, error) {
	switch {
	case a.past == nil:
		return nil, past.Gone("no prompts are recorded here")
	case r.PromptID != "":
		return a.past.Find(ctx, scope, id, r.PromptID)
	}
	return a.past.Before(ctx, scope, id, r.Position, r.Step)
}

// again reads what a prompt was made of.
func (a *Recorder) again(ctx context.Context, scope kv.Scope, id string, record *past.Kept) (*sent, error) {
	s := &sent{Kept: record, format: provider.Format(record.Format)}
	if int(s.format) >= provider.Formats || json.Unmarshal(record.Extra, &s.extra) != nil {
		return nil, past.Gone("prompt %d was recorded by another version", record.Number)
	}
	var err error
	s.messages, err = a.past.Messages(ctx, scope, id, record)
	return s, err
}

// prompt is the prompt as it was answered; its bytes have the hash that was recorded.
func (s *sent) prompt() (Prompt, error) {
	neutral := make([]session.Message, len(s.messages))
	for i := range s.messages {
		neutral[i] = s.messages[i].Message
	}
	body, err := provider.Encode(s.format, provider.Content{Messages: neutral, Tools: s.Tools, Marks: s.extra.Planned})
	if err != nil {
		return Prompt{}, fmt.Errorf("assemble: %w", err)
	}
	p := Prompt{
		Marks: s.extra.Shown, PrefixSHA256: s.Prefix,
		Tokens: tokens.Count{
			Tokens: s.Tokens, Counter: s.Counter, Exact: s.Certainty&countExact != 0, Anchored: s.Certainty&countAnchored != 0,
		},
		Receipt: Receipt{
			PromptID: s.ID, Policy: s.extra.Policy, Layout: s.extra.Layout, Sprint: s.extra.Sprint, Sections: s.extra.sections(s.Sizes),
		},
	}
	for _, size := range s.Sizes {
		p.Parts = append(p.Parts, Part{Name: size.Section, Tokens: size.Tokens})
	}
	hashed := body.JSON
	switch s.format {
	case provider.Neutral:
		p.Messages, p.ToolsJSON = neutral, s.Tools
		if len(p.ToolsJSON) == 0 {
			p.ToolsJSON = []byte("[]")
		}
		hashed = bytes.TrimSuffix(hashed, []byte("]}"))
	case provider.OpenAIChat:
		p.OpenAIChatJSON = body.JSON
	default:
		p.Body = body.JSON
	}
	if sha256.Sum256(hashed) != s.Sum {
		return Prompt{}, past.Gone("the bytes of prompt %d, which this version writes otherwise", s.Number)
	}
	return p, nil
}

// layout is the prompt as PrefixSHA256 sees it.
func (s *sent) layout() (*past.Comparable, error) {
	out := &past.Comparable{Head: headOf(s.Tools), Tools: settings.ToolList}
	var line bytes.Buffer
	w := provider.NewWriter(s.format)
	for i := range s.messages {
		m := &s.messages[i]
		line.Reset()
		if err := w.Add(&line, s.format.Renamed(m.Message)); err != nil {
			return nil, fmt.Errorf("assemble: %w", err)
		}
		pieces := m.Pieces
		if len(pieces) == 0 {
			pieces = []past.Piece{{Section: settings.History, Bytes: len(m.Content)}}
		}
		out.Messages = append(out.Messages, past.Written{Bytes: bytes.Clone(line.Bytes()), Content: m.Content, Pieces: pieces})
	}
	return out, nil
}

// Diff is how two prompts of a session differ.
type Diff struct {
	// From and To are their ids, From that of the older one.
	From, To string
	// First is where they first differ; its Section is empty where they are the same.
	First past.Difference
}

// Diff compares two prompts of a session: without ids the last two, without from the one
// before to.
func (a *Recorder) Diff(ctx context.Context, scope kv.Scope, sessionID, from, to string) (Diff, error) {
	id := sessionOf(sessionID)
	newer, err := a.diffed(ctx, scope, id, to, func() (*past.Kept, error) { return a.past.Last(ctx, scope, id) })
	if err != nil {
		return Diff{}, err
	}
	older, err := a.diffed(ctx, scope, id, from, func() (*past.Kept, error) { return a.past.Previous(ctx, scope, id, newer.Kept) })
	if err != nil {
		return Diff{}, err
	}
	one, err := older.layout()
	if err != nil {
		return Diff{}, err
	}
	two, err := newer.layout()
	if err != nil {
		return Diff{}, err
	}
	return Diff{From: older.ID, To: newer.ID, First: past.Compare(one, two)}, nil
}

// diffed is the prompt with an id or, without one, another one.
func (a *Recorder) diffed(ctx context.Context, scope kv.Scope, session, id string, other func() (*past.Kept, error)) (*sent, error) {
	if a.past == nil {
		return nil, past.Gone("no prompts are recorded here")
	}
	find := other
	if id != "" {
		find = func() (*past.Kept, error) { return a.past.Find(ctx, scope, session, id) }
	}
	record, err := find()
	if err != nil {
		return nil, err
	}
	return a.again(ctx, scope, session, record)
}

// ForkPoint is what a fork of a session takes over from a prompt that the session has sent,
// the last where no id is given: tools, system and conversation, without what stands behind
// the conversation for one turn only. What can't be made again is a *past.GoneError.
func (a *Recorder) ForkPoint(ctx context.Context, scope kv.Scope, sessionID, promptID string) ([]byte, error) {
	id := sessionOf(sessionID)
	last := func() (*past.Kept, error) { return a.past.Last(ctx, scope, id) }
	if a.past == nil {
		return nil, past.Gone("no prompts are recorded here")
	}
	s, err := a.diffed(ctx, scope, id, promptID, last)
	if err != nil {
		return nil, err
	}
	part := &storev1.ForkPart{Format: uint64(s.format), Tools: s.Tools}
	part.Users, part.UsersKnown = s.extra.Users()
	for _, m := range s.conversation() {
		part.Messages = append(part.Messages, session.EncodeMessage(&m))
	}
	return wire.Marshal(part), nil
}

// conversation are the messages of a prompt up to the last of its history. Of one that the
// runtime sections are a part of, the history's part.
func (s *sent) conversation() []session.Message {
	end, cut := 0, 0
	for i := range s.messages {
		m := &s.messages[i]
		switch {
		case len(m.Pieces) == 0 || m.Pieces[0].Section == settings.History:
			end, cut = i+1, 0
			if len(m.Pieces) > 1 {
				cut = m.Pieces[0].Bytes
			}
		case m.Role == session.System && end == i:
			end = i + 1
		}
	}
	out := make([]session.Message, end)
	for i := range out {
		out[i] = s.messages[i].Message
	}
	if cut > 0 {
		out[end-1].Content = out[end-1].Content[:cut]
	}
	return out
}

// Fork is what the prompts of a fork begin with: the tools of a prompt of its parent's, in
// their format, and its messages up to the fork point.
type Fork struct {
	Format   provider.Format
	Tools    []byte
	Messages []session.Message
	// Users are the persons whose memory they may show.
	Users []string
}

// DecodeFork reads what ForkPoint made.
func DecodeFork(stored []byte) (*Fork, error) {
	var part storev1.ForkPart
	if err := wire.Unmarshal(stored, &part); err != nil {
		return nil, fmt.Errorf("assemble: read fork: %w", err)
	}
	k := &Fork{Format: provider.Format(part.Format), Tools: part.Tools, Users: part.Users}
	for _, message := range part.Messages {
		m, err := session.DecodeMessage(message)
		if err != nil {
			return nil, fmt.Errorf("assemble: read fork: %w", err)
		}
		k.Messages = append(k.Messages, *m)
	}
	return k, nil
}
