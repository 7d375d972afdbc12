package proxy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/context/session"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

const (
	// foldTime is how long a request waits for its folds before it goes without.
	foldTime = 5 * time.Second
	// maxTools bounds the tools that a prompt is counted with.
	maxTools = 256
	// wholeTokens is the native API's limit of the tokens of a result.
	wholeTokens = 1_000_000
)

// folder makes the prompts of sessions. It is safe for concurrent use.
type folder struct {
	sessions loombridgev1.SessionServiceClient
	prompts  loombridgev1.PromptServiceClient
	window   func(model string) int
}

func newFolder(within grpc.ClientConnInterface, window func(model string) int) *folder {
	if window == nil {
		window = func(string) int { return 0 }
	}
	return &folder{loombridgev1.NewSessionServiceClient(within), loombridgev1.NewPromptServiceClient(within), window}
}

// historySettings are those of prompts that are made of what was said and done alone.
var historySettings = func() *loombridgev1.PromptSettings {
	s := proto.CloneOf(memorySettings)
	s.Sources.Exclude = append(s.Sources.Exclude, "user_memory", "knowledge")
	s.Layout = loombridgev1.PromptLayout_PROMPT_LAYOUT_THREE_PHASE
	return s
}()

// bounds are what a session says of the size of its prompts.
type bounds struct {
	configured bool // somebody chose its budget, another policy, or what that goes by
	tokens     int  // the budget; 0 for none that is known
}

// bounds asks for those of a session, and reports whether the prompt of a request may show less
// than that. A session that nobody configured has the window of the model.
func (f *folder) bounds(ctx context.Context, c *conversation, t *talk) (b bounds, may bool) {
	set, err := f.sessions.ConfigureSession(ctx, &loombridgev1.ConfigureSessionRequest{AgentId: c.place.agent, SessionId: c.session})
	if err != nil {
		return b, false
	}
	h := set.GetHistory()
	b.configured = set.GetMaxTokens() > 0 || h.GetPolicy() != loombridgev1.HistoryPolicy_HISTORY_POLICY_LEDGER || h.GetPrices() != nil || h.GetExpectedSteps() > 0
	b.tokens = cmp.Or(int(set.GetMaxTokens()), f.window(cmp.Or(modelOf(t.model), set.GetModel())))
	return b, b.configured || c.mayPass(b.tokens, t)
}

// prompt asks for the prompt of a session: as it is configured, or with all that was said.
func (f *folder) prompt(ctx context.Context, c *conversation, t *talk, body []byte, history *loombridgev1.HistorySettings) (*loombridgev1.AssembleResponse, error) {
	ask := &loombridgev1.AssembleRequest{
		AgentId: c.place.agent, SessionId: c.session, Model: modelOf(t.model), System: t.system, Tools: toolsOf(t.tools.of(body)),
		History: history, Settings: historySettings,
	}
	prompt, err := f.prompts.Assemble(ctx, ask)
	if status.Code(err) == codes.InvalidArgument && len(ask.GetTools()) > 0 { // a tool that only its provider takes
		ask.Tools = nil
		prompt, err = f.prompts.Assemble(ctx, ask)
	}
	return prompt, err
}

// made makes the prompt of a request. One that is not to be folded shows all; one of a session
// that nobody configured does where that fits.
func (f *folder) made(ctx context.Context, c *conversation, t *talk, body []byte, fold bool, b bounds) (*loombridgev1.AssembleResponse, error) {
	if !fold || !b.configured && !c.isFolded() {
		prompt, err := f.prompt(ctx, c, t, body, &loombridgev1.HistorySettings{Policy: loombridgev1.HistoryPolicy_HISTORY_POLICY_APPEND_ONLY, MaxResultTokens: wholeTokens})
		if err == nil {
			c.took(t, int(prompt.GetTokens().GetTokens()), false)
		}
		if !fold || convert.Reason(err) != "CONTEXT_OVERFLOW" {
			return prompt, err
		}
	}
	var history *loombridgev1.HistorySettings
	if !b.configured { // a result that the model asked for is shortened where it has to be alone
		history = &loombridgev1.HistorySettings{MaxResultTokens: wholeTokens}
	}
	prompt, err := f.prompt(ctx, c, t, body, history)
	if err == nil {
		c.took(t, int(prompt.GetTokens().GetTokens()), true)
	}
	return prompt, err
}

// toolsOf are the tools of a request, as far as prompts are counted with them.
func toolsOf(given json.RawMessage) (out []*loombridgev1.ToolDescriptor) {
	type tool struct {
		Name, Description string
		Parameters        json.RawMessage
		InputSchema       json.RawMessage `json:"input_schema"` // in place of the parameters, at Anthropic
		Function          *tool
	}
	var all []tool
	_ = json.Unmarshal(given, &all) // there are none in what is none
	for _, t := range all {
		if t.Function != nil {
			t = *t.Function
		}
		schema := slices.Concat(t.Parameters, t.InputSchema)
		known := slices.ContainsFunc(out, func(o *loombridgev1.ToolDescriptor) bool { return o.Name == t.Name })
		if t.Name != "" && !known && len(out) < maxTools {
			out = append(out, &loombridgev1.ToolDescriptor{Name: t.Name, Description: t.Description, ParametersSchemaJson: string(schema)})
		}
	}
	return out
}

// folded is what a request says in place of all of it.
type folded struct {
	conversation []byte
	changed      int // the items that are left out or shortened
}

var errElse = errors.New("proxy: the session's prompt has what the request has not")

// shown is what a request says of its conversation once the session's prompt shows no more; nil
// where that has all of it. A fault in it is an error of this request's folding alone.
func (t *talk) shown(d dialect, body []byte, prompt *loombridgev1.AssembleResponse, more []addition) (out *folded, err error) {
	defer func() {
		if recover() != nil {
			out, err = nil, errElse
		}
	}()
	s := showing{t: t, d: d, states: make([]state, len(t.items)), marks: map[mark][]int{}}
	for i := range t.items {
		s.marks[t.items[i].mark] = append(s.marks[t.items[i].mark], i)
	}
	for _, m := range prompt.GetMessages() {
		if err := s.match(m); err != nil {
			return nil, err
		}
	}
	changed, left := 0, 0
	for i := range s.states {
		switch st := &s.states[i]; {
		case !st.kept:
			left++
			changed++
		case st.text != nil:
			changed++
		}
	}
	newest := len(t.items) - 1
	for newest >= 0 && t.items[newest].result != nil {
		newest--
	}
	switch {
	case changed == 0 && len(s.texts) == 0:
		return nil, nil
	case slices.ContainsFunc(s.states[max(newest, 0):], func(st state) bool { return !st.kept }):
		return nil, errElse // what the model has not seen yet
	case left > 0 && len(s.texts) == 0 && prompt.GetReceipt().GetPolicy() == session.PolicyLedger:
		return nil, errElse // nothing says how it is read: the log has lost it
	}
	pieces, err := s.pieces(body, more)
	if err != nil {
		return nil, err
	}
	conversation, ok := d.conversation(pieces)
	if !ok {
		return nil, errElse
	}
	return &folded{conversation, changed}, nil
}

// showing is while the messages of a prompt are found in a request.
type showing struct {
	t      *talk
	d      dialect
	marks  map[mark][]int
	states []state
	next   int       // the item behind the last that was found
	texts  []newText // in order
}

// state is what becomes of an item.
type state struct {
	kept bool
	text *string // in place of a result
}

// newText is a message that stands for others, before an item.
type newText struct {
	before int
	role   loombridgev1.Role
	text   string
}

// match finds a message of the prompt in the request.
func (s *showing) match(m *loombridgev1.Message) error {
	isResult := m.GetRole() == loombridgev1.Role_ROLE_TOOL
	i := -1
	if isResult {
		i = s.unused(stepMark(m.GetToolCallId()), 0)
	}
	if i < 0 {
		i = s.unused(markOf(m), s.next)
	}
	switch {
	case i >= 0:
		s.states[i].kept = true
		s.next = max(s.next, i+1)
		if r := s.t.items[i].result; r != nil && m.GetBlocksJson() == "" && len(m.GetContent()) < len(r.text) {
			s.states[i].text = &m.Content
		}
		return nil
	case s.next == 0 && (m.GetRole() == loombridgev1.Role_ROLE_SYSTEM || m.GetRole() == loombridgev1.Role_ROLE_DEVELOPER):
		return nil // the request has them itself
	case isResult, m.GetBlocksJson() != "", len(m.GetToolCalls()) > 0, m.GetRole() != loombridgev1.Role_ROLE_USER && m.GetRole() != loombridgev1.Role_ROLE_ASSISTANT:
		return errElse
	}
	s.texts = append(s.texts, newText{s.next, m.GetRole(), m.GetContent()})
	return nil
}

// unused is the first item with a mark, from one on, that no message was found in; -1 for none.
func (s *showing) unused(m mark, from int) int {
	for n, i := range s.marks[m] {
		if i >= from {
			s.marks[m] = slices.Delete(s.marks[m], n, n+1)
			return i
		}
	}
	return -1
}

// pieces are the elements that the request has then.
func (s *showing) pieces(body []byte, more []addition) (out []piece, err error) {
	t := s.t
	first := 0 // of the items that are not done
	for i, at := range t.elements {
		last := first
		for last < len(t.items) && t.items[last].from <= i {
			last++
		}
		of := s.states[first:last]
		p := piece{t.told[i].role, at.of(body), i}
		dropped := len(of) > 0 && !slices.ContainsFunc(of, func(st state) bool { return st.kept })
		if first > 0 && t.items[first-1].to >= i { // a further part of an answer
			dropped = !s.states[first-1].kept
		} else if !dropped && len(of) > 0 {
			if p.text, err = s.element(i, first, last, p.text); err != nil {
				return nil, err
			}
		}
		for _, a := range more {
			if text, ok := s.d.addText(p.text, false, a.text); a.at == i && ok {
				p.text = text
			}
		}
		kept := first + slices.IndexFunc(of, func(st state) bool { return st.kept })
		out = s.before(out, kept)
		if !dropped {
			out = append(out, p)
		}
		first = last
	}
	return s.before(out, len(t.items)), nil
}

// before appends the texts that stand before an item, or at it.
func (s *showing) before(out []piece, i int) []piece {
	for len(s.texts) > 0 && s.texts[0].before <= i {
		role := "user"
		if s.texts[0].role == loombridgev1.Role_ROLE_ASSISTANT {
			role = "assistant"
		}
		text := slices.Concat([]byte(`{"role":"`+role+`","content":`), quoted(s.texts[0].text), []byte("}"))
		out = append(out, piece{s.texts[0].role, text, -1})
		s.texts = s.texts[1:]
	}
	return out
}

// element is an element with some of its items left out or shortened.
func (s *showing) element(i, first, last int, text []byte) ([]byte, error) {
	if s.d != anthropic || s.t.told[i].blocks == nil {
		st := &s.states[first]
		if st.text == nil {
			return text, nil
		}
		name := "content"
		if s.d == responses {
			name = "output"
		}
		return shortened(text, name, *st.text)
	}
	at, ok := member(text, span{0, len(text)}, "content")
	if !ok {
		return nil, errElse
	}
	var blocks []json.RawMessage
	var err error
	changed := false
	ok = elements(text, at, func(value span) {
		block := value.of(text)
		st := s.stateOf(block, first, last)
		switch {
		case !st.kept:
			changed = true
			return
		case st.text != nil && err == nil:
			changed = true
			block, err = shortened(block, "content", *st.text)
		}
		blocks = append(blocks, block)
	})
	switch {
	case !ok || err != nil:
		return nil, errElse
	case !changed:
		return text, nil
	}
	return replaced(text, at, listOf(blocks)), nil
}

// stateOf is that of the item that has a block: the step of its result, or the message.
func (s *showing) stateOf(block []byte, first, last int) state {
	var in struct {
		ID string `json:"tool_use_id"`
	}
	_ = json.Unmarshal(block, &in) // it was read before
	for i := first; i < last; i++ {
		if r := s.t.items[i].result; r != nil && in.ID != "" && r.id == in.ID || r == nil && i == last-1 {
			return s.states[i]
		}
	}
	return state{kept: true}
}

// shortened is an object with another text as a member.
func shortened(object []byte, name, by string) ([]byte, error) {
	at, ok := member(object, span{0, len(object)}, name)
	if !ok {
		return nil, errElse
	}
	return replaced(object, at, quoted(by)), nil
}
