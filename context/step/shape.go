package step

import (
	"encoding/json"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// shape is how a result is read.
type shape struct {
	// figures are the names of what a reading has for the observation.
	figures []string
	read    func(r *Reducer, c Call) finding
	// failures says that it reads what a call gave that failed, too.
	failures bool
	// complete reports whether a result has what the line needs; nil is always.
	complete func(*Result) bool
}

// shapes returns all shapes by name.
func shapes() map[string]shape {
	return map[string]shape{
		"file":    {figures: []string{"size", "lines", "type", "sha256"}, read: (*Reducer).file},
		"written": {figures: []string{"size", "sha256"}, read: (*Reducer).written},
		"listing": {figures: []string{"count", "files", "dirs"}, read: (*Reducer).listing, complete: hasEntries},
		"results": {figures: []string{"count"}, read: (*Reducer).results, complete: hasHits},
		"search":  {figures: []string{"text", "size", "count"}, read: (*Reducer).search},
		"page":    {figures: []string{"site", "status", "size"}, read: (*Reducer).page, complete: hasStatus},
		"command": {figures: []string{"short", "exit_code", "lines", "size"}, read: (*Reducer).command, failures: true, complete: hasExit},
		"any":     {figures: []string{"text", "size"}, read: (*Reducer).anything},
	}
}

// finding is what a shape finds in a result.
type finding struct {
	// figures become the step's metadata, and values of its observation.
	figures map[string]any
	// words are values of the observation alone.
	words map[string]string
	// size is the result's own.
	size size
	// text is the text of the result alone; nil where it has none.
	text *heldText
	// json is the whole result as JSON text, where it was needed.
	json []byte
	// shown is what a prompt shows while the step is unfolded.
	shown shown
	// unshown says that the result has bytes that no prompt shows, so that it
	// belongs into a blob.
	unshown bool
	// derived says that the offloaded text was extracted from the result.
	derived bool
	// media is the format of a result that is bytes, as they are or written as text.
	media string
	// named says that shown has places for names.
	named bool
	// printed says that shown is what a program printed, so that it may have a
	// form that is recognized.
	printed bool
	// empty says that there is no result.
	empty bool
	// onlyComplaint says that the complaint is the whole output.
	onlyComplaint bool
	// complaint is what a failed command said; the step has failed if it is not
	// nil.
	complaint *string
}

// heldText is a text that may go into a blob.
type heldText struct {
	// bytes are all of it; nil when it is the body of the result.
	bytes []byte
	ext   string
	// holes are where its parts stand in the JSON result that it was taken out of;
	// nil where it can't be put back.
	holes []hole
}

// jsonText is the whole result as JSON text: as it was given, or canonical.
func (rd *finding) jsonText(result *Result) []byte {
	switch {
	case rd.json != nil:
	case result.JSON != nil:
		rd.json = result.JSON
	default:
		rd.json = text.CanonicalJSON(resultValue(result))
	}
	return rd.json
}

// value is what stands in an observation for a name.
func (rd *finding) value(name string, c Call) string {
	switch name {
	case "tool":
		return c.Tool
	case "human_size":
		return text.HumanSize(rd.size.bytes)
	}
	if word, ok := rd.words[name]; ok {
		return word
	}
	if figure, ok := rd.figures[name]; ok {
		return plainText(figure)
	}
	return plainText(c.Args[name])
}

// plainText is a value for reading: text as it is, bounded like a path, nothing
// for null, all else as JSON.
func plainText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return text.Head(v, MaxPathBytes)
	}
	return text.Head(string(text.SpacedJSON(v)), MaxPathBytes)
}

// metadata is the step's.
func (rd *finding) metadata() json.RawMessage {
	if len(rd.figures) == 0 {
		return json.RawMessage("{}")
	}
	return text.CanonicalJSON(rd.figures)
}
