package content

import "encoding/json"

// Dialect is whose blocks they are.
type Dialect uint8

// The dialects.
const (
	// Shared is a text as OpenAI's Chat, Anthropic and MCP have it, or an unknown block.
	Shared Dialect = iota
	// Chat is OpenAI's Chat Completions.
	Chat
	// Responses is OpenAI's Responses: items and the content of messages.
	Responses
	// Anthropic is the Messages API.
	Anthropic
	// Gemini is generateContent.
	Gemini
	// MCP is the Model Context Protocol.
	MCP
)

// Kind is what a part is.
type Kind uint8

// The kinds.
const (
	// Other is what only its provider knows the meaning of.
	Other Kind = iota
	// Text is said or shown.
	Text
	// Refusal says why a model does not answer.
	Refusal
	// Image is a picture; it, Audio and File have Media.
	Image
	// Audio is sound.
	Audio
	// File is a document.
	File
	// Call asks for a tool.
	Call
	// Result is what a tool gave.
	Result
	// Thought is a model's reasoning, which its provider signs: it is kept whole or
	// left out whole.
	Thought
	// Said is a message among the items of Responses; Parts are its content.
	Said
)

// Block is one content block.
type Block struct {
	// Kind says which of the fields below are set.
	Kind Kind
	// Dialect is whose block it is.
	Dialect Dialect
	// Type is what the block says it is; Gemini's parts say nothing.
	Type string
	// Raw is the block as it came.
	Raw json.RawMessage
	// Text is that of a Text, a Refusal or a readable Thought.
	Text string
	// media is that of an Image, Audio or File; nil for others, which are most.
	media *Media
	// ID is that of a Call, and the call's in a Result. Name is the tool's, which
	// not every Result has.
	ID, Name string
	// Unnamed says that the block has no id: ID is made of the name of the tool, and how
	// many of it came before in the message.
	Unnamed bool
	// Custom says of a Call that its Arguments are any text, not JSON.
	Custom bool
	// Arguments are the arguments of a Call, as its dialect has them: JSON, or any text.
	Arguments string
	// Parts are the content of a Result, and of a Said.
	Parts []Block
	// Failed says of a Result that the tool failed.
	Failed bool
	// Signature is the thoughtSignature of a part of Gemini, or empty.
	Signature string
}

// Media is that of an Image, Audio or File, and empty of others.
func (p *Block) Media() Media {
	if p.media == nil {
		return Media{}
	}
	return *p.media
}

// Media is what an image, a sound or a document is made of: Data, URL, FileID or
// Text.
type Media struct {
	// Type is the media type, such as image/png; it may be unknown.
	Type string
	// Data is base64, URL an address, FileID the provider's name of an upload.
	Data, URL, FileID string
	// Text is that of a document of plain text.
	Text string
	// Name is the file's, or the document's title.
	Name string
	// Detail is how closely OpenAI's models look at an image.
	Detail string
}

// Texts is what parts say, results included, one below the other. Thoughts are left
// out.
func Texts(parts []Block) []string {
	var texts []string
	for i := range parts {
		p := &parts[i]
		switch p.Kind {
		case Result, Said:
			texts = append(texts, Texts(p.Parts)...)
		case Thought:
		default:
			if p.Text != "" {
				texts = append(texts, p.Text)
			}
		}
	}
	return texts
}

// OnlyText reports whether all parts are texts.
func OnlyText(parts []Block) bool {
	for i := range parts {
		if parts[i].Kind != Text {
			return false
		}
	}
	return true
}
