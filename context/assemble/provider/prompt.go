package provider

import (
	"bytes"
	"fmt"

	"github.com/loom-bridge/loom-bridge/context/session"
)

// Content is what a body is made of.
type Content struct {
	// Messages are in the order of the prompt.
	Messages []session.Message
	// Tools is what Tools made of the tools in the same format; empty for none.
	Tools []byte
	// Marks are the places of cache marks, in messages of this prompt.
	Marks []Mark
}

// Body is the part of a request that a prompt is.
type Body struct {
	// JSON is an object.
	JSON []byte
	// Marks are the prompt's cache marks, in order, with their place in the object.
	Marks []Mark
}

// The places of a Mark that are no message.
const (
	// BehindTools is the end of the tools.
	BehindTools = -1
	// BehindSystem is a block of a system prompt that is no message.
	BehindSystem = -2
)

// Encode writes a prompt in a format. Blocks that are no JSON are an error. The
// neutral format has the bytes of OpenAIChat where no message has blocks of another
// provider, and the tools' own names.
func Encode(f Format, p Content) (Body, error) {
	switch f {
	case OpenAIResponses:
		return encodeResponses(p)
	case Anthropic:
		return encodeAnthropic(p)
	case Gemini:
		return encodeGemini(p)
	}
	return encodeChat(f, p)
}

// encodeChat writes messages one by one.
func encodeChat(f Format, p Content) (Body, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	if len(p.Tools) > 0 {
		out.WriteString(`"tools":`)
		out.Write(p.Tools)
		out.WriteByte(',')
	}
	out.WriteString(`"messages":[`)
	w := NewWriter(f)
	// ends are how many messages of the body stand for those up to each.
	ends := make([]int, len(p.Messages))
	for i := range p.Messages {
		if err := w.Add(&out, f.Renamed(p.Messages[i])); err != nil {
			return Body{}, fmt.Errorf("message %d: %w", i, err)
		}
		ends[i] = w.Written()
	}
	w.Close(&out)
	out.WriteString("]}")
	body := Body{JSON: out.Bytes()}
	for _, m := range p.Marks {
		if m.Message >= 0 && m.Message < len(ends) {
			m.Message = ends[m.Message] - 1
		}
		body.Marks = append(body.Marks, m)
	}
	return body, nil
}

// field begins a field of an object.
func field(out *bytes.Buffer, name string) {
	if out.Len() > 1 {
		out.WriteByte(',')
	}
	quote(out, name)
	out.WriteByte(':')
}

// array writes JSON values as an array.
func array(out *bytes.Buffer, values [][]byte) {
	size := len(values) + len("[]")
	for _, v := range values {
		size += len(v)
	}
	out.Grow(size)
	out.WriteByte('[')
	for i, v := range values {
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(v)
	}
	out.WriteByte(']')
}
