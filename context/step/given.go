package step

import (
	"bytes"
	"cmp"
)

// Form is the form in which a result was given. The numbers are part of the stored
// format.
type Form uint8

// The forms.
const (
	// FormUnknown: the step was recorded before forms were kept.
	FormUnknown Form = iota
	// FormNone: there is no result.
	FormNone
	// FormJSON: one JSON value, as JSON text.
	FormJSON
	// FormText: text in UTF-8.
	FormText
	// FormBytes: bytes that need not be text.
	FormBytes
)

// String returns "unknown", "none", "json", "text" or "bytes".
func (f Form) String() string {
	names := []string{"unknown", "none", "json", "text", "bytes"}
	return names[min(int(f), len(names)-1)]
}

// Source says where the bytes of a result are. The numbers are part of the stored
// format.
type Source uint8

// The sources.
const (
	// SourceUnknown: nobody wrote it down. The zero value.
	SourceUnknown Source = iota
	// SourceInline: Step.Inline is all of it.
	SourceInline
	// SourceStep: Given.Data is all of it.
	SourceStep
	// SourceOutcome: what Step.OutcomePath leads to is all of it.
	SourceOutcome
	// SourceFrame: Given.Data is a frame around what Step.OutcomePath leads to
	// (see Unframe).
	SourceFrame
	// SourceBlob: what Given.Path leads to is all of it.
	SourceBlob
)

// Given says in what form a step's result was given, and where its exact bytes
// are.
type Given struct {
	// Form is the form.
	Form Form
	// MediaType is what the caller, or the bytes themselves, say of the format,
	// such as "image/png"; empty for text and JSON.
	MediaType string
	// Source says where the bytes are.
	Source Source
	// Data are the bytes, or a frame; nil for other sources.
	Data []byte
	// Path is the path of the blob; empty for other sources.
	Path string
}

// MaxGivenBytes of a result stay in the step where a prompt shows it in another
// form. A longer one is offloaded, whatever its rule says.
const MaxGivenBytes = 16 << 10

// maxFrameBytes bounds a frame. A result with more around its text is kept whole.
const maxFrameBytes = 4 << 10

// original is the exact text of the result, as far as it is held: all of a JSON
// result, and all of a body that is no longer than what is held.
func (r *Result) original() (data []byte, whole bool) {
	if r.BodyKey != "" {
		return []byte(r.BodyText), int64(len(r.BodyText)) >= r.BodySize
	}
	return r.JSON, true
}

// originalSize is the length of the result as it was given.
func (r *Result) originalSize() int64 {
	return max(r.BodySize, int64(len(r.JSON)))
}

// keepGiven notes where the result is as it was given.
func (r *Reducer) keepGiven(c Call, rd *reading, out *Reduced) {
	result := &c.Result
	out.Given = Given{Form: result.Form, MediaType: result.MediaType}
	if result.Form != FormJSON {
		out.Given.MediaType = cmp.Or(result.MediaType, rd.media)
	}
	data, whole := result.original()
	switch {
	case result.Form == FormUnknown, result.Form == FormNone:
		return
	case out.Offload && !rd.derived:
		out.Given.Source = SourceOutcome
	case out.Offload && rd.text != nil && r.frame(result, rd, out):
	case whole && !out.Marked && out.Inline == string(data):
		out.Given.Source = SourceInline
	case whole && len(data) <= max(MaxGivenBytes, r.opts.InlineBytes):
		out.Given.Source, out.Given.Data = SourceStep, bytes.Clone(data)
	default:
		out.Given.Source, out.KeepGiven = SourceBlob, true
	}
}

// frame tries to describe a JSON result as a frame around the text that goes into
// the blob, so that the text need not be stored twice.
func (r *Reducer) frame(result *Result, rd *reading, out *Reduced) bool {
	frame, ok := frameOf(result.JSON, rd.text.holes)
	if ok {
		out.Given.Source, out.Given.Data = SourceFrame, frame
	}
	return ok
}

// Named puts names into a text that has places for them: the step's id, and where
// its result can be read.
func (r *Reduced) Named(text, id, path string) string {
	if !r.Marked {
		return text
	}
	if path == "" {
		path = id
	}
	return replaceMarks(text, id, path)
}
