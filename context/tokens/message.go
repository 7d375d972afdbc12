package tokens

import "encoding/json"

// What a prompt costs beside its texts, by OpenAI's rule.
const (
	// MessageTokens is the frame of each message.
	MessageTokens = 3
	// NameTokens is added when a message names its speaker.
	NameTokens = 1
	// ReplyTokens is added once to a prompt: the beginning of the answer.
	ReplyTokens = 3
	// ImageTokens is an image whose size is unknown.
	ImageTokens = 1600
)

// Message is what counts of one message.
type Message struct {
	// Role is "system", "user", "assistant" or "tool".
	Role string
	// Content is the text.
	Content string
	// Blocks is a JSON array of content blocks, or nil. Its texts are counted
	// as texts and its images as ImageTokens; anything else by its JSON.
	Blocks json.RawMessage
	// Name is the speaker's name, or empty.
	Name string
	// Calls are the calls an assistant message asks for.
	Calls []Call
	// CallID is the call that a tool message answers.
	CallID string
}

// Call is a model's wish to call a tool.
type Call struct {
	ID, Name, Arguments string
}

// Message counts one message: its frame and every string in it. The prompt's
// ReplyTokens are not included. A message with an image or a block of unknown
// type is estimated.
func (c *Counter) Message(model string, m Message) (Count, error) {
	s := sum{counter: c, model: model}
	s.flat(MessageTokens)
	s.texts(m.Role, m.Content, m.CallID)
	if m.Name != "" {
		s.flat(NameTokens)
		s.texts(m.Name)
	}
	for _, call := range m.Calls {
		s.texts(call.ID, "function", call.Name, call.Arguments)
	}
	s.blocks(m.Blocks)
	return s.result()
}

// sum adds counts up and keeps the first error.
type sum struct {
	counter *Counter
	model   string
	tokens  int
	guessed bool
	err     error
}

func (s *sum) flat(n int) { s.tokens += n }

func (s *sum) texts(texts ...string) {
	for _, text := range texts {
		if s.err != nil || text == "" {
			continue
		}
		var n Count
		n, s.err = s.counter.Count(s.model, text)
		s.tokens += n.Tokens
		s.guessed = s.guessed || !n.Exact
	}
}

func (s *sum) guess(text string) {
	s.guessed = true
	s.texts(text)
}

func (s *sum) result() (Count, error) {
	if s.err != nil {
		return Count{}, s.err
	}
	encoding, own := EncodingFor(s.model)
	return Count{Tokens: s.tokens, Encoding: encoding, Exact: own && !s.guessed}, nil
}

func (s *sum) blocks(blocks json.RawMessage) {
	if len(blocks) == 0 {
		return
	}
	var list []json.RawMessage
	if json.Unmarshal(blocks, &list) != nil {
		s.guess(string(blocks))
		return
	}
	for _, raw := range list {
		s.block(raw)
	}
}

func (s *sum) block(raw json.RawMessage) {
	var block struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if json.Unmarshal(raw, &block) != nil {
		s.guess(string(raw))
		return
	}
	switch block.Type {
	case "text", "input_text", "output_text":
		if block.Text != nil {
			s.texts(*block.Text)
			return
		}
	case "image", "image_url", "input_image":
		s.guessed = true
		s.flat(ImageTokens)
		return
	}
	s.guess(string(raw))
}
