package step

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// readFile: the content goes into a blob when it is longer than the threshold.
func (r *Reducer) readFile(c Call, out *Reduced) {
	path, body := argText(c.Args, "path"), fileBody(c.Result)
	kind := contentType(path, body)
	out.Observation = OneLine(fmt.Sprintf("Read %s (%d bytes, %s)", path, body.size, kind))
	if r.opts.Style == ObservationDesign {
		out.Observation = fmt.Sprintf("Read file (%d bytes)", body.size)
	}
	f := figures{Size: &body.size, Bytes: &body.size, Type: kind, SHA256: body.sha256}
	if !body.binary {
		f.Lines = body.lines
		out.Inline = r.clip(body.text, body.tail, body.size, false)
	}
	f.ChangedSinceWrite = c.WrittenSHA256 != "" && body.sha256 != "" && c.WrittenSHA256 != body.sha256
	out.Metadata = f.encode()
	if body.size > r.opts.ReadBytes {
		out.Offload, out.OffloadExt = true, bodyExt(kind)
		if c.Result.BodyKey == "" {
			// The content came inside the output, so there is no body to store.
			out.OffloadBytes = []byte(body.text)
		}
	}
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

// fileBody takes the body, or what a tool without one put under "content".
func fileBody(result Result) body {
	if result.BodyKey == "" {
		text, _ := result.Output["content"].(string)
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
	count := lines(text)
	if hash == "" {
		hash = hashText(text)
	}
	return body{
		size:   int64(len(text)),
		lines:  &count,
		sha256: hash,
		text:   text,
		binary: strings.IndexByte(text, 0) >= 0 || !utf8.ValidString(text),
	}
}

func hashText(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// writeFile: what was written never comes back into a prompt, but its bytes
// are kept.
func (r *Reducer) writeFile(c Call, out *Reduced) {
	content, known := c.Args["content"].(string)
	size := int64(len(content))
	for _, key := range []string{"bytes", "bytes_written"} {
		if n, ok := wholeNumber(c.Result.Output[key]); ok {
			size = n
		}
	}
	out.Observation = OneLine(fmt.Sprintf("Wrote %s (%d bytes)", argText(c.Args, "path"), size))
	f := figures{Size: &size, Bytes: &size}
	if known {
		f.SHA256 = hashText(content)
		out.KeepArg = "content"
	}
	out.Metadata = f.encode()
	out.Inline = r.inlineJSON(c.Result)
}

// listDir: the entries go into a blob when there are many.
func (r *Reducer) listDir(c Call, out *Reduced) {
	path, given := c.Args["path"].(string)
	if !given || path == "" {
		path = "."
	}
	entries, _ := c.Result.Output["entries"].([]any)
	count, dirs := int64(len(entries)), int64(0)
	for _, entry := range entries {
		if isDir(entry) {
			dirs++
		}
	}
	files := count - dirs
	out.Observation = OneLine(fmt.Sprintf("Listed %s: %d items (%d files, %d dirs)",
		headBytes(path, MaxPathBytes), count, files, dirs))
	out.Metadata = figures{Count: &count, Files: &files, Dirs: &dirs}.encode()
	out.Inline = r.inlineJSON(c.Result)
	if len(entries) > r.opts.ListItems {
		out.Offload, out.OffloadExt = true, "json"
		out.OffloadBytes = CanonicalJSON(resultValue(c.Result))
	}
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

// argText returns a text argument bounded like a path, or nothing.
func argText(args map[string]any, key string) string {
	text, _ := args[key].(string)
	return headBytes(text, MaxPathBytes)
}

// pathArgs keeps the path and nothing else.
func pathArgs(args map[string]any) map[string]any {
	if _, ok := args["path"].(string); !ok {
		return map[string]any{}
	}
	return map[string]any{"path": argText(args, "path")}
}

// wholeNumber reads a whole, non-negative number in any form it may come in.
func wholeNumber(v any) (int64, bool) {
	switch v.(type) {
	case json.Number, float64, int, int64, uint64:
	default:
		return 0, false
	}
	var n int64
	err := json.Unmarshal(CanonicalJSON(v), &n)
	return n, err == nil && n >= 0
}
