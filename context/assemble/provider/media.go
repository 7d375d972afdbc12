package provider

import (
	"encoding/base64"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/content"
	"github.com/loom-bridge/loom-bridge/context/guard"
)

const pdf = "application/pdf"

// said is a part as text: what it says, or a word for what the provider does not
// take. Thoughts are no text.
func said(p *content.Block) string {
	switch p.Kind {
	case content.Thought, content.Call:
		return ""
	case content.Image, content.Audio, content.File:
		if s, ok := documentText(p.Media()); ok {
			return titled(p.Media().Name, s)
		}
		return "[" + nameOf(p) + " left out: this provider does not take it]"
	case content.Said, content.Result:
		return strings.Join(content.Texts(p.Parts), "\n")
	case content.Other:
		if p.Text == "" && p.Dialect == content.Shared {
			return string(p.Raw)
		}
		if p.Dialect == content.Responses {
			return guard.Text(p.Text) // what a tool printed may be in it
		}
	}
	return p.Text
}

// titled is a text below its title.
func titled(title, s string) string {
	if title == "" {
		return s
	}
	return title + ":\n" + s
}

// documentText is the text of a document of plain text.
func documentText(m content.Media) (string, bool) {
	if m.Text != "" {
		return m.Text, true
	}
	if !strings.HasPrefix(m.Type, "text/") && m.Type != "application/json" {
		return "", false
	}
	data, err := base64.StdEncoding.DecodeString(m.Data)
	return string(data), err == nil && len(data) > 0 && utf8.Valid(data)
}

// nameOf says what an image, a sound or a file is.
func nameOf(p *content.Block) string {
	words := []string{map[content.Kind]string{content.Image: "image", content.Audio: "audio"}[p.Kind]}
	if words[0] == "" {
		words[0] = "file"
	}
	m := p.Media()
	for _, s := range []string{m.Name, m.Type, m.URL, m.FileID} {
		if s != "" && len(s) <= maxNamed {
			words = append(words, s)
		}
	}
	return strings.Join(words, " ")
}

// maxNamed bounds what is said of a file.
const maxNamed = 256

// address is where the bytes are: a data URL, or the address that was given.
func address(m content.Media) string {
	if m.Data != "" {
		return "data:" + m.Type + ";base64," + m.Data
	}
	return m.URL
}

func isWeb(url string) bool {
	return strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://")
}

// fileName is the name of a file, which OpenAI wants.
func fileName(m content.Media) string {
	if m.Name != "" {
		return path.Base(m.Name)
	}
	return "document.pdf"
}

// soundFormat is what OpenAI calls a sound; empty where it takes none of that type.
func soundFormat(mediaType string) string {
	switch mediaType {
	case "audio/mpeg", "audio/mp3":
		return "mp3"
	case "audio/wav", "audio/x-wav":
		return "wav"
	}
	return ""
}

// isPicture reports whether Anthropic takes images of a media type.
func isPicture(mediaType string) bool {
	return slices.Contains([]string{"image/jpeg", "image/png", "image/gif", "image/webp"}, mediaType)
}
