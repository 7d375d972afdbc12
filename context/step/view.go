package step

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/media"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// ResultView is a form in which a result can be read.
type ResultView uint8

// The views.
const (
	// ViewDefault is what a name leads to.
	ViewDefault ResultView = iota
	// ViewOriginal is every byte as it was given.
	ViewOriginal
	// ViewText is the result for reading (see Original.Text).
	ViewText
	// ViewStdout and ViewStderr are what a program printed, apart.
	ViewStdout
	ViewStderr
	// ViewMedia is an image, a sound or other bytes within the result.
	ViewMedia
)

// Original is a result as it was given.
type Original struct {
	// Form is its form.
	Form Form
	// MediaType is the format of bytes, where it is known.
	MediaType string
	// Data are all of its bytes. They must not be changed.
	Data []byte
	// Name is where it can be read, for the words that stand for bytes.
	Name string
}

// Text is the result for reading: what a program printed, a text without the JSON
// around it, the texts of content blocks, with a few words in the place of bytes.
// Any other JSON, and text, is as it was given.
func (o Original) Text() []byte {
	if o.Form != FormJSON {
		return o.plainText()
	}
	result, err := ParseResult(o.Data)
	if err != nil {
		return o.Data
	}
	if printed, ok := outputOf(&result); ok {
		return []byte(printed.stdout.text + printed.stderr)
	}
	value := resultValue(&result)
	if s, ok := onlyText(value); ok {
		return Original{Form: FormText, Data: []byte(s), Name: o.Name}.plainText()
	}
	shown, found := withoutBytes(value)
	s, isBlocks := blocksText(shown)
	switch {
	case !isBlocks && len(found) == 0:
		return o.Data
	case !isBlocks:
		s = string(text.SpacedJSON(shown))
	}
	return []byte(replaceMarks(s, "", o.Name))
}

// plainText is a result that is no JSON, for reading.
func (o Original) plainText() []byte {
	info, isBytes := o.describe()
	if !isBytes {
		return o.Data
	}
	return []byte(replaceMarks(stub(info), "", o.Name))
}

// describe reports whether data that is no JSON is bytes, and what they are.
func (o Original) describe() (media.Info, bool) {
	if url, ok := media.ParseDataURL(string(o.Data)); ok {
		return url.Info(), true
	}
	isText := utf8.Valid(o.Data) && !strings.ContainsRune(string(o.Data), 0)
	isMedia := o.MediaType != "" && media.Kind(o.MediaType) != media.Binary
	return media.InfoOf(o.MediaType, o.Data, int64(len(o.Data))), !isText || isMedia
}

// Printed is what a program printed to its output, or to its user, apart. Nothing,
// and false, where the result does not distinguish them; a text is all output.
func (o Original) Printed(stderr bool) ([]byte, bool) {
	if o.Form == FormText || o.Form == FormBytes {
		if stderr {
			return nil, true
		}
		return o.Data, true
	}
	result, err := ParseResult(o.Data)
	if err != nil {
		return nil, false
	}
	p := readPrinted(&result)
	if len(p.keys) == 0 && p.exit == nil {
		return nil, false
	}
	if stderr {
		return []byte(p.stderr), true
	}
	return []byte(p.stdout.text), true
}

// Media is an image, a sound or other bytes within a result.
type Media struct {
	media.Info
	// Data are its bytes.
	Data []byte
}

// MaxMedia bounds the media that are looked for in one result.
const MaxMedia = 64

// Media are the images, sounds and other bytes of the result, decoded, in the order
// in which they stand there, at most MaxMedia of them. What can't be decoded is left
// out.
func (o Original) Media() []Media {
	if o.Form != FormJSON {
		return o.plainMedia()
	}
	value, err := text.DecodeAll(o.Data) // the searched value may be anywhere
	if err != nil {
		return nil
	}
	var found []Media
	media.Each(value, func(mediaType, payload string) bool {
		if data, err := media.Decode(strings.NewReplacer("\n", "", "\r", "").Replace(payload)); err == nil {
			found = append(found, Media{media.InfoOf(mediaType, data, int64(len(data))), data})
		}
		return len(found) < MaxMedia
	})
	return found
}

func (o Original) plainMedia() []Media {
	if url, ok := media.ParseDataURL(string(o.Data)); ok {
		data, err := media.Decode(url.Payload)
		if err != nil {
			return nil
		}
		return []Media{{media.InfoOf(url.Type, data, int64(len(data))), data}}
	}
	info, isBytes := o.describe()
	if !isBytes {
		return nil
	}
	return []Media{{info, o.Data}}
}

// Document is the step as one canonical JSON object: what the file step_001.json of
// a history holds, without the result as it was given. Fields without a value are
// left out. The same step gives the same bytes.
func Document(s Step) []byte {
	object := map[string]any{
		"id": s.ID(), "number": s.Number, "time": s.Time.UTC().Format(time.RFC3339Nano), "outcome": s.Outcome.String(),
	}
	for key, body := range map[string]string{
		"session_id": s.SessionID, "tool_name": s.ToolName, "called_as": s.CalledAs, "observation": s.Observation,
		"outcome_ref": s.OutcomeRef, "outcome_path": s.OutcomePath, "args_path": s.ArgsPath, "thought": s.Thought, "error": s.Error,
		"error_code": s.ErrorCode, "inline": s.Inline, "turn_id": s.TurnID, "call_id": s.CallID, "evidence": s.Evidence, "media_type": s.Given.MediaType, "result_path": s.Given.Path,
	} {
		if body != "" {
			object[key] = body
		}
	}
	for key, value := range map[string]json.RawMessage{
		"minimal_args": s.MinimalArgs, "args": s.Args, "metadata": s.Metadata,
	} {
		if len(value) > 0 {
			object[key] = value
		}
	}
	if s.Pinned {
		object["pinned"] = true
	}
	if s.Given.Form != FormUnknown {
		object["result_form"] = s.Given.Form.String()
	}
	return text.CanonicalJSON(object)
}

// ResultText is the whole result of a step whose result was not offloaded, as
// far as it is text: what the prompt shows of it, or why it failed.
func (s Step) ResultText() string {
	if s.Inline == "" {
		return s.Error
	}
	return s.Inline
}
