package media

import (
	"encoding/json"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// minHidden is the length from which on bytes in text form are hidden: a short text
// that looks like base64 is none.
const minHidden = 64

// maxDepth bounds the nesting that is looked at.
const maxDepth = 10000

// Hide returns a JSON value, as encoding/json decodes it, with words in the place
// of all bytes that it holds in text form: data URLs, and the data of content
// blocks as MCP and the providers have them. It also returns what those are, in the
// order of the value, keys sorted. The value itself stays as it is.
func Hide(value any, words func(Info) string) (any, []Info) {
	h := hider{words: words}
	return h.value(value, 0), h.found
}

type hider struct {
	words func(Info) string
	found []Info
}

func (h *hider) add(info Info) string {
	h.found = append(h.found, info)
	return h.words(info)
}

func (h *hider) value(value any, depth int) any {
	if depth > maxDepth {
		return value
	}
	switch v := value.(type) {
	case string:
		return h.text(v)
	case []any:
		return h.list(v, depth)
	case map[string]any:
		if mediaType, payload, ok := blockPayload(v); ok {
			return h.add(InfoOfBase64(mediaType, payload))
		}
		return h.object(v, depth)
	}
	return value
}

// text is a text with words in the place of the data URLs in it, or of all of it.
func (h *hider) text(text string) string {
	if url, ok := hiddenURL(text); ok {
		return h.add(url.Info())
	}
	var out strings.Builder
	from := 0
	for at, size := range urlsIn(text) {
		url, _ := ParseDataURL(text[at : at+size])
		out.WriteString(text[from:at])
		out.WriteString(h.add(url.Info()))
		from = at + size
	}
	if from == 0 {
		return text
	}
	out.WriteString(text[from:])
	return out.String()
}

// urlsIn yields where data URLs of bytes stand in a text, and how long they are.
func urlsIn(text string) iter.Seq2[int, int] {
	return func(yield func(at, size int) bool) {
		for at := 0; ; {
			mark := strings.Index(text[at:], base64Mark)
			if mark < 0 {
				return
			}
			mark += at
			from, end := max(at, mark-maxTypeBytes), mark+len(base64Mark)
			for end < len(text) && isBase64[text[end]] {
				end++
			}
			at = end
			start := strings.LastIndex(text[from:mark], "data:")
			if start < 0 {
				continue
			}
			start += from
			if _, ok := ParseDataURL(text[start:end]); ok && end-start >= minHidden && !yield(start, end-start) {
				return
			}
		}
	}
}

// HideText is Hide for a text.
func HideText(text string, words func(Info) string) (string, []Info) {
	h := hider{words: words}
	return h.text(text), h.found
}

// HideIn is HideText for a text that may be JSON: it also hides the data of content blocks
// in it, and leaves all else as it is written.
func HideIn(text string, words func(Info) string) string {
	text, _ = HideText(text, words)
	if !blockMark.MatchString(text) {
		return text
	}
	for line := range strings.Lines(text) {
		var value any
		if json.Unmarshal([]byte(line), &value) == nil {
			text = hideEach(text, value, words)
		}
	}
	var value any
	if json.Unmarshal([]byte(text), &value) == nil {
		text = hideEach(text, value, words)
	}
	return text
}

// blockMark stands in JSON that may have content blocks with bytes.
var blockMark = regexp.MustCompile(`"(?:data|blob)"\s*:\s*"[0-9A-Za-z+/_\\-]{40}`)

// hideEach puts words in the place of what Each finds in a value, in a text that has it.
func hideEach(text string, value any, words func(Info) string) string {
	Each(value, func(mediaType, payload string) bool {
		if len(payload) >= minHidden {
			shown := words(InfoOfBase64(mediaType, payload))
			for _, written := range []string{payload, strings.ReplaceAll(payload, "/", `\/`)} {
				text = strings.ReplaceAll(text, written, shown)
			}
		}
		return true
	})
	return text
}

func (h *hider) list(list []any, depth int) any {
	copied := false
	for i, element := range list {
		before := len(h.found)
		shown := h.value(element, depth+1)
		if len(h.found) == before {
			continue
		}
		if !copied {
			list, copied = slices.Clone(list), true
		}
		list[i] = shown
	}
	return list
}

func (h *hider) object(object map[string]any, depth int) any {
	copied := false
	for _, key := range slices.Sorted(maps.Keys(object)) {
		before := len(h.found)
		shown := h.value(object[key], depth+1)
		if len(h.found) == before {
			continue
		}
		if !copied {
			object, copied = maps.Clone(object), true
		}
		object[key] = shown
	}
	return object
}

func hiddenURL(text string) (DataURL, bool) {
	if len(text) < minHidden {
		return DataURL{}, false
	}
	return ParseDataURL(text)
}

// Each calls found for all bytes that Hide would hide, in the same order, with
// their media type and their base64 text, until it returns false.
func Each(value any, found func(mediaType, payload string) bool) { each(value, 0, found) }

func each(value any, depth int, found func(mediaType, payload string) bool) bool {
	if depth > maxDepth {
		return true
	}
	switch v := value.(type) {
	case string:
		return eachIn(v, found)
	case []any:
		for _, element := range v {
			if !each(element, depth+1, found) {
				return false
			}
		}
	case map[string]any:
		if mediaType, payload, ok := blockPayload(v); ok {
			return found(mediaType, payload)
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if !each(v[key], depth+1, found) {
				return false
			}
		}
	}
	return true
}

// eachIn calls found for the data URLs of a text.
func eachIn(text string, found func(mediaType, payload string) bool) bool {
	if url, ok := hiddenURL(text); ok {
		return found(url.Type, url.Payload)
	}
	for at, size := range urlsIn(text) {
		url, _ := ParseDataURL(text[at : at+size])
		if !found(url.Type, url.Payload) {
			return false
		}
	}
	return true
}

// blockPayload finds the base64 text of a content block, and its media type: image,
// audio and resource of MCP, and images of the providers.
func blockPayload(block map[string]any) (mediaType, payload string, ok bool) {
	inner := block
	switch block["type"] {
	case "image", "audio":
		if source, isObject := block["source"].(map[string]any); isObject {
			inner = source
		}
		payload, ok = inner["data"].(string)
	case "resource":
		if inner, ok = block["resource"].(map[string]any); ok {
			payload, ok = inner["blob"].(string)
		}
	case "image_url":
		return urlPayload(block["image_url"])
	}
	if !ok || payload == "" || !onlyBase64(payload) {
		return "", "", false
	}
	for _, key := range []string{"mimeType", "media_type", "mime_type"} {
		if text, isText := inner[key].(string); isText && mediaType == "" {
			mediaType = text
		}
	}
	return mediaType, payload, true
}

// urlPayload reads an image_url block: an object with a url, or the url itself.
func urlPayload(value any) (mediaType, payload string, ok bool) {
	if object, isObject := value.(map[string]any); isObject {
		value = object["url"]
	}
	text, _ := value.(string)
	url, ok := ParseDataURL(text)
	return url.Type, url.Payload, ok
}

// BlocksText is the text of a value that is content blocks as MCP has them: the
// texts, and what stands for everything else, as isWords knows it, one below the
// other. False for any other value. Bytes must be hidden before.
func BlocksText(value any, isWords func(text string) bool) (string, bool) {
	if object, ok := value.(map[string]any); ok {
		for key := range object {
			if !slices.Contains([]string{"content", "isError", "_meta", "structuredContent"}, key) {
				return "", false
			}
		}
		value = object["content"]
	}
	list, ok := value.([]any)
	if !ok || len(list) == 0 {
		return "", false
	}
	parts := make([]string, len(list))
	for i, element := range list {
		if parts[i], ok = blockText(element, isWords); !ok {
			return "", false
		}
	}
	return strings.Join(parts, "\n"), true
}

// blockText is the text of one content block.
func blockText(element any, isWords func(text string) bool) (string, bool) {
	switch block := element.(type) {
	case string:
		return block, isWords(block)
	case map[string]any:
		switch block["type"] {
		case "resource":
			block, _ = block["resource"].(map[string]any)
		case "resource_link":
			return linkWords(block)
		case "text":
		default:
			return "", false
		}
		text, ok := block["text"].(string)
		return text, ok
	}
	return "", false
}

// linkWords describes a link to a resource: its name, type, size and address.
func linkWords(block map[string]any) (string, bool) {
	address, ok := block["uri"].(string)
	if !ok {
		return "", false
	}
	words := "[resource"
	for _, key := range []string{"name", "mimeType"} {
		if text, isText := block[key].(string); isText && text != "" {
			words += " " + text
		}
	}
	if size, isNumber := block["size"].(json.Number); isNumber {
		words += " " + size.String() + " bytes"
	}
	return strings.Join(strings.Fields(words+", "+address), " ") + "]", true
}
