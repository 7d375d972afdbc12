package step

import "cmp"

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

// ResultSource says where the bytes of a result are. The numbers are part of the stored
// format.
type ResultSource uint8

// The sources.
const (
	// SourceUnknown: not recorded. The zero value.
	SourceUnknown ResultSource = iota
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
	Source ResultSource
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

// original is the result as it was given, as far as it is held.
func (r *Result) original() string {
	if r.BodyKey != "" {
		return r.BodyText
	}
	return string(r.JSON)
}

// holds reports whether a step may hold a result as it was given.
func (r *Reducer) holds(result *Result) bool {
	size := max(result.BodySize, int64(len(result.JSON)))
	held := len(result.JSON)
	if result.BodyKey != "" {
		held = len(result.BodyText)
	}
	return size <= int64(max(MaxGivenBytes, r.opts.InlineBytes)) && int64(held) >= size
}

// keepGiven notes where the result is as it was given.
func (r *Reducer) keepGiven(c Call, rd *finding, out *Reduced) {
	result := &c.Result
	out.Given = Given{Form: result.Form, MediaType: result.MediaType}
	if result.Form != FormJSON {
		out.Given.MediaType = cmp.Or(result.MediaType, rd.media)
	}
	switch {
	case result.Form == FormUnknown, result.Form == FormNone:
	case out.Offload && !rd.derived:
		out.Given.Source = SourceOutcome
		if out.OffloadBytes != nil {
			out.Given.Form = FormJSON // of a body and all around it
		}
	case out.Offload && rd.text != nil && r.frame(result, rd, out):
	case !r.holds(result):
		out.Given.Source, out.KeepGiven = SourceBlob, true
	case !out.Marked && out.Inline == result.original():
		out.Given.Source = SourceInline
	default:
		out.Given.Source, out.Given.Data = SourceStep, []byte(result.original())
	}
}

// frame tries to describe a JSON result as a frame around the text that goes into
// the blob, so that the text need not be stored twice.
func (r *Reducer) frame(result *Result, rd *finding, out *Reduced) bool {
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
	path = cmp.Or(path, id)
	return replaceMarks(text, id, path)
}
