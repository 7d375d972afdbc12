package step

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// file reads a file's content.
func (r *Reducer) file(c Call) finding {
	path, b := plainText(c.Args["path"]), fileBody(&c.Result)
	kind := contentType(path, b)
	rd := finding{
		size:    size{bytes: b.size, text: b.text},
		text:    &heldText{ext: bodyExt(kind)},
		unshown: b.binary && b.size > 0,
	}
	if c.Result.BodyKey == "" && !c.Result.hasContent() && !emptyResult(&c.Result) {
		// There is no content, but something else.
		rd.text = nil
		rd.showJSON(resultValue(&c.Result))
	} else if c.Result.BodyKey == "" {
		// The content came inside the output, so there is no body to store.
		rd.text.bytes = []byte(b.text)
		rd.text.holes = c.Result.holes([]string{c.Result.contentKey()}, []int{len(b.text)})
	}
	rd.figure("size", b.size)
	rd.figure("bytes", b.size)
	rd.figure("type", kind)
	rd.figure("sha256", b.sha256)
	switch {
	case rd.text == nil:
	case b.binary:
		rd.noText(&c.Result, b)
		rd.text.ext = bodyExt(kind)
	default:
		place := PlaceOf(c.Args)
		rd.shown = shown{text: b.text, tail: b.tail, size: b.size, place: &place}
		if b.lines != nil {
			rd.figure("lines", *b.lines)
		}
	}
	if c.WrittenSHA256 != "" && b.sha256 != "" && c.WrittenSHA256 != b.sha256 {
		rd.figure("changed_since_write", true)
	}
	return rd
}

// contentType is what a read says about the content.
func contentType(path string, b body) string {
	switch {
	case strings.HasSuffix(strings.ToLower(path), ".json"):
		return "JSON"
	case b.binary:
		return "binary"
	}
	return "text"
}

func bodyExt(contentType string) string {
	switch contentType {
	case "JSON":
		return "json"
	case "binary":
		return "bin"
	}
	return "txt"
}

// body is a file's content as far as it is known.
type body struct {
	size   int64
	lines  *int64 // nil when not counted
	sha256 string
	// text is all of the content, or its start, and then tail its end.
	text, tail string
	binary     bool
}

// contentKey is where the content stands in a JSON result.
func (r *Result) contentKey() string {
	if r.IsValue {
		return text.WholeText
	}
	return "content"
}

// hasContent reports whether a JSON result has the content of a file.
func (r *Result) hasContent() bool {
	content := r.Value
	if !r.IsValue {
		content = r.Output["content"]
	}
	_, ok := content.(string)
	return ok
}

// fileBody takes the body, or what a tool without one put under "content", or gave
// as a text.
func fileBody(result *Result) body {
	if result.BodyKey == "" {
		text, ok := result.Value.(string)
		if !ok {
			text, _ = result.Output["content"].(string)
		}
		return wholeBody(text, "")
	}
	if int64(len(result.BodyText)) == result.BodySize {
		b := wholeBody(result.BodyText, result.BodySHA256)
		b.binary = b.binary || result.BodyBinary
		return b
	}
	b := body{
		size:   max(result.BodySize, 0),
		sha256: result.BodySHA256,
		text:   result.BodyText,
		tail:   result.BodyTail,
		binary: result.BodyBinary,
	}
	if result.BodyLines > 0 {
		b.lines = &result.BodyLines
	}
	return b
}

// wholeBody is a body that is all there; an empty hash is computed.
func wholeBody(text, hash string) body {
	b := unhashed(text)
	if b.sha256 = hash; hash == "" {
		b.sha256 = hashText(text)
	}
	return b
}

// unhashed is a body that is all there and whose hash is not needed.
func unhashed(s string) body {
	count := text.CountLines(s)
	return body{
		size:   int64(len(s)),
		lines:  &count,
		text:   s,
		binary: strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s),
	}
}

func hashText(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// written reads what came of writing a file.
func (r *Reducer) written(c Call) finding {
	content, known := c.Args["content"].(string)
	size := int64(len(content))
	for _, key := range []string{"bytes", "bytes_written"} {
		if n, ok := wholeNumber(c.Result.Output[key]); ok {
			size = n
		}
	}
	rd := finding{}
	rd.asJSON(&c.Result)
	rd.figure("size", size)
	rd.figure("bytes", size)
	if known {
		rd.figure("sha256", hashText(content))
	}
	return rd
}

// listing reads the entries of a folder.
func (r *Reducer) listing(c Call) finding {
	rd := finding{words: map[string]string{}}
	if path, given := c.Args["path"].(string); !given || path == "" {
		rd.words["path"] = "."
	}
	entries := entriesOf(&c.Result)
	dirs := 0
	for _, entry := range entries {
		if isDir(entry) {
			dirs++
		}
	}
	rd.asJSON(&c.Result)
	rd.size.items = int64(len(entries))
	delete(rd.figures, "size")
	rd.figure("count", len(entries))
	rd.figure("files", len(entries)-dirs)
	rd.figure("dirs", dirs)
	return rd
}

// hasEntries reports whether a result is a listing.
func hasEntries(result *Result) bool { return entriesOf(result) != nil }

func entriesOf(result *Result) []any {
	entries, ok := result.Output["entries"].([]any)
	if !ok {
		entries, _ = result.Value.([]any)
	}
	return entries
}

// isDir knows both forms of an entry: "name/" and {"is_dir": true}.
func isDir(entry any) bool {
	switch entry := entry.(type) {
	case string:
		return strings.HasSuffix(entry, "/")
	case map[string]any:
		dir, _ := entry["is_dir"].(bool)
		return dir
	}
	return false
}

// wholeNumber reads a whole, non-negative number in any form it may come in.
func wholeNumber(v any) (int64, bool) {
	n, ok := integer(v)
	return n, ok && n >= 0
}
