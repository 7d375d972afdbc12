package tokens

import "encoding/json"

// What a prompt costs in addition to its texts.
const (
	// MessageTokens is the frame of each message by the rules of OpenAI and
	// Anthropic.
	MessageTokens = 3
	// EstimateMessageTokens is the frame of each message where it is guessed.
	EstimateMessageTokens = 4
	// NameTokens is added when a message names its speaker.
	NameTokens = 1
	// ReplyTokens is added once to a prompt: the beginning of the answer. It is a
	// rule of OpenAI; prompts keep room for it whatever the model.
	ReplyTokens = 3
	// maxBlockDepth bounds how deep blocks within blocks are followed.
	maxBlockDepth = 8
)

// Message is what counts of one message.
type Message struct {
	// Role is "system", "user", "assistant" or "tool".
	Role string
	// Content is the text.
	Content string
	// Blocks is a JSON array of content blocks, or nil. Its texts are counted
	// as texts and its images by the rule of the model, or as ImageTokens where
	// their size is unknown; anything else by its JSON.
	Blocks json.RawMessage
	// Name is the speaker's name, or empty.
	Name string
	// Calls are the calls an assistant message asks for.
	Calls []Call
	// CallID is the call that a tool message answers.
	CallID string
	// Extra is a JSON object of the provider's further fields, or nil; counted by
	// its JSON, which is an estimate.
	Extra json.RawMessage
}

// Call is a model's wish to call a tool.
type Call struct {
	ID, Name, Arguments string
	// Extra is as that of the message.
	Extra string
}

// Message counts one message: its frame and every string in it. The prompt's
// ReplyTokens are not included. A message with an image or a block of unknown
// type is estimated.
func (c *Counter) Message(model string, m Message) (Count, error) {
	found := c.models.find(model)
	return c.recent.message(found, &m, func() (Count, error) {
		s := sum{counter: c, model: found}
		s.message(m)
		return s.result()
	})
}

// Messages counts a conversation by the rule of the model: with ReplyTokens where
// that is OpenAI's.
func (c *Counter) Messages(model string, messages []Message) (Count, error) {
	s := c.sum(model)
	for _, m := range messages {
		s.message(m)
	}
	if s.model.Counter == OpenAI {
		s.flat(ReplyTokens)
	}
	return s.result()
}

// sum adds counts up and keeps the first error.
type sum struct {
	counter *Counter
	model   *Model
	tokens  int
	guessed bool
	err     error
}

func (c *Counter) sum(model string) sum { return sum{counter: c, model: c.models.find(model)} }

func (s *sum) message(m Message) {
	if s.model.Counter == Estimate {
		s.flat(EstimateMessageTokens)
	} else {
		s.flat(MessageTokens)
	}
	s.texts(m.Role, m.Content, m.CallID)
	if m.Name != "" {
		s.flat(NameTokens)
		s.texts(m.Name)
	}
	for _, call := range m.Calls {
		s.texts(call.ID, "function", call.Name, call.Arguments)
		s.further(call.Extra)
	}
	s.further(string(m.Extra))
	s.blocks(m.Blocks, 0)
}

func (s *sum) flat(n int) { s.tokens += n }

func (s *sum) texts(texts ...string) {
	for _, text := range texts {
		if s.err != nil || text == "" {
			continue
		}
		var n int
		n, s.err = s.counter.tokens(s.model, text)
		s.tokens += n
	}
}

func (s *sum) guess(text string) {
	s.guessed = true
	s.texts(text)
}

// further counts what only the provider knows the meaning of.
func (s *sum) further(extra string) {
	if extra != "" {
		s.guess(extra)
	}
}

func (s *sum) result() (Count, error) {
	if s.err != nil {
		return Count{}, s.err
	}
	count := s.model.count(s.tokens)
	count.Exact = count.Exact && !s.guessed
	return count, nil
}

func (s *sum) blocks(blocks json.RawMessage, depth int) {
	if len(blocks) == 0 {
		return
	}
	var list []json.RawMessage
	if depth > maxBlockDepth || json.Unmarshal(blocks, &list) != nil {
		s.guess(string(blocks))
		return
	}
	for _, raw := range list {
		s.block(raw, depth)
	}
}

// messageBlock is what counts of the blocks of OpenAI and Anthropic.
type messageBlock struct {
	Type string `json:"type"`
	// Text is of a text.
	Text *string `json:"text"`
	// Thinking is of a thought.
	Thinking *string `json:"thinking"`
	// ID, Name and Input are of a call.
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
	// ToolUseID and Content, a text or blocks, are of a result.
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
}

func (s *sum) block(raw json.RawMessage, depth int) {
	var b messageBlock
	if json.Unmarshal(raw, &b) != nil {
		s.guess(string(raw))
		return
	}
	switch b.Type {
	case "text", "input_text", "output_text":
		if b.Text != nil {
			s.texts(*b.Text)
			return
		}
	case "image", "image_url", "input_image":
		s.guessed = true
		s.flat(s.model.Image.tokens(imageSize(raw)))
		return
	case "thinking":
		if b.Thinking != nil {
			s.guess(*b.Thinking)
			return
		}
	case "tool_use":
		s.guess(b.ID)
		s.texts(b.Name, string(b.Input))
		return
	case "tool_result":
		s.guess(b.ToolUseID)
		s.content(b.Content, depth)
		return
	}
	s.guess(string(raw))
}

// content counts what is a text or blocks.
func (s *sum) content(raw json.RawMessage, depth int) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		s.texts(text)
		return
	}
	s.blocks(raw, depth+1)
}
